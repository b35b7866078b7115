/* Puts and gets: they go the way of messages, and nobody receives them. */
#include <string.h>

#include "events.h"

static hk_message_t *new_one_sided(hk_sim_rank_t *rank, hk_operation_t kind, int peer, uint64_t bytes)
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

void hk_sim_put(hk_sim_rank_t *rank, int peer, uint64_t *remote, const void *local, uint64_t bytes)
{
    hk_message_t *message = new_one_sided(rank, HK_PUT, peer, bytes);
    hk_sim_req_t req = {.rank = rank};
    if (message == NULL) {
        return;
    }
    if (bytes == sizeof message->word) {
        const ptrdiff_t away = (ptrdiff_t)rank->sim->stride_bytes * (peer - rank->base.rank);
        message->remote = (uint64_t *)(void *)((unsigned char *)remote + away);
        memcpy(&message->word, local, sizeof message->word);
    }
    rank->puts_open++;
    if (message->costs->protocol == HK_SYNCHRONOUS) {
        message->send = &req;
        hk_message_begin(rank, message);
        hk_sim_finish(&req, HK_WAIT_SEND, peer);
    } else {
        hk_message_begin(rank, message);
    }
}

void hk_sim_get(hk_sim_rank_t *rank, int peer, uint64_t bytes)
{
    hk_message_t *message = new_one_sided(rank, HK_GET, peer, bytes);
    hk_sim_req_t req = {.rank = rank};
    if (message == NULL) {
        return;
    }
    message->recv = &req;
    message->from = (uint32_t)peer;
    message->to = (uint32_t)rank->base.rank;
    rank->sim->messages++;
    hk_queue_put(&rank->sim->queue, rank->now_ps + message->costs->ps[HK_COST_HANDSHAKE], HK_EVENT_START, message);
    hk_sim_finish(&req, HK_WAIT_ALL, peer);
}

void hk_sim_quiet(hk_sim_rank_t *rank)
{
    if (rank->puts_open > 0) {
        hk_sim_wait(rank, HK_WAIT_QUIET, 0);
    }
    rank->now_ps = rank->puts_ps > rank->now_ps ? rank->puts_ps : rank->now_ps;
}

/* What is written after this rank's clock wakes it up when it comes, so it may look before. */
void hk_sim_wait_word(hk_sim_rank_t *rank, const uint64_t *word, uint64_t value)
{
    while (*(const volatile uint64_t *)word != value) {
        hk_sim_wait(rank, HK_WAIT_WORD, 0);
    }
    hk_sim_work(rank, hk_sim_cpu_cost(rank, rank->word_ps));
}
