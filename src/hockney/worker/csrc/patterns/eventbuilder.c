/* Event builder: readouts (ranks 1 .. S) have the fragments of events, builders (the remaining ranks, in turn) assemble
 * them. A manager (rank 0) starts each event; its builder waits for all fragments, computes, and sends a short report.
 *
 * The schedule says when a readout sends to which builder:
 *   all      at once, when the manager starts the event: all fragments of an event meet at one builder.
 *   barrel   in rounds of one event for each builder, and readout s begins with builder s: at any moment readouts send
 *            to different builders, as by a barrel shifter.
 *   random   in such rounds, in an order that differs by readout and round.
 *   credits  when the builder asks. The manager tells the builder, which has at most `credits` readouts send at once.
 *            Readouts serve events in their order, so no two wait for each other. */
#include <stdio.h>

#include "farm.h"
#include "fragments.h"

enum {
    EVENTBUILDER_SCHEDULE = HK_FARM_OPTIONS_COUNT,
    EVENTBUILDER_CREDITS,
    EVENTBUILDER_FRAGMENTS,
};
enum { SCHEDULE_ALL, SCHEDULE_BARREL, SCHEDULE_RANDOM, SCHEDULE_CREDITS };
enum { CONTROL_BYTES = 16, EVENTBUILDER_PLACES_MAX = 4 };

/* What a readout or a builder has besides the farm; it follows the farm in the pattern's state. */
typedef struct eventbuilder {
    hk_fragments_t fragments;
    uint64_t event;         /* that it works on */
    int waits_for;          /* with credits: the rank whose message is the next */
    size_t places, credits; /* places: events that a builder's memory holds */
    double send_ns;         /* of a readout, in sends of fragments */
    int order[];            /* of a readout: the events of a random round */
} eventbuilder_t;

static eventbuilder_t *eventbuilder_of(const hk_run_t *run)
{
    return (eventbuilder_t *)(void *)((unsigned char *)run->state + sizeof(hk_farm_t));
}

static int64_t eventbuilder_schedule(const hk_run_t *run)
{
    return run->option[EVENTBUILDER_SCHEDULE];
}

static size_t eventbuilder_receivers(const hk_run_t *run)
{
    return (size_t)(run->ctx->size - 1 - (int)run->option[HK_FARM_SENDERS]);
}

/* ---- a readout --------------------------------------------------------------------------------------------------- */

static hk_status_t eventbuilder_send(hk_run_t *run, uint64_t event)
{
    eventbuilder_t *own = eventbuilder_of(run);
    const hk_farm_t *farm = hk_farm_of(run);
    const hk_fragments_t *fragments = &own->fragments;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const uint64_t receivers = (uint64_t)farm->receivers;
    const int to = hk_farm_rank(farm, (int)(event % receivers));
    const uint64_t start_ns = tp->now_ns(ctx);
    if (fragments->streams == 1) {
        HK_TRY(tp->send(ctx, to, run->out + hk_fragment_at(event, receivers, 0),
                        hk_fragment_bytes(fragments, event, ctx->rank, 0)));
    } else {
        for (int stream = 0; stream < fragments->streams; stream++) {
            HK_TRY(tp->isend(ctx, to, run->out + hk_fragment_at(event, receivers, stream),
                             hk_fragment_bytes(fragments, event, ctx->rank, stream), &run->reqs[stream]));
        }
        HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    }
    own->send_ns += (double)(tp->now_ns(ctx) - start_ns);
    return HK_OK;
}

static hk_status_t eventbuilder_push(hk_run_t *run, uint64_t events)
{
    const uint64_t first = hk_farm_of(run)->begun;
    for (uint64_t i = 0; i < events; i++) {
        HK_TRY(run->ctx->tp->recv(run->ctx, 0, run->in, CONTROL_BYTES));
        HK_TRY(eventbuilder_send(run, first + i));
    }
    return HK_OK;
}

/* The events of a round in the order in which this readout sends them: shuffled, or from its own place on. */
static void eventbuilder_order(const hk_run_t *run, uint64_t first, int count)
{
    int *order = eventbuilder_of(run)->order;
    const bool is_random = eventbuilder_schedule(run) == SCHEDULE_RANDOM;
    uint64_t state = (first << 12) + (uint64_t)run->ctx->rank;
    for (int i = 0; i < count; i++) {
        order[i] = (run->ctx->rank - 1 + i) % count;
    }
    for (int i = count - 1; is_random && i > 0; i--) {
        const int other = (int)(hk_mix_next(&state) % (uint64_t)(i + 1));
        const int event = order[i];
        order[i] = order[other];
        order[other] = event;
    }
}

/* Without a rate the manager ends a repetition before it starts the next, so a round stays within a repetition. On
 * schedule it does not wait. */
static hk_status_t eventbuilder_rounds(hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    const uint64_t receivers = (uint64_t)farm->receivers;
    const uint64_t at_once = farm->rate_hz > 0 ? events : farm->events;
    const int *order = eventbuilder_of(run)->order;
    for (uint64_t done = 0; done < events;) {
        const uint64_t left = at_once - done % at_once;
        const int count = (int)(left < receivers ? left : receivers);
        const uint64_t first = farm->begun + done;
        eventbuilder_order(run, first, count);
        for (int i = 0; i < count; i++) {
            HK_TRY(run->ctx->tp->recv(run->ctx, 0, run->in, CONTROL_BYTES));
        }
        for (int i = 0; i < count; i++) {
            HK_TRY(eventbuilder_send(run, first + (uint64_t)order[i]));
        }
        done += (uint64_t)count;
    }
    return HK_OK;
}

static hk_status_t eventbuilder_serve_credits(hk_run_t *run, uint64_t events)
{
    eventbuilder_t *own = eventbuilder_of(run);
    const hk_farm_t *farm = hk_farm_of(run);
    for (uint64_t i = 0; i < events; i++) {
        own->event = farm->begun + i;
        own->waits_for = hk_farm_rank(farm, (int)(own->event % (uint64_t)farm->receivers));
        HK_TRY(run->ctx->tp->recv(run->ctx, own->waits_for, run->in, CONTROL_BYTES));
        HK_TRY(eventbuilder_send(run, own->event));
    }
    return HK_OK;
}

/* ---- a builder --------------------------------------------------------------------------------------------------- */

/* Memory of one event: room for the largest fragment of each stream of each readout. */
static size_t eventbuilder_bytes(const hk_run_t *run, const hk_fragments_t *fragments)
{
    return (size_t)run->option[HK_FARM_SENDERS] * (size_t)fragments->streams * fragments->largest;
}

static size_t eventbuilder_place(const hk_run_t *run, uint64_t event)
{
    const eventbuilder_t *own = eventbuilder_of(run);
    const uint64_t turn = event / (uint64_t)hk_farm_of(run)->receivers;
    return (size_t)(turn % own->places) * eventbuilder_bytes(run, &own->fragments);
}

/* Start the receives of one readout's fragments. */
static hk_status_t eventbuilder_post(hk_run_t *run, int sender, hk_req_t *req)
{
    const eventbuilder_t *own = eventbuilder_of(run);
    const hk_fragments_t *fragments = &own->fragments;
    unsigned char *in = run->in + eventbuilder_place(run, own->event) +
                        (size_t)(sender - 1) * (size_t)fragments->streams * fragments->largest;
    for (int stream = 0; stream < fragments->streams; stream++, in += fragments->largest) {
        HK_TRY(
            run->ctx->tp->irecv(run->ctx, sender, in, hk_fragment_bytes(fragments, own->event, sender, stream), req++));
    }
    return HK_OK;
}

static hk_status_t eventbuilder_report(hk_run_t *run)
{
    hk_farm_t *farm = hk_farm_of(run);
    farm->delay.take(run->ctx, &farm->delay);
    eventbuilder_of(run)->event += (uint64_t)farm->receivers;
    return run->ctx->tp->send(run->ctx, 0, run->out, CONTROL_BYTES);
}

static hk_status_t eventbuilder_take(hk_run_t *run)
{
    const hk_farm_t *farm = hk_farm_of(run);
    const int streams = eventbuilder_of(run)->fragments.streams;
    for (int sender = 1; sender <= farm->senders; sender++) {
        HK_TRY(eventbuilder_post(run, sender, run->reqs + (size_t)(sender - 1) * (size_t)streams));
    }
    HK_TRY(run->ctx->tp->wait_all(run->ctx, run->reqs, run->reqs_count));
    return eventbuilder_report(run);
}

/* A readout that has sent gives its credit to the next one. */
static hk_status_t eventbuilder_take_granted(hk_run_t *run)
{
    eventbuilder_t *own = eventbuilder_of(run);
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int credits = (int)own->credits;
    own->waits_for = 0;
    HK_TRY(tp->recv(ctx, 0, run->in + own->places * eventbuilder_bytes(run, &own->fragments), CONTROL_BYTES));
    for (int sender = 1; sender <= farm->senders + credits; sender++) {
        if (sender > credits) {
            own->waits_for = sender - credits;
            HK_TRY(eventbuilder_post(run, sender - credits, run->reqs));
            HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
        }
        if (sender <= farm->senders) {
            HK_TRY(tp->send(ctx, sender, run->out, CONTROL_BYTES));
        }
    }
    return eventbuilder_report(run);
}

/* ---- the pattern ------------------------------------------------------------------------------------------------- */

#define EVENTBUILDER_KIND .control_bytes = CONTROL_BYTES, .marks = HK_FRAGMENT_MARKS
#define EVENTBUILDER_PUSH EVENTBUILDER_KIND, .start = hk_farm_notify_senders, .take = eventbuilder_take

static const hk_farm_kind_t eventbuilder_kinds[] = {
    [SCHEDULE_ALL] = {EVENTBUILDER_PUSH, .serve = eventbuilder_push},
    [SCHEDULE_BARREL] = {EVENTBUILDER_PUSH, .serve = eventbuilder_rounds},
    [SCHEDULE_RANDOM] = {EVENTBUILDER_PUSH, .serve = eventbuilder_rounds},
    [SCHEDULE_CREDITS] = {EVENTBUILDER_KIND, .asks_receiver = true, .start = hk_farm_notify_receiver,
                          .serve = eventbuilder_serve_credits, .take = eventbuilder_take_granted},
};

static const hk_farm_kind_t *eventbuilder_kind(const hk_run_t *run)
{
    return &eventbuilder_kinds[eventbuilder_schedule(run)];
}

static const hk_farm_kind_t eventbuilder = {.chosen = eventbuilder_kind};

static bool eventbuilder_fits(const hk_run_t *run, char *why, size_t len)
{
    static const char *const words[] = {"all", "barrel", "random", "credits"};
    const int64_t schedule = eventbuilder_schedule(run);
    const size_t builders = eventbuilder_receivers(run);
    const bool has_rounds = schedule == SCHEDULE_BARREL || schedule == SCHEDULE_RANDOM;
    if (has_rounds && (size_t)run->option[HK_FARM_IN_FLIGHT] < builders) {
        snprintf(why, len,
                 "schedule=%s needs rounds of %zu events, one for each builder: in_flight must be %zu or more",
                 words[schedule], builders, builders);
        return false;
    }
    return hk_fragments_fit(run, EVENTBUILDER_FRAGMENTS, why, len) && hk_farm_fits(run, why, len);
}

static size_t eventbuilder_places(const hk_run_t *run)
{
    const size_t builders = eventbuilder_receivers(run);
    const size_t events = ((size_t)run->option[HK_FARM_IN_FLIGHT] + builders - 1) / builders;
    return events < EVENTBUILDER_PLACES_MAX ? events : EVENTBUILDER_PLACES_MAX;
}

static hk_plan_t eventbuilder_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_farm_plan(run);
    hk_fragments_t fragments;
    hk_fragments_of(run, EVENTBUILDER_FRAGMENTS, &fragments);
    const size_t streams = (size_t)fragments.streams;
    plan.bytes_per_rep *= streams;
    plan.messages_per_rep *= streams;
    if (run->ctx->rank == 0) {
        plan.out_bytes = CONTROL_BYTES;
        return plan;
    }
    const bool is_readout = hk_farm_is_sender(run);
    const bool is_granted = eventbuilder_schedule(run) == SCHEDULE_CREDITS;
    const size_t out_bytes = is_readout ? hk_fragments_out_bytes(&fragments) : CONTROL_BYTES;
    plan.out_bytes = out_bytes;
    plan.state_bytes += sizeof(eventbuilder_t) + (is_readout ? eventbuilder_receivers(run) * sizeof(int) : 0);
    plan.in_bytes = CONTROL_BYTES;
    plan.in_bytes += is_readout ? 0 : eventbuilder_places(run) * eventbuilder_bytes(run, &fragments);
    plan.reqs_count = is_readout || is_granted ? streams : streams * (size_t)run->option[HK_FARM_SENDERS];
    return plan;
}

static hk_status_t eventbuilder_prepare(hk_run_t *run)
{
    if (run->ctx->rank > 0) {
        const int64_t senders = run->option[HK_FARM_SENDERS], credits = run->option[EVENTBUILDER_CREDITS];
        eventbuilder_t *own = eventbuilder_of(run);
        *own = (eventbuilder_t){.places = eventbuilder_places(run),
                                .credits = (size_t)(credits < senders ? credits : senders),
                                .event = hk_farm_is_sender(run) ? 0 : (uint64_t)run->ctx->rank - 1 - (uint64_t)senders};
        hk_fragments_of(run, EVENTBUILDER_FRAGMENTS, &own->fragments);
    }
    return hk_farm_prepare(run);
}

/* A builder has the fragments of its last events; if it asks for them, the manager's message, too. */
static bool eventbuilder_built(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const eventbuilder_t *own = eventbuilder_of(run);
    const hk_farm_t *farm = hk_farm_of(run);
    const uint64_t receivers = (uint64_t)farm->receivers, repeated = hk_farm_repeated(run);
    const size_t streams = (size_t)own->fragments.streams, blocks = (size_t)farm->senders * streams;
    const uint64_t back = i / blocks; /* from the last event */
    const uint64_t held = repeated < own->places ? repeated : own->places;
    if (back >= held) {
        const size_t end = own->places * eventbuilder_bytes(run, &own->fragments);
        *expected_p = (hk_expected_t){.in_offset = end, .size_bytes = CONTROL_BYTES, .from_rank = 0};
        return eventbuilder_schedule(run) == SCHEDULE_CREDITS && held > 0 && i == held * blocks;
    }
    const uint64_t event = own->event - (back + 1) * receivers;
    const int sender = 1 + (int)(i % blocks / streams), stream = (int)(i % streams);
    *expected_p = (hk_expected_t){.in_offset = eventbuilder_place(run, event) + i % blocks * own->fragments.largest,
                                  .from_offset = hk_fragment_at(event, receivers, stream),
                                  .size_bytes = hk_fragment_bytes(&own->fragments, event, sender, stream),
                                  .from_rank = sender};
    return true;
}

static bool eventbuilder_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    if (run->ctx->rank > 0 && !hk_farm_is_sender(run)) {
        return eventbuilder_built(run, i, expected_p);
    }
    const bool is_granted = run->ctx->rank > 0 && eventbuilder_schedule(run) == SCHEDULE_CREDITS;
    const bool is_there = hk_farm_expected(run, i, expected_p);
    expected_p->from_rank = is_granted ? eventbuilder_of(run)->waits_for : expected_p->from_rank;
    return is_there;
}

static bool eventbuilder_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    *counter_p = (hk_counter_t){"send_ns", run->ctx->rank > 0 ? eventbuilder_of(run)->send_ns : 0};
    return i == 0 || hk_farm_counter(run, i - 1, counter_p);
}

static bool eventbuilder_waits(const hk_run_t *run, hk_waited_t *waited_p)
{
    if (run->ctx->rank == 0 || eventbuilder_schedule(run) != SCHEDULE_CREDITS) {
        return false;
    }
    const eventbuilder_t *own = eventbuilder_of(run);
    *waited_p = (hk_waited_t){.what = hk_farm_is_sender(run) ? "the credit"
                                      : own->waits_for > 0   ? "the fragment"
                                                             : "the start",
                              .event = own->event,
                              .rank = own->waits_for};
    return true;
}

const hk_pattern_t hk_pattern_eventbuilder = {
    .name = "eventbuilder",
    .kind = HK_KIND_FARM,
    .summary = "readouts send the fragments of each event to one of the builders, in turn; time per event",
    .own = &eventbuilder,
    .option = {HK_FARM_OPTIONS,
               {"schedule", "all|barrel|random|credits", SCHEDULE_ALL, 0, 0,
                "readouts send at once; to builders in different orders; in random ones; or when the builder asks"},
               {"credits", NULL, 2, 1, 4094, "readouts that a builder has send at once, with schedule=credits"},
               HK_FRAGMENT_OPTIONS},
    .fits = eventbuilder_fits,
    .plan = eventbuilder_plan,
    .prepare = eventbuilder_prepare,
    .expected = eventbuilder_expected,
    .counter = eventbuilder_counter,
    .waits = eventbuilder_waits,
    HK_FARM_SHARED,
};
