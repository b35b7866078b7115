/* Clocks: every rank compares its clock with that of its parent in a binomial tree; the slowest rank's time.
 *
 * The parent sends, and the child answers (clock.h). A child waits before its parent begins, so no exchange includes a
 * wait. */
#include <stdio.h>

#include "clock.h"

typedef struct clocks_stamp {
    uint64_t sent_ns, answered_ns;
} clocks_stamp_t;

/* The pattern's state: this rank's clock less its parent's, in the exchange with the shortest round trip. The core
 * subtracts what counters are before the samples, so they are 0 until then: the first look at them begins to count. */
typedef struct clocks_state {
    hk_clock_t clock;
    bool is_counting;
} clocks_state_t;

static hk_plan_t clocks_plan(const hk_run_t *run)
{
    (void)run;
    return (hk_plan_t){
        .out_bytes = sizeof(clocks_stamp_t), .in_bytes = sizeof(clocks_stamp_t), .state_bytes = sizeof(clocks_state_t)};
}

static bool clocks_fits(const hk_run_t *run, char *why, size_t len)
{
    snprintf(why, len, "ranks on a model have one clock");
    return (run->ctx->tp->caps & HK_CAP_VIRTUAL) == 0;
}

/* The time of day of real ranks; a test's own clock. */
static uint64_t clocks_now_ns(hk_ctx_t *ctx)
{
    return ctx->tp->now_ns == hk_real_now_ns ? hk_time_of_day_ns() : ctx->tp->now_ns(ctx);
}

static hk_status_t clocks_answer(hk_run_t *run, int parent)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const clocks_stamp_t *stamp = (const clocks_stamp_t *)(void *)run->in;
    clocks_state_t *state = run->state;
    HK_TRY(tp->recv(ctx, parent, run->in, sizeof *stamp));
    const uint64_t now_ns = clocks_now_ns(ctx);
    const bool came = stamp->sent_ns > 0; /* a lost message is zeros */
    HK_TRY(tp->send(ctx, parent, run->out, sizeof *stamp));
    HK_TRY(tp->recv(ctx, parent, run->in, sizeof *stamp));
    if (came && stamp->sent_ns > 0 && state->is_counting) {
        hk_clock_note(&state->clock, stamp->sent_ns, now_ns, stamp->answered_ns);
    }
    return HK_OK;
}

static hk_status_t clocks_ask(hk_run_t *run, int child)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    clocks_stamp_t *stamp = (clocks_stamp_t *)(void *)run->out;
    stamp->sent_ns = clocks_now_ns(ctx);
    HK_TRY(tp->send(ctx, child, run->out, sizeof *stamp));
    HK_TRY(tp->recv(ctx, child, run->in, sizeof *stamp));
    stamp->answered_ns = clocks_now_ns(ctx);
    return tp->send(ctx, child, run->out, sizeof *stamp);
}

/* The parent of a rank is the rank without its lowest bit; the child with the most ranks below it comes first. */
static hk_status_t clocks_repeat(hk_run_t *run, uint64_t reps)
{
    const int rank = run->ctx->rank;
    const int size = run->ctx->size;
    const int lowest = rank & -rank;
    int first = 1;
    while (first < size && (rank == 0 || first < lowest)) {
        first *= 2;
    }
    for (uint64_t i = 0; i < reps; i++) {
        if (rank > 0) {
            HK_TRY(clocks_answer(run, rank - lowest));
        }
        for (int bit = first / 2; bit > 0; bit /= 2) {
            if (rank + bit < size) {
                HK_TRY(clocks_ask(run, rank + bit));
            }
        }
    }
    return HK_OK;
}

static bool clocks_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    clocks_state_t *state = run->state;
    state->is_counting = true;
    *counter_p = i == 0 ? (hk_counter_t){"clock_ahead_ns", state->clock.ahead_ns}
                        : (hk_counter_t){"clock_error_ns", state->clock.error_ns};
    return i < 2;
}

const hk_pattern_t hk_pattern_clocks = {
    .name = "clocks",
    .kind = HK_KIND_MACHINE,
    .summary = "each rank compares its clock with its parent's in a tree; the slowest rank's time",
    .needs = HK_CAP_SEND | HK_CAP_PAYLOAD,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .unsized = true,
    .fits = clocks_fits,
    .plan = clocks_plan,
    .repeat = clocks_repeat,
    .counter = clocks_counter,
};
