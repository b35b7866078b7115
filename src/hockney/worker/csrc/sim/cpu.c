/* CPUs shared by several ranks. Ranks queue for them; with time slices a long computation yields. */
#include "events.h"

/* A computation that overlaps with a request. */
struct hk_overlap {
    hk_cpu_t *cpu;
    hk_turn_t compute, receive;
    hk_sim_req_t *req;
    uint64_t want_ps; /* when `req` is done and needs the CPU */
    enum { REQ_UNKNOWN, REQ_UNDER_WAY, REQ_QUEUED, REQ_AT_WORK, REQ_NONE } stage;
};

static void append(hk_cpu_t *cpu, hk_turn_t *turn)
{
    turn->next = NULL;
    *(cpu->first == NULL ? &cpu->first : &cpu->last->next) = turn;
    cpu->last = turn;
}

/* Wake a rank that waits for its CPU. Other waits end by themselves. */
static void wake_if_waiting(hk_sim_rank_t *rank)
{
    if (rank->wait == HK_WAIT_CPU) {
        hk_sim_wake(rank);
    }
}

/* Begin a turn. As on the T9000, a process yields at the second tick of a free-running clock after its start. */
static void begin_turn(hk_sim_t *sim, hk_turn_t *turn)
{
    turn->since_ps = sim->now_ps;
    if (turn->holds) {
        turn->has_cpu = true;
        wake_if_waiting(turn->rank);
        return;
    }
    const uint64_t end_ps = sim->now_ps + turn->left_ps;
    const uint64_t tick_ps = sim->slice_ps > 0 ? (sim->now_ps / sim->slice_ps + 2) * sim->slice_ps : UINT64_MAX;
    if (tick_ps < end_ps) {
        hk_queue_put(&sim->queue, tick_ps, HK_EVENT_SLICE, turn);
    } else {
        hk_queue_put(&sim->queue, end_ps, HK_EVENT_DONE, turn);
    }
}

static void serve_next(hk_sim_t *sim, hk_cpu_t *cpu)
{
    while (cpu->idle > 0 && cpu->first != NULL) {
        hk_turn_t *turn = cpu->first;
        cpu->first = turn->next;
        cpu->idle--;
        begin_turn(sim, turn);
    }
}

static void ask(hk_sim_t *sim, hk_cpu_t *cpu, hk_turn_t *turn)
{
    turn->cpu = cpu;
    append(cpu, turn);
    serve_next(sim, cpu);
}

static void give_back(hk_sim_t *sim, hk_cpu_t *cpu)
{
    cpu->idle++;
    serve_next(sim, cpu);
}

static void withdraw(hk_cpu_t *cpu, const hk_turn_t *turn)
{
    hk_turn_t *left = cpu->first;
    cpu->first = NULL;
    while (left != NULL) {
        hk_turn_t *next = left->next;
        if (left != turn) {
            append(cpu, left);
        }
        left = next;
    }
}

/* A request is done and needs the CPU, unless the rank has handled it meanwhile. */
static void want_receive(hk_sim_rank_t *rank)
{
    struct hk_overlap *overlap = rank->overlap;
    if (overlap != NULL && overlap->stage == REQ_UNDER_WAY && overlap->want_ps == rank->sim->now_ps) {
        overlap->stage = REQ_QUEUED;
        ask(rank->sim, overlap->cpu, &overlap->receive);
    }
}

void hk_cpu_event(hk_sim_t *sim, hk_event_kind_t kind, void *what)
{
    hk_turn_t *turn = what;
    if (kind == HK_EVENT_WANT) {
        want_receive(what);
        return;
    }
    switch (kind) {
    case HK_EVENT_SLICE:
        turn->left_ps -= sim->now_ps - turn->since_ps;
        append(turn->cpu, turn);
        break;
    case HK_EVENT_DONE:
        turn->left_ps = 0;
        turn->is_over = true;
        wake_if_waiting(turn->rank);
        break;
    default: /* a turn that holds the CPU */
        turn->has_cpu = false;
        wake_if_waiting(turn->rank);
        break;
    }
    give_back(sim, turn->cpu);
}

void hk_sim_work(hk_sim_rank_t *rank, uint64_t duration_ps)
{
    rank->cpu_ps += duration_ps;
    if (rank->cpu == NULL) {
        rank->now_ps = hk_sum_ps(rank->now_ps, duration_ps);
    } else if (duration_ps > 0) {
        hk_turn_t turn = {.rank = rank, .left_ps = duration_ps};
        hk_sim_step(rank);
        ask(rank->sim, rank->cpu, &turn);
        while (!turn.is_over) {
            hk_sim_wait(rank, HK_WAIT_CPU, 0);
        }
        rank->now_ps = rank->sim->now_ps;
    }
}

/* Handle the request: the receive has the CPU. `next` uses it too, so it needs no other. */
static bool handle(hk_sim_rank_t *rank, bool (*next)(void *), void *arg)
{
    struct hk_overlap *overlap = rank->overlap;
    hk_cpu_t *shared = rank->cpu;
    rank->now_ps = rank->sim->now_ps;
    rank->cpu = NULL;
    rank->open -= overlap->req->is_receive;
    hk_sim_work(rank, overlap->req->cpu_ps);
    const bool goes_on = next(arg);
    rank->cpu = shared;
    hk_queue_put(&rank->sim->queue, rank->now_ps, HK_EVENT_RELEASE, &overlap->receive);
    return goes_on;
}

/* Use what is known about the request before the wait. */
static void watch_request(hk_sim_rank_t *rank)
{
    struct hk_overlap *overlap = rank->overlap;
    if (overlap->stage == REQ_UNKNOWN && overlap->req->is_known) {
        const uint64_t now_ps = rank->sim->now_ps;
        overlap->stage = REQ_UNDER_WAY;
        overlap->want_ps = overlap->req->done_ps > now_ps ? overlap->req->done_ps : now_ps;
        hk_queue_put(&rank->sim->queue, overlap->want_ps, HK_EVENT_WANT, rank);
    } else if (overlap->stage == REQ_UNKNOWN) {
        overlap->req->is_waited_for = true;
        rank->unknown = 1;
    }
}

void hk_sim_overlap(hk_sim_rank_t *rank, uint64_t duration_ps, hk_sim_req_t *req, bool (*next)(void *), void *arg)
{
    hk_sim_t *sim = rank->sim;
    hk_cpu_t own = {.idle = rank->cpus_left};
    struct hk_overlap overlap = {.cpu = rank->cpu != NULL ? rank->cpu : &own,
                                 .compute = {.rank = rank, .left_ps = duration_ps},
                                 .receive = {.rank = rank, .holds = true},
                                 .req = req};
    bool goes_on = true;
    hk_sim_step(rank);
    rank->cpu_ps += duration_ps;
    rank->overlap = &overlap;
    ask(sim, overlap.cpu, &overlap.compute);
    while (!overlap.compute.is_over || overlap.stage == REQ_AT_WORK) {
        watch_request(rank);
        hk_sim_wait(rank, HK_WAIT_CPU, 0);
        if (overlap.stage == REQ_AT_WORK && !overlap.receive.has_cpu) {
            overlap.stage = goes_on ? REQ_UNKNOWN : REQ_NONE;
        }
        if (overlap.stage == REQ_QUEUED && overlap.receive.has_cpu && !overlap.compute.is_over) {
            overlap.stage = REQ_AT_WORK;
            goes_on = handle(rank, next, arg);
        }
    }
    if (overlap.stage == REQ_QUEUED && overlap.receive.has_cpu) {
        give_back(sim, overlap.cpu); /* it got the CPU just now: the wait for the request handles it */
    } else if (overlap.stage == REQ_QUEUED) {
        withdraw(overlap.cpu, &overlap.receive);
    }
    req->is_waited_for = false;
    rank->overlap = NULL;
    rank->now_ps = sim->now_ps;
}
