#include "delay.h"

enum {
    STEPS = 16,                 /* of the clock; the shortest counts */
    READS_MAX = 1 << 21,        /* a clock that does not move within this many reads moves only during computation */
    TURNS_FIRST = 1 << 10,      /* start of the calibration */
    CALIBRATION_NS = 50 * 1000, /* long enough for the clock, short enough for one try without interruption */
    TRIES_MAX = 64,             /* a few ms: a neighbour on the core that slows all of fewer would shorten each delay */
    TRIES_IN_VAIN = 16,         /* so many without a shorter time end the calibration */
};

static const uint64_t TURNS_MAX = UINT64_C(1) << 31;

static void take_none(hk_ctx_t *ctx, hk_delay_t *delay)
{
    (void)ctx, (void)delay;
}

static void take(hk_ctx_t *ctx, hk_delay_t *delay)
{
    const uint64_t start_ns = ctx->tp->now_ns(ctx);
    delay->pass(ctx, delay->amount);
    delay->taken_ns += (double)(ctx->tp->now_ns(ctx) - start_ns);
    delay->count += 1;
}

/* The shortest step of the clock; 0: it does not move by itself, like a virtual clock. */
static uint64_t clock_step_ns(hk_ctx_t *ctx)
{
    uint64_t least_ns = UINT64_MAX;
    uint64_t last_ns = ctx->tp->now_ns(ctx);
    for (int steps = 0, reads = 0; steps < STEPS; reads++) {
        const uint64_t now_ns = ctx->tp->now_ns(ctx);
        if (now_ns != last_ns) {
            least_ns = now_ns - last_ns < least_ns ? now_ns - last_ns : least_ns;
            last_ns = now_ns;
            steps++;
            reads = 0;
        } else if (reads > READS_MAX) {
            return steps == 0 ? 0 : least_ns;
        }
    }
    return least_ns;
}

static uint64_t time_turns(hk_ctx_t *ctx, void (*spin)(hk_ctx_t *, uint64_t), uint64_t turns)
{
    const uint64_t start_ns = ctx->tp->now_ns(ctx);
    spin(ctx, turns);
    return ctx->tp->now_ns(ctx) - start_ns;
}

/* The turns that take asked_ns on an uncontended CPU; 0: the clock does not move during the loop. */
static uint64_t calibrate(hk_ctx_t *ctx, void (*spin)(hk_ctx_t *, uint64_t), uint64_t asked_ns)
{
    uint64_t turns = TURNS_FIRST;
    uint64_t best_ns = time_turns(ctx, spin, turns);
    while (best_ns < CALIBRATION_NS && turns < TURNS_MAX) {
        turns *= 2;
        best_ns = time_turns(ctx, spin, turns);
    }
    for (int tries = 1, in_vain = 0; tries < TRIES_MAX && in_vain < TRIES_IN_VAIN && best_ns > 0; tries++) {
        const uint64_t elapsed_ns = time_turns(ctx, spin, turns);
        const bool is_shorter = elapsed_ns > 0 && elapsed_ns < best_ns;
        in_vain = is_shorter ? 0 : in_vain + 1;
        best_ns = is_shorter ? elapsed_ns : best_ns;
    }
    if (best_ns == 0) {
        return 0;
    }
    const double needed = (double)asked_ns * (double)turns / (double)best_ns;
    return needed < 1 ? 1 : (uint64_t)needed;
}

static bool is_virtual(const hk_ctx_t *ctx)
{
    return (ctx->tp->caps & HK_CAP_VIRTUAL) != 0;
}

hk_status_t hk_delay_resolved(hk_ctx_t *ctx, uint64_t asked_ns)
{
    const uint64_t step_ns = is_virtual(ctx) ? 0 : clock_step_ns(ctx);
    if (asked_ns >= step_ns) {
        return HK_OK;
    }
    return hk_fail(HK_ERR_UNSUPPORTED, ctx->rank, "a delay of %llu ns is below the clock resolution of %s, %llu ns",
                   (unsigned long long)asked_ns, ctx->tp->name, (unsigned long long)step_ns);
}

hk_status_t hk_delay_prepare(hk_ctx_t *ctx, hk_delay_kind_t kind, uint64_t asked_ns, hk_delay_t *delay_p)
{
    const hk_transport_t *tp = ctx->tp;
    hk_delay_t delay = {.take = take_none};
    if (asked_ns > 0) {
        HK_TRY(hk_delay_resolved(ctx, asked_ns));
        delay = (hk_delay_t){.take = take, .pass = tp->compute, .amount = asked_ns};
    }
    if (asked_ns > 0 && kind == HK_DELAY_SLEEP) {
        delay.pass = tp->sleep != NULL ? tp->sleep : hk_real_sleep;
    }
    if (asked_ns > 0 && kind == HK_DELAY_LOOP && !is_virtual(ctx)) {
        delay.pass = tp->spin != NULL ? tp->spin : hk_real_spin;
        delay.amount = calibrate(ctx, delay.pass, asked_ns);
        if (delay.amount == 0) {
            return hk_fail(HK_ERR_UNSUPPORTED, ctx->rank,
                           "the clock of %s does not move during a loop: use delay_kind=clock", tp->name);
        }
    }
    *delay_p = delay;
    return HK_OK;
}

bool hk_delay_overlaps(const hk_ctx_t *ctx, const hk_delay_t *delay)
{
    return ctx->tp->overlap != NULL && delay->amount > 0 && delay->pass == ctx->tp->compute;
}

void hk_delay_overlapped(hk_ctx_t *ctx, hk_delay_t *delay, hk_req_t *req, bool (*next)(void *arg), void *arg)
{
    const uint64_t start_ns = ctx->tp->now_ns(ctx);
    ctx->tp->overlap(ctx, delay->amount, req, next, arg);
    delay->taken_ns += (double)(ctx->tp->now_ns(ctx) - start_ns);
    delay->count += 1;
}

hk_status_t hk_compute_prepare(hk_ctx_t *ctx, const int64_t *option, bool sends, bool receives, hk_delay_t *delay_p)
{
    const int64_t delay_us = sends ? option[HK_COMPUTE_SENDER] : receives ? option[HK_COMPUTE_RECEIVER] : 0;
    return hk_delay_prepare(ctx, HK_DELAY_CLOCK, (uint64_t)delay_us * 1000, delay_p);
}

bool hk_delay_counter(const hk_delay_t *delay, size_t i, hk_counter_t *counter_p)
{
    *counter_p = i == 0 ? (hk_counter_t){"delays", delay->count} : (hk_counter_t){"delay_ns", delay->taken_ns};
    return i < 2;
}

bool hk_state_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    return hk_delay_counter(run->state, i, counter_p);
}

bool hk_compute_counter(const int64_t *option, const hk_delay_t *delay, size_t i, hk_counter_t *counter_p)
{
    const bool computes = option[HK_COMPUTE_SENDER] > 0 || option[HK_COMPUTE_RECEIVER] > 0;
    return computes && hk_delay_counter(delay, i, counter_p);
}
