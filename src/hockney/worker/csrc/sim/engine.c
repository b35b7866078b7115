/* Runs ranks and events in the order of time. */
#include "engine.h"

#include <stdio.h>

#include "events.h"

_Static_assert(sizeof(hk_sim_req_t) <= sizeof(hk_req_t), "a request of the simulation must fit");

void hk_sim_wake(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    rank->wait = HK_WAIT_NOTHING;
    if (rank->is_ready) {
        return;
    }
    rank->is_ready = true;
    __builtin_prefetch(rank->place); /* others run before it */
    rank->next_ready = NULL;
    if (sim->first_ready == NULL) {
        sim->first_ready = rank;
    } else {
        sim->last_ready->next_ready = rank;
    }
    sim->last_ready = rank;
}

/* Handle events until a rank can continue; NULL: none can. */
static hk_sim_rank_t *next_rank(hk_sim_t *sim)
{
    while (sim->first_ready == NULL) {
        if (sim->queue.count == 0 || sim->queue.failed || sim->no_memory) {
            return NULL;
        }
        if (sim->queue.heap[0].at_ps >= HK_END_PS) {
            return NULL;
        }
        const hk_event_t event = hk_queue_take(&sim->queue);
        const hk_event_kind_t kind = (hk_event_kind_t)hk_event_kind(&event);
        sim->now_ps = event.at_ps;
        if (kind == HK_EVENT_GO_ON) {
            hk_sim_wake(event.what);
        } else {
            sim->happen(sim, kind, event.what);
        }
    }
    hk_sim_rank_t *rank = sim->first_ready;
    sim->first_ready = rank->next_ready;
    rank->is_ready = false;
    return rank;
}

/* Switch to another rank. Until all ranks have begun, main starts the next one. */
static void give_way(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    hk_sim_rank_t *next = sim->is_starting ? NULL : next_rank(sim);
    if (next != rank) {
        hk_switch(&rank->place, next != NULL ? next->place : sim->main);
    }
}

void hk_sim_wait(hk_sim_rank_t *rank, hk_wait_t wait, int peer)
{
    rank->wait = wait;
    rank->wait_peer = (uint32_t)peer;
    give_way(rank);
}

void hk_sim_step(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    rank->ahead = 0;
    if (hk_sim_is_next(rank)) {
        sim->now_ps = rank->now_ps;
    } else {
        hk_queue_put(&sim->queue, rank->now_ps, HK_EVENT_GO_ON, rank);
        give_way(rank);
    }
}

static void run_rank(void *arg)
{
    hk_sim_rank_t *rank = arg;
    hk_sim_t *sim = rank->sim;
    sim->body(rank, sim->arg);
    rank->is_done = true;
    sim->live--;
    give_way(rank);
}

/* For example "rank 0 waits for a message from rank 1". */
static size_t describe_wait(const hk_sim_rank_t *rank, char *why, size_t len)
{
    static const char *const words[] = {"can continue",
                                        "waits for a message from rank %u",
                                        "waits for rank %u to receive",
                                        "waits for its messages",
                                        "waits in a barrier",
                                        "waits for a word in its memory",
                                        "waits for a CPU",
                                        "waits for its puts",
                                        "waits for its stream with rank %u"};
    char text[64];
    (void)snprintf(text, sizeof text, words[rank->wait], rank->wait_peer);
    const int written = snprintf(why, len, "rank %d %s", rank->base.rank, text);
    return written < 0 ? 0 : (size_t)written < len ? (size_t)written : len - 1;
}

/* Whether a clock or the next event has reached the last time that the simulation can tell. */
static bool has_passed_end(const hk_sim_t *sim)
{
    bool has = sim->queue.count > 0 && sim->queue.heap[0].at_ps >= HK_END_PS;
    for (int i = 0; i < sim->size; i++) {
        has = has || sim->ranks[i].now_ps >= HK_END_PS;
    }
    return has;
}

static void describe_failure(const hk_sim_t *sim, char *why, size_t len)
{
    enum { NAMED = 5 };
    if (sim->queue.failed || sim->no_memory) {
        (void)snprintf(why, len, "no memory for the messages under way");
        return;
    }
    if (has_passed_end(sim)) {
        (void)snprintf(why, len, "it takes more than 13 days of virtual time: use smaller costs or faster links");
        return;
    }
    size_t at = (size_t)snprintf(why, len, "deadlock: ");
    int named = 0;
    for (int i = 0; i < sim->size && named < NAMED; i++) {
        if (!sim->ranks[i].is_done) {
            at += (size_t)snprintf(why + at, len - at, "%s", named > 0 ? ", " : "");
            at += describe_wait(&sim->ranks[i], why + at, len - at);
            named++;
        }
    }
    if (sim->live > named) {
        (void)snprintf(why + at, len - at, ", and %d more ranks wait", sim->live - named);
    }
}

bool hk_sim_run(hk_sim_t *sim, void (*body)(hk_sim_rank_t *rank, void *arg), void *arg, char *why, size_t len)
{
    uint64_t now_ps = sim->now_ps;
    for (int i = 0; i < sim->size; i++) {
        now_ps = sim->ranks[i].now_ps > now_ps ? sim->ranks[i].now_ps : now_ps;
    }
    sim->body = body;
    sim->arg = arg;
    sim->live = sim->size;
    sim->is_starting = true;
    for (int i = 0; i < sim->size; i++) {
        sim->ranks[i].now_ps = now_ps;
        sim->ranks[i].is_done = false;
    }
    for (int i = 0; i < sim->size; i++) {
        hk_switch_new(&sim->main, &sim->stacks, (size_t)i, run_rank, &sim->ranks[i]);
    }
    sim->is_starting = false;
    const hk_sim_rank_t *first = next_rank(sim);
    if (first != NULL) {
        hk_switch(&sim->main, first->place);
    }
    const bool has_ended = sim->live == 0 && !has_passed_end(sim);
    if (!has_ended) {
        describe_failure(sim, why, len);
    }
    return has_ended;
}

void hk_sim_barrier(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    sim->barrier_ps = rank->now_ps > sim->barrier_ps ? rank->now_ps : sim->barrier_ps;
    sim->in_barrier++;
    if (sim->in_barrier < sim->size) {
        hk_sim_wait(rank, HK_WAIT_BARRIER, 0);
        return;
    }
    int rounds = 0;
    while (((int64_t)1 << rounds) < sim->size) {
        rounds++;
    }
    const uint64_t end_ps =
        hk_sum_ps(sim->barrier_ps, hk_ps(sim->model->barrier_fixed_ns + rounds * sim->model->barrier_per_round_ns));
    sim->in_barrier = 0;
    sim->barrier_ps = 0;
    for (int i = 0; i < sim->size; i++) {
        sim->ranks[i].now_ps = end_ps;
        if (&sim->ranks[i] != rank) {
            hk_sim_wake(&sim->ranks[i]);
        }
    }
}
