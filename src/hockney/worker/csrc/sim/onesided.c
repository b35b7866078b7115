/* Puts and gets: they travel like messages, without a receive. */
#include <string.h>

#include "events.h"

static hk_message_t *new_one_sided(hk_sim_rank_t *rank, hk_traffic_t kind, int peer, uint64_t bytes)
{
    hk_sim_t *sim = rank->sim;
    const uint32_t own = (uint32_t)rank->base.rank;
    const hk_costs_t *costs = hk_sim_costs(sim, kind, own, (uint32_t)peer, bytes);
    hk_message_t *message = costs != NULL ? hk_message_new(sim) : NULL;
    if (message != NULL) {
        *message = (hk_message_t){.costs = costs, .kind = kind, .from = own, .to = (uint32_t)peer};
        hk_sim_work(rank, hk_sim_cpu_cost(rank, costs->ps[HK_COST_SEND_CPU]));
    }
    return message;
}

/* A model may have only put, or only get. */
static bool has_operation(const hk_sim_rank_t *rank, hk_traffic_t operation, const char *name)
{
    const hk_model_t *model = rank->sim->model;
    if (!hk_model_has(model, operation)) {
        hk_log(rank->base.rank, "the model %s has no %s", model->name, name);
        return false;
    }
    return true;
}

/* From an address in this rank's memory to the same place in the peer's. */
static ptrdiff_t away_bytes(const hk_sim_rank_t *rank, int peer)
{
    return (ptrdiff_t)rank->sim->stride_bytes * (peer - rank->base.rank);
}

hk_status_t hk_sim_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t bytes)
{
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    if (!has_operation(rank, HK_PUT, "put")) {
        return HK_ERR_UNSUPPORTED;
    }
    hk_message_t *message = new_one_sided(rank, HK_PUT, peer, bytes);
    hk_sim_req_t req = {.rank = rank};
    if (message == NULL) {
        return HK_OK; /* the machine stops without memory */
    }
    unsigned char *there = (unsigned char *)remote + away_bytes(rank, peer);
    if (bytes == sizeof message->word) {
        message->remote = (uint64_t *)(void *)there;
        memcpy(&message->word, local, sizeof message->word);
    } else if (rank->sim->carries) {
        memcpy(there, local, bytes); /* the peer may look at it only when it has heard of the put's end */
    }
    rank->puts_open++;
    if (message->costs->protocol == HK_SYNCHRONOUS) {
        message->send = &req;
        hk_message_begin(rank, message);
        hk_sim_finish(&req, HK_WAIT_SEND, peer);
    } else {
        hk_message_begin(rank, message);
    }
    return HK_OK;
}

hk_status_t hk_sim_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t bytes)
{
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    if (!has_operation(rank, HK_GET, "get")) {
        return HK_ERR_UNSUPPORTED;
    }
    if (rank->sim->carries) {
        memcpy(local, (const unsigned char *)remote + away_bytes(rank, peer), bytes);
    }
    hk_message_t *message = new_one_sided(rank, HK_GET, peer, bytes);
    hk_sim_req_t req = {.rank = rank};
    if (message == NULL) {
        return HK_OK; /* the machine stops without memory */
    }
    message->recv = &req;
    message->from = (uint32_t)peer;
    message->to = (uint32_t)rank->base.rank;
    rank->sim->messages++;
    hk_queue_put(&rank->sim->queue, rank->now_ps + message->costs->ps[HK_COST_HANDSHAKE], HK_EVENT_START, message);
    hk_sim_finish(&req, HK_WAIT_ALL, peer);
    return HK_OK;
}

hk_status_t hk_sim_quiet(hk_ctx_t *ctx)
{
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    if (rank->puts_open > 0) {
        hk_sim_wait(rank, HK_WAIT_QUIET, 0);
    }
    rank->now_ps = rank->puts_ps > rank->now_ps ? rank->puts_ps : rank->now_ps;
    return HK_OK;
}

/* A word that is written after this rank's clock wakes it, so it may check before. */
hk_status_t hk_sim_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    while (*(const volatile uint64_t *)word != value) {
        hk_sim_wait(rank, HK_WAIT_WORD, 0);
    }
    hk_sim_work(rank, hk_sim_cpu_cost(rank, rank->word_ps));
    return HK_OK;
}
