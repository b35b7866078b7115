/* Event builder: for each event a manager (rank 0) sends a short message to every readout (ranks 1 .. S). Each readout
 * sends its fragment to the event's builder (the remaining ranks, in turn). The builder waits for all fragments,
 * computes, and sends a short report. Three hops.
 *
 * With `shift` readouts take events in rounds of one for each builder, and readout r begins a round with builder r.
 * Then they send to different builders at any moment. Otherwise all fragments of an event meet at one builder. */
#include <stdio.h>

#include "farm.h"

enum { EVENTBUILDER_SHIFT = HK_FARM_OPTIONS_COUNT };
enum { CONTROL_BYTES = 16 };

static bool eventbuilder_fits(const hk_run_t *run, char *why, size_t len)
{
    const int builders = run->ctx->size - 1 - (int)run->option[HK_FARM_SENDERS];
    if (run->option[EVENTBUILDER_SHIFT] != 0 && run->option[HK_FARM_IN_FLIGHT] < builders) {
        snprintf(why, len, "shift=yes needs rounds of %d events, one for each builder: in_flight must be %d or more",
                 builders, builders);
        return false;
    }
    return hk_farm_fits(run, why, len);
}

/* Send one round: `events` events, at most one for each builder, starting with that of `builder`. */
static hk_status_t send_round(hk_run_t *run, int builder, int events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (int i = 0; i < events; i++) {
        HK_TRY(tp->recv(ctx, 0, run->in, CONTROL_BYTES));
    }
    int event = (ctx->rank - 1) % events;
    for (int i = 0; i < events; i++) {
        const int to = (builder + event) % farm->receivers;
        HK_TRY(tp->send(ctx, hk_farm_rank(farm, to), run->out, run->bytes));
        event = event + 1 < events ? event + 1 : 0;
    }
    return HK_OK;
}

/* Without a schedule the manager ends a repetition before it starts the next, so a round stays within a
 * repetition.
 * On schedule it does not wait. */
static hk_status_t send_shifted(hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    const uint64_t builders = (uint64_t)farm->receivers;
    const uint64_t at_once = farm->rate_hz > 0 ? events : farm->events;
    int builder = farm->next;
    for (uint64_t done = 0; done < events; done += at_once) {
        for (uint64_t left = at_once; left > 0;) {
            const uint64_t round = left < builders ? left : builders;
            HK_TRY(send_round(run, builder, (int)round));
            builder = (int)(((uint64_t)builder + round) % builders);
            left -= round;
        }
    }
    return HK_OK;
}

static hk_status_t eventbuilder_serve(hk_run_t *run, uint64_t events)
{
    return run->option[EVENTBUILDER_SHIFT] != 0 ? send_shifted(run, events) : hk_farm_push(run, events);
}

static const hk_farm_kind_t eventbuilder = {.per_sender = 1,
                                            .control_bytes = CONTROL_BYTES,
                                            .start = hk_farm_notify_senders,
                                            .serve = eventbuilder_serve,
                                            .take = hk_farm_take_fragments};

const hk_pattern_t hk_pattern_eventbuilder = {
    .name = "eventbuilder",
    .kind = HK_KIND_FARM,
    .summary = "readouts send the fragments of each event to one of the builders, in turn; time per event",
    .own = &eventbuilder,
    .option = {HK_FARM_OPTIONS,
               {"shift", "no|yes", 0, 0, 0, "yes: each readout sends to the builders in a different order"}},
    .fits = eventbuilder_fits,
    .expected = hk_farm_expected,
    HK_FARM_SHARED,
};
