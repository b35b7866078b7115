#include "farm.h"

/* With several events in flight, a repetition is this many times as many events: it begins and ends with none, and
 * that must not weigh. */
enum { FILLS = 16 };

static uint64_t events_of(const hk_run_t *run)
{
    const uint64_t in_flight = (uint64_t)run->option[HK_FARM_IN_FLIGHT];
    return in_flight == 1 ? 1 : FILLS * in_flight;
}

hk_plan_t hk_farm_plan(const hk_run_t *run, size_t fan, size_t per_sender)
{
    const size_t senders = (size_t)run->option[HK_FARM_SENDERS];
    const size_t in_flight = (size_t)run->option[HK_FARM_IN_FLIGHT];
    const uint64_t events = events_of(run);
    hk_plan_t plan = {.out_bytes = run->bytes,
                      .state_bytes = sizeof(hk_farm_t),
                      .bytes_per_rep = events * senders * run->bytes,
                      .messages_per_rep = events * senders,
                      .divisor = events,
                      .period = (uint64_t)run->ctx->size - 1 - senders};
    if (run->ctx->rank == 0) {
        plan.in_bytes = in_flight * run->bytes;
        plan.reqs_count = events * fan + in_flight;
    } else if (hk_farm_is_sender(run)) {
        plan.in_bytes = run->bytes;
    } else {
        plan.in_bytes = (senders + 1) * run->bytes; /* fragments, and after them what starts an event */
        plan.reqs_count = senders * per_sender;
    }
    return plan;
}

hk_status_t hk_farm_prepare(hk_run_t *run, size_t fan, hk_farm_start_t *start)
{
    const int senders = (int)run->option[HK_FARM_SENDERS];
    *hk_farm_of(run) = (hk_farm_t){.senders = senders,
                                   .receivers = run->ctx->size - 1 - senders,
                                   .in_flight = (size_t)run->option[HK_FARM_IN_FLIGHT],
                                   .events = events_of(run),
                                   .fan = fan,
                                   .start = start};
    return HK_OK;
}

/* One repetition: events start in order and end in order, never more than in_flight between.
 *
 * The messages that start events are not waited for one by one: with all of them started, the supervisor is always
 * ready to take the end of the oldest event, on which in the end everybody else waits. So no rank waits for ever,
 * however little the transport buffers. Only when as many events as may be are under way for the last time are their
 * ends awaited together with all that is still open. */
static hk_status_t run_events(hk_run_t *run, int *starting_p)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_req_t *req = run->reqs;
    const size_t bytes = run->bytes;
    int starting = *starting_p;
    int ending = starting;
    size_t place = 0;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < farm->in_flight && status == HK_OK; i++, req += farm->fan) {
        status = farm->start(run, starting, req);
        starting = hk_farm_after(farm, starting);
    }
    for (uint64_t i = farm->in_flight; i < farm->events && status == HK_OK; i++, req += farm->fan) {
        status = tp->recv(ctx, hk_farm_rank(farm, ending), run->in + place * bytes, bytes);
        ending = hk_farm_after(farm, ending);
        place = place + 1 < farm->in_flight ? place + 1 : 0;
        if (status == HK_OK) {
            status = farm->start(run, starting, req);
            starting = hk_farm_after(farm, starting);
        }
    }
    for (size_t i = 0; i < farm->in_flight && status == HK_OK; i++) {
        status = tp->irecv(ctx, hk_farm_rank(farm, ending), run->in + i * bytes, bytes, req++);
        ending = hk_farm_after(farm, ending);
    }
    *starting_p = starting;
    return status == HK_OK ? tp->wait_all(ctx, run->reqs, run->reqs_count) : status;
}

static hk_status_t supervise(hk_run_t *run, uint64_t reps)
{
    int starting = hk_farm_of(run)->next;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = run_events(run, &starting);
    }
    return status;
}

/* Of events that go round from the receiver first on, how many are receiver's. */
static uint64_t share_from(const hk_farm_t *farm, int first, int receiver, uint64_t events)
{
    const uint64_t receivers = (uint64_t)farm->receivers;
    const uint64_t before = (uint64_t)(receiver - first + farm->receivers) % receivers;
    return events > before ? (events - before - 1) / receivers + 1 : 0;
}

static int receiver_of(const hk_run_t *run)
{
    return run->ctx->rank - 1 - hk_farm_of(run)->senders;
}

static uint64_t share_of(const hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    return share_from(farm, farm->next, receiver_of(run), events);
}

static void advance(hk_run_t *run, uint64_t events)
{
    hk_farm_t *farm = hk_farm_of(run);
    const uint64_t receivers = (uint64_t)farm->receivers;
    farm->first = farm->next;
    farm->repeated = events;
    farm->next = (int)(((uint64_t)farm->next + events % receivers) % receivers);
}

hk_status_t hk_farm_repeat(hk_run_t *run, uint64_t reps, hk_farm_serve_t *serve, hk_farm_take_t *take)
{
    const uint64_t events = reps * hk_farm_of(run)->events;
    hk_status_t status = HK_OK;
    if (run->ctx->rank == 0) {
        status = supervise(run, reps);
    } else if (hk_farm_is_sender(run)) {
        status = serve(run, events);
    } else {
        const uint64_t mine = share_of(run, events);
        for (uint64_t i = 0; i < mine && status == HK_OK; i++) {
            status = take(run);
        }
    }
    advance(run, events);
    return status;
}

bool hk_farm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const hk_farm_t *farm = hk_farm_of(run);
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .len_bytes = run->bytes};
    if (run->ctx->rank == 0) {
        /* The ends of the last events, one in each place. */
        const uint64_t event = farm->repeated - farm->in_flight + i;
        const uint64_t receivers = (uint64_t)farm->receivers;
        expected_p->from_rank = hk_farm_rank(farm, (int)(((uint64_t)farm->first + event % receivers) % receivers));
        return i < farm->in_flight;
    }
    if (hk_farm_is_sender(run)) {
        return false;
    }
    expected_p->from_rank = 1 + (int)i;
    return i < (size_t)farm->senders && share_from(farm, farm->first, receiver_of(run), farm->repeated) > 0;
}
