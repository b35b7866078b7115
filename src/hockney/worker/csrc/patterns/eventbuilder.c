/* Event builder: for each event a manager (rank 0) tells every readout (ranks 1 .. S) in a short message, each sends
 * its fragment to the event's builder (the remaining ranks, in turn), and the builder reports in a short message when
 * it has them all and has computed. With `shift`, readouts take events in rounds of one for each builder, and readout r
 * begins a round with builder r: at any moment they then send to different builders, where otherwise all fragments of
 * an event meet at one. Three hops. */
#include <stdio.h>

#include "farm.h"

enum { EVENTBUILDER_SHIFT = HK_FARM_OPTIONS_COUNT };
enum { CONTROL_BYTES = 16 };

static bool eventbuilder_fits(const hk_run_t *run, char *why, size_t len)
{
    const int builders = run->ctx->size - 1 - (int)run->option[HK_FARM_SENDERS];
    if (run->option[EVENTBUILDER_SHIFT] != 0 && run->option[HK_FARM_IN_FLIGHT] < builders) {
        snprintf(why, len, "shift=yes takes events in rounds of %d, one for each builder: in_flight must be %d or more",
                 builders, builders);
        return false;
    }
    return hk_farm_fits(run, why, len);
}

/* So many events, one for each builder or fewer, of which the first is that of `builder`. */
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

/* The manager starts no event of the next repetition before all of this one have ended, so no round is longer. On
 * schedule it waits for none. */
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
                                            .start = hk_farm_tell_senders,
                                            .serve = eventbuilder_serve,
                                            .take = hk_farm_take_fragments};

const hk_pattern_t hk_pattern_eventbuilder = {
    .name = "eventbuilder",
    .summary = "readouts send their fragments of each event to one of the builders, in turn; per event",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 3,
    .timed = HK_TIMED_ROOT,
    .stream = true,
    .senders = "senders",
    .own = &eventbuilder,
    .option = {HK_FARM_OPTIONS,
               {"shift", "no|yes", 0, 0, 0, "yes: readouts take the builders of a round in different orders"}},
    .fits = eventbuilder_fits,
    .plan = hk_farm_plan,
    .prepare = hk_farm_prepare,
    .repeat = hk_farm_repeat,
    .expected = hk_farm_expected,
    .counter = hk_farm_counter,
};
