#include "threads.h"

#include "../sync.h"

hk_status_t hk_threads_open(hk_run_t *run, int contexts, hk_apart_t apart, hk_match_t match, int count,
                            size_t reqs_count, size_t state_bytes)
{
    hk_threads_t *threads = run->state;
    hk_ctx_t *ctx = run->ctx;
    const bool stays = run->option[HK_THREADS_CPUS] != 0;
    const hk_status_t opened = hk_team_open(run, count, reqs_count, state_bytes, stays, &threads->team);
    hk_status_t status = HK_OK;
    while (status == HK_OK && threads->contexts < contexts) {
        hk_ctx_t **next_p = opened == HK_OK ? &threads->context[threads->contexts] : NULL;
        status = ctx->tp->open_thread(ctx, threads->contexts, apart, match, next_p);
        threads->contexts += status == HK_OK;
    }
    status = opened == HK_OK ? status : opened;
    for (int i = 0; i < count && status == HK_OK; i++) {
        hk_team_run(threads->team, i)->ctx = threads->context[i];
    }
    if (status != HK_OK) {
        hk_threads_finish(run);
    }
    return status;
}

hk_status_t hk_threads_finish(hk_run_t *run)
{
    hk_threads_t *threads = run->state;
    if (threads->team != NULL) {
        hk_team_close(threads->team);
    }
    while (threads->contexts > 0) {
        run->ctx->tp->close_thread(threads->context[--threads->contexts]);
    }
    return HK_OK;
}

size_t hk_threads_stride(size_t size_bytes)
{
    enum { SEPARATE_BYTES = 256 };
    return (size_bytes + SEPARATE_BYTES - 1) / SEPARATE_BYTES * SEPARATE_BYTES + SEPARATE_BYTES;
}

/* Ranks meet once more when all their threads are awake. */
hk_status_t hk_threads_meet(hk_run_t *run)
{
    hk_team_wake(((hk_threads_t *)run->state)->team);
    return hk_sync(run->ctx);
}

hk_status_t hk_threads_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const uint64_t began_ns = ctx->tp->now_ns(ctx);
    uint64_t took_ns = 0;
    HK_TRY(hk_team_repeat(((hk_threads_t *)run->state)->team, reps, run->option[HK_THREADS_TIME] == HK_THREADS_SLOWEST,
                          &took_ns));
    run->untimed_ns += ctx->tp->now_ns(ctx) - began_ns - took_ns;
    return HK_OK;
}
