/* Sends, receives and waits of a rank. */
#include "events.h"

/* AHEAD_MAX: messages that a rank may start before it waits for the machine. */
enum { AHEAD_MAX = 64, PROBE_MAX_PS = 1000000, FEW = 8 };

void hk_message_begin(hk_sim_rank_t *rank, hk_message_t *message)
{
    hk_sim_t *sim = rank->sim;
    sim->messages++;
    if (hk_sim_is_next(rank)) {
        sim->now_ps = rank->now_ps;
        hk_message_event(sim, HK_EVENT_START, message);
        return;
    }
    hk_queue_put(&sim->queue, rank->now_ps, HK_EVENT_START, message);
    if (++rank->ahead > AHEAD_MAX) {
        hk_sim_step(rank);
    }
}

void hk_sim_send(hk_sim_rank_t *rank, int peer, const void *buf, uint64_t bytes, hk_sim_req_t *req)
{
    hk_sim_t *sim = rank->sim;
    const uint32_t from = (uint32_t)rank->base.rank;
    const hk_costs_t *costs = hk_sim_costs(sim, HK_TWO_SIDED, from, (uint32_t)peer, bytes);
    hk_message_t *message = hk_message_new(sim);
    *req = (hk_sim_req_t){.rank = rank};
    if (message == NULL || costs == NULL) {
        return; /* the machine stops without memory */
    }
    hk_sim_work(rank, hk_sim_cpu_cost(rank, costs->ps[HK_COST_SEND_CPU]));
    message->costs = costs;
    message->from = from;
    message->to = (uint32_t)peer;
    message->recv = NULL;
    message->send = req;
    message->ready_ps = rank->now_ps;
    message->has_receives = rank->open > 0;
    message->kind = HK_TWO_SIDED;
    if (sim->carries) {
        hk_data_take(sim, message, buf);
    }
    if (costs->protocol == HK_EAGER) {
        message->send = NULL;
        hk_req_complete(req, rank->now_ps, 0);
    }
    hk_message_begin(rank, message);
}

void hk_sim_recv(hk_sim_rank_t *rank, int peer, void *buf, uint64_t bytes, hk_sim_req_t *req)
{
    hk_sim_t *sim = rank->sim;
    *req = (hk_sim_req_t){.rank = rank,
                          .posted_ps = rank->now_ps,
                          .is_receive = true,
                          .room = buf,
                          .room_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX};
    rank->open++;
    if (rank->held == 0 && rank->receive == NULL) {
        rank->receive = req;
        rank->receive_from = (uint32_t)peer;
        return;
    }
    hk_channel_t *channel = hk_channel_find(&sim->channels, (uint32_t)peer, (uint32_t)rank->base.rank, sim->now_ps);
    if (channel == NULL) {
        sim->no_memory = true;
        return;
    }
    hk_message_t *message = channel->first_message;
    if (message != NULL) {
        channel->first_message = message->next;
        rank->held--;
        hk_message_meet(sim, message, req);
        return;
    }
    rank->held++;
    *(channel->first_receive == NULL ? &channel->first_receive : &channel->last_receive->next) = req;
    channel->last_receive = req;
}

bool hk_sim_probe(hk_sim_rank_t *rank, int peer)
{
    hk_sim_t *sim = rank->sim;
    hk_sim_step(rank);
    const hk_channel_t *channel =
        hk_channel_find(&sim->channels, (uint32_t)peer, (uint32_t)rank->base.rank, sim->now_ps);
    const hk_message_t *message = channel != NULL ? channel->first_message : NULL;
    const bool has_come =
        message != NULL && (message->stage == HK_STAGE_ARRIVED ||
                            (message->stage == HK_STAGE_LAUNCHED && message->costs->protocol == HK_SYNCHRONOUS) ||
                            message->costs->protocol == HK_RENDEZVOUS);
    if (has_come && message->ready_ps <= rank->now_ps) {
        return true;
    }
    /* A probe takes no time here. The next one is when something may have changed, but soon, because the rank may
     * also follow the clock. */
    uint64_t next_ps = sim->queue.count > 0 ? sim->queue.heap[0].at_ps : 0;
    next_ps = has_come && (message->ready_ps < next_ps || next_ps == 0) ? message->ready_ps : next_ps;
    const uint64_t latest_ps = rank->now_ps + PROBE_MAX_PS;
    next_ps = next_ps < latest_ps ? next_ps : latest_ps;
    rank->now_ps = rank->now_ps + 1000 > next_ps ? rank->now_ps + 1000 : next_ps;
    return false;
}

/* Continue after the known end of a request. */
static void end(hk_sim_req_t *req)
{
    hk_sim_rank_t *rank = req->rank;
    rank->now_ps = req->done_ps > rank->now_ps ? req->done_ps : rank->now_ps;
    rank->open -= req->is_receive;
    if (req->cpu_ps > 0) {
        hk_sim_work(rank, req->cpu_ps);
    }
}

void hk_sim_finish(hk_sim_req_t *req, hk_wait_t wait, int peer)
{
    if (!req->is_known) {
        req->is_waited_for = true;
        req->rank->unknown = 1;
        hk_sim_wait(req->rank, wait, peer);
    }
    end(req);
}

/* Merge two lists by end time; of equal times, a's come first. */
static hk_sim_req_t *merge(hk_sim_req_t *a, hk_sim_req_t *b)
{
    hk_sim_req_t *first = NULL;
    hk_sim_req_t **at = &first;
    while (a != NULL && b != NULL) {
        hk_sim_req_t **least = b->done_ps < a->done_ps ? &b : &a;
        *at = *least;
        *least = (*least)->next;
        at = &(*at)->next;
    }
    *at = a != NULL ? a : b;
    return first;
}

/* Many: merge lists of 1, 2, 4 … */
static hk_sim_req_t *sort_many(hk_req_t *reqs, size_t count)
{
    hk_sim_req_t *part[8 * sizeof(size_t)] = {NULL}; /* part i: 2^i requests, or none */
    size_t parts = 0;
    for (size_t i = 0; i < count; i++) {
        hk_sim_req_t *list = (hk_sim_req_t *)(void *)&reqs[i];
        list->next = NULL;
        size_t k = 0;
        for (; k < parts && part[k] != NULL; k++) {
            list = merge(part[k], list);
            part[k] = NULL;
        }
        part[k] = list;
        parts = k == parts ? k + 1 : parts;
    }
    hk_sim_req_t *all = NULL;
    for (size_t k = 0; k < parts; k++) {
        all = part[k] != NULL ? merge(part[k], all) : all;
    }
    return all;
}

/* A few: insert each after those that end no later. */
static hk_sim_req_t *sort_few(hk_req_t *reqs, size_t count)
{
    hk_sim_req_t *first = NULL;
    for (size_t i = 0; i < count; i++) {
        hk_sim_req_t *req = (hk_sim_req_t *)(void *)&reqs[i];
        hk_sim_req_t **at = &first;
        while (*at != NULL && (*at)->done_ps <= req->done_ps) {
            at = &(*at)->next;
        }
        req->next = *at;
        *at = req;
    }
    return first;
}

/* The CPU handles incoming messages one after another, in the order of arrival. */
void hk_sim_finish_all(hk_sim_rank_t *rank, hk_req_t *reqs, size_t count)
{
    uint32_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        hk_sim_req_t *req = (hk_sim_req_t *)(void *)&reqs[i];
        if (req->taken != NULL) {
            req->taken->send = NULL;
            req->is_known = true;
        }
        req->may_be_taken = true;
        req->is_waited_for = !req->is_known;
        unknown += !req->is_known;
    }
    if (unknown > 0) {
        rank->unknown = unknown;
        hk_sim_wait(rank, HK_WAIT_ALL, 0);
    }
    hk_sim_req_t *first = count <= FEW ? sort_few(reqs, count) : sort_many(reqs, count);
    for (hk_sim_req_t *req = first; req != NULL; req = req->next) {
        end(req);
    }
}
