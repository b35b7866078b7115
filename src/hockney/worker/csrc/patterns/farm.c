#include "farm.h"

#include <stdio.h>
#include <string.h>

/* A repetition has this many times in_flight events, because it begins and ends with no event in flight. */
enum { FILLS = 16 };

enum { PROBE_NS = 50 }; /* between two probes on schedule; a virtual clock needs it to move */

static const uint64_t SECOND_NS = 1000000000;

static const hk_farm_kind_t *kind_of(const hk_run_t *run)
{
    const hk_farm_kind_t *kind = run->pattern->own;
    return kind->chosen != NULL ? kind->chosen(run) : kind;
}

static size_t control_bytes_of(const hk_run_t *run)
{
    return kind_of(run)->control_bytes > 0 ? kind_of(run)->control_bytes : run->bytes;
}

static size_t fan_of(const hk_run_t *run)
{
    return kind_of(run)->asks_receiver ? 1 : (size_t)run->option[HK_FARM_SENDERS];
}

static uint64_t events_of(const hk_run_t *run)
{
    const uint64_t in_flight = (uint64_t)run->option[HK_FARM_IN_FLIGHT];
    return in_flight == 1 || run->option[HK_FARM_RATE] > 0 ? 1 : FILLS * in_flight;
}

bool hk_farm_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    snprintf(why, len, "rate_hz needs a probe for messages, which %s does not offer", tp->name);
    return run->option[HK_FARM_RATE] == 0 || (tp->caps & HK_CAP_PROBE) != 0;
}

/* On schedule no request is waited for before the last event has ended, so each event has its own requests. Events
 * overlap, so bytes per time of an event is not a rate, and no bytes are counted. */
hk_plan_t hk_farm_plan(const hk_run_t *run)
{
    const size_t fan = fan_of(run), control_bytes = control_bytes_of(run);
    const size_t senders = (size_t)run->option[HK_FARM_SENDERS];
    const size_t in_flight = (size_t)run->option[HK_FARM_IN_FLIGHT];
    const uint64_t events = events_of(run);
    const uint64_t receivers = (uint64_t)run->ctx->size - 1 - senders;
    const bool scheduled = run->option[HK_FARM_RATE] > 0;
    const uint64_t counted = scheduled ? 0 : events * senders;
    const uint64_t marks = kind_of(run)->marks, period = receivers * (marks > 0 ? marks : 1);
    hk_plan_t plan = {.out_bytes = run->bytes > control_bytes ? run->bytes : control_bytes,
                      .state_bytes = sizeof(hk_farm_t),
                      HK_MOVES(run, counted),
                      .divisor = events,
                      .scheduled = scheduled,
                      .period = period};
    if (run->ctx->rank == 0) {
        plan.in_bytes = in_flight * control_bytes;
        plan.reqs_count = scheduled ? (run->reps_max + period) * fan : events * fan + in_flight;
        plan.state_bytes += receivers * sizeof(uint64_t);
    } else if (hk_farm_is_sender(run)) {
        plan.in_bytes = control_bytes;
    } else {
        plan.in_bytes = (senders + 1) * run->bytes; /* fragments, then the message that starts an event */
        plan.reqs_count = senders * kind_of(run)->per_sender;
    }
    return plan;
}

/* One repetition: events start and end in order, at most in_flight at once.
 *
 * The supervisor does not wait for the start messages one by one. It starts them all and can always receive the end
 * of the oldest event, on which all other ranks depend. So there is no deadlock, even without buffering in the
 * transport. Only the last in_flight ends are awaited together with all open requests. */
static hk_status_t run_events(hk_run_t *run, int *starting_p)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_req_t *req = run->reqs;
    const size_t bytes = farm->control_bytes;
    int starting = *starting_p;
    int ending = starting;
    size_t place = 0;
    for (uint64_t i = 0; i < farm->in_flight; i++, req += farm->fan) {
        HK_TRY(farm->start(run, starting, req));
        starting = hk_farm_after(farm, starting);
    }
    for (uint64_t i = farm->in_flight; i < farm->events; i++, req += farm->fan) {
        HK_TRY(tp->recv(ctx, hk_farm_rank(farm, ending), run->in + place * bytes, bytes));
        ending = hk_farm_after(farm, ending);
        place = place + 1 < farm->in_flight ? place + 1 : 0;
        HK_TRY(farm->start(run, starting, req));
        starting = hk_farm_after(farm, starting);
    }
    for (size_t i = 0; i < farm->in_flight; i++) {
        HK_TRY(tp->irecv(ctx, hk_farm_rank(farm, ending), run->in + i * bytes, bytes, req++));
        ending = hk_farm_after(farm, ending);
    }
    *starting_p = starting;
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t supervise(hk_run_t *run, uint64_t events)
{
    const uint64_t at_once = hk_farm_of(run)->events;
    int starting = hk_farm_of(run)->next;
    for (uint64_t i = 0; i < events; i += at_once) {
        HK_TRY(run_events(run, &starting));
    }
    return HK_OK;
}

/* ---- on schedule ------------------------------------------------------------------------------------------------- */

static uint64_t due_ns(const hk_farm_t *farm, uint64_t begin_ns, uint64_t event)
{
    return begin_ns + (event - event % farm->burst) * SECOND_NS / farm->rate_hz;
}

/* Receive the available ends, in the order of receivers, and store their times. Each receiver ends its events in
 * order, but receivers may overtake each other. */
static hk_status_t take_ends(hk_run_t *run, uint64_t begin_ns, uint64_t started, uint64_t *ended_p)
{
    hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const uint64_t receivers = (uint64_t)farm->receivers;
    const uint64_t begun = started < receivers ? started : receivers; /* receivers that have had an event */
    int receiver = farm->next;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < begun && status == HK_OK; i++) {
        const int rank = hk_farm_rank(farm, receiver);
        uint64_t event = i + receivers * farm->ended[i];
        bool is_there = event < started;
        while (is_there && status == HK_OK) {
            status = tp->probe(ctx, rank, &is_there);
            if (status == HK_OK && is_there) {
                status =
                    tp->recv(ctx, rank, run->in + event % farm->in_flight * farm->control_bytes, farm->control_bytes);
                run->latency_ns[event] = tp->now_ns(ctx) - due_ns(farm, begin_ns, event);
                farm->ended[i]++;
                (*ended_p)++;
                event += receivers;
                is_there = event < started;
            }
        }
        receiver = hk_farm_after(farm, receiver);
    }
    return status;
}

/* Events start when they are due, or late if in_flight are under way. Between starts the supervisor probes for ends;
 * without events under way it computes until the next one is due. Probes make progress on start messages, so the
 * wait for these is at the end. */
static hk_status_t supervise_on_schedule(hk_run_t *run, uint64_t events)
{
    hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const uint64_t begin_ns = tp->now_ns(ctx);
    uint64_t started = 0, ended = 0, next_ns = begin_ns;
    int receiver = farm->next;
    bool is_late = false;
    hk_req_t *req = run->reqs;
    memset(farm->ended, 0, (size_t)farm->receivers * sizeof farm->ended[0]);
    while (ended < events) {
        const uint64_t now_ns = tp->now_ns(ctx);
        const bool may_start = started < events && started - ended < farm->in_flight;
        if (may_start && now_ns >= next_ns) {
            HK_TRY(farm->start(run, receiver, req));
            receiver = hk_farm_after(farm, receiver);
            req += farm->fan;
            started++;
            farm->late += is_late;
            is_late = false;
            next_ns = due_ns(farm, begin_ns, started);
            continue;
        }
        is_late = is_late || (started < events && !may_start && now_ns >= next_ns);
        const uint64_t before = ended;
        HK_TRY(take_ends(run, begin_ns, started, &ended));
        const uint64_t left_ns = may_start ? next_ns - now_ns : UINT64_MAX;
        if (ended == before && ended < started) {
            tp->compute(ctx, left_ns < PROBE_NS ? left_ns : PROBE_NS);
        } else if (ended == before) {
            tp->compute(ctx, left_ns);
        }
    }
    return tp->wait_all(ctx, run->reqs, events * farm->fan);
}

hk_status_t hk_farm_prepare(hk_run_t *run)
{
    const int senders = (int)run->option[HK_FARM_SENDERS];
    const int64_t rate_hz = run->option[HK_FARM_RATE];
    *hk_farm_of(run) = (hk_farm_t){.senders = senders,
                                   .receivers = run->ctx->size - 1 - senders,
                                   .in_flight = (size_t)run->option[HK_FARM_IN_FLIGHT],
                                   .events = events_of(run),
                                   .fan = fan_of(run),
                                   .control_bytes = control_bytes_of(run),
                                   .rate_hz = (uint64_t)rate_hz,
                                   .burst = (uint64_t)run->option[HK_FARM_BURST],
                                   .start = kind_of(run)->start,
                                   .supervise = rate_hz > 0 ? supervise_on_schedule : supervise};
    const bool computes = run->ctx->rank > senders;
    const uint64_t compute_ns = computes ? (uint64_t)run->option[HK_FARM_COMPUTE] * 1000 : 0;
    return hk_delay_prepare(run->ctx, HK_DELAY_CLOCK, compute_ns, &hk_farm_of(run)->delay);
}

/* The number of receiver's events among `events` that begin with the receiver `first`. */
static uint64_t share_from(const hk_farm_t *farm, int first, int receiver, uint64_t events)
{
    const uint64_t receivers = (uint64_t)farm->receivers;
    const uint64_t before = (uint64_t)(receiver - first + farm->receivers) % receivers;
    return events > before ? (events - before - 1) / receivers + 1 : 0;
}

static uint64_t share_of(const hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    return share_from(farm, farm->next, hk_farm_receiver(run), events);
}

uint64_t hk_farm_repeated(const hk_run_t *run)
{
    const hk_farm_t *farm = hk_farm_of(run);
    return share_from(farm, farm->first, hk_farm_receiver(run), farm->repeated);
}

static void advance(hk_run_t *run, uint64_t events)
{
    hk_farm_t *farm = hk_farm_of(run);
    const uint64_t receivers = (uint64_t)farm->receivers;
    farm->first = farm->next;
    farm->repeated = events;
    farm->begun += events;
    farm->next = (int)(((uint64_t)farm->next + events % receivers) % receivers);
}

hk_status_t hk_farm_repeat(hk_run_t *run, uint64_t reps)
{
    const hk_farm_kind_t *kind = kind_of(run);
    const uint64_t events = reps * hk_farm_of(run)->events;
    if (run->ctx->rank == 0) {
        HK_TRY(hk_farm_of(run)->supervise(run, events));
    } else if (hk_farm_is_sender(run)) {
        HK_TRY(kind->serve(run, events));
    } else {
        const uint64_t mine = share_of(run, events);
        for (uint64_t i = 0; i < mine; i++) {
            HK_TRY(kind->take(run));
        }
    }
    advance(run, events);
    return HK_OK;
}

bool hk_farm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const hk_farm_t *farm = hk_farm_of(run);
    if (run->ctx->rank == 0) {
        /* The ends of the last events, one block each. On schedule there may be fewer. */
        const uint64_t places = farm->repeated < farm->in_flight ? farm->repeated : farm->in_flight;
        const uint64_t event = i < places ? farm->repeated - places + i : 0;
        const uint64_t receivers = (uint64_t)farm->receivers;
        *expected_p = (hk_expected_t){
            .in_offset = i * farm->control_bytes,
            .size_bytes = farm->control_bytes,
            .from_rank = hk_farm_rank(farm, (int)(((uint64_t)farm->first + event % receivers) % receivers))};
        return i < places;
    }
    if (hk_farm_is_sender(run)) {
        *expected_p = (hk_expected_t){.size_bytes = farm->control_bytes, .from_rank = 0};
        return i == 0;
    }
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = 1 + (int)i};
    return i < (size_t)farm->senders && hk_farm_repeated(run) > 0;
}

bool hk_farm_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const size_t of_schedule = run->option[HK_FARM_RATE] > 0;
    if (i < of_schedule) {
        *counter_p = (hk_counter_t){"late_events", hk_farm_of(run)->late};
        return true;
    }
    return run->option[HK_FARM_COMPUTE] > 0 && hk_delay_counter(&hk_farm_of(run)->delay, i - of_schedule, counter_p);
}

hk_status_t hk_farm_notify_receiver(hk_run_t *run, int receiver, hk_req_t *reqs)
{
    const hk_farm_t *farm = hk_farm_of(run);
    return run->ctx->tp->isend(run->ctx, hk_farm_rank(farm, receiver), run->out, farm->control_bytes, reqs);
}

/* ---- senders that push ------------------------------------------------------------------------------------------- */

hk_status_t hk_farm_notify_senders(hk_run_t *run, int receiver, hk_req_t *reqs)
{
    (void)receiver;
    hk_ctx_t *ctx = run->ctx;
    const hk_farm_t *farm = hk_farm_of(run);
    for (int sender = 1; sender <= farm->senders; sender++) {
        HK_TRY(ctx->tp->isend(ctx, sender, run->out, farm->control_bytes, reqs++));
    }
    return HK_OK;
}

hk_status_t hk_farm_push(hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    int receiver = farm->next;
    for (uint64_t i = 0; i < events; i++) {
        HK_TRY(recv(ctx, 0, run->in, farm->control_bytes));
        HK_TRY(send(ctx, hk_farm_rank(farm, receiver), run->out, run->bytes));
        receiver = hk_farm_after(farm, receiver);
    }
    return HK_OK;
}

hk_status_t hk_farm_take_fragments(hk_run_t *run)
{
    hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->irecv(ctx, (int)k + 1, run->in + k * run->bytes, run->bytes, &run->reqs[k]));
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    farm->delay.take(ctx, &farm->delay);
    return tp->send(ctx, 0, run->out, farm->control_bytes);
}
