/* Repetitions back to back, or each after a barrier that does not count, as in the OSU benchmarks. */
#ifndef HK_START_H
#define HK_START_H

#include "../pattern.h"
#include "../sync.h"

enum { HK_FROM_STREAM, HK_FROM_BARRIER };

// clang-format off
#define HK_OPTION_START \
    {"start", "stream|barrier", HK_FROM_STREAM, 0, 0, "repetitions back to back, or each after a barrier"}
// clang-format on

/* `reps` repetitions, each after a barrier of all ranks; the time from there on counts. */
static inline hk_status_t hk_from_barriers(hk_run_t *run, uint64_t reps, hk_status_t (*repeat)(hk_run_t *, uint64_t))
{
    hk_ctx_t *ctx = run->ctx;
    uint64_t (*const now_ns)(hk_ctx_t *) = ctx->tp->now_ns;
    const uint64_t began_ns = now_ns(ctx);
    uint64_t timed_ns = 0;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(hk_sync(ctx));
        const uint64_t start_ns = now_ns(ctx);
        HK_TRY(repeat(run, 1));
        timed_ns += now_ns(ctx) - start_ns;
    }
    run->untimed_ns += now_ns(ctx) - began_ns - timed_ns;
    return HK_OK;
}

#endif
