/* What a repetition takes by itself, to compute for as long while it is under way. */
#ifndef HK_PURE_H
#define HK_PURE_H

#include "../pattern.h"
#include "../sync.h"

/* The mean of a loop's repetitions after a warm-up. All ranks meet before and after. */
static inline hk_status_t hk_time_pure(hk_run_t *run, hk_status_t (*loop)(hk_run_t *, uint64_t), uint64_t *pure_ns_p)
{
    enum { PURE_REPS = 20, PURE_WARMUP = PURE_REPS / 4 };
    hk_ctx_t *ctx = run->ctx;
    HK_TRY(hk_sync(ctx));
    HK_TRY(loop(run, PURE_WARMUP));
    const uint64_t start_ns = ctx->tp->now_ns(ctx), untimed_ns = run->untimed_ns;
    HK_TRY(loop(run, PURE_REPS));
    *pure_ns_p = (ctx->tp->now_ns(ctx) - start_ns - (run->untimed_ns - untimed_ns)) / PURE_REPS;
    return hk_sync(ctx);
}

#endif
