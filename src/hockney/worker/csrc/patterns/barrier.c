/* Barrier: successive barriers over all ranks; the slowest rank's time for one. */
#include <stdio.h>

#include "../collectives.h"
#include "../pattern.h"

enum { BARRIER_ALGORITHM };
enum { BARRIER_AUTO, BARRIER_NATIVE, BARRIER_PORTABLE };

static bool barrier_is_native(const hk_run_t *run)
{
    return run->option[BARRIER_ALGORITHM] != BARRIER_PORTABLE && run->ctx->tp->barrier != NULL;
}

static bool barrier_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    if (run->option[BARRIER_ALGORITHM] == BARRIER_NATIVE) {
        snprintf(why, len, "%s has no barrier of its own", tp->name);
        return tp->barrier != NULL;
    }
    snprintf(why, len, "%s has no messages to make a barrier of", tp->name);
    return barrier_is_native(run) || (tp->caps & HK_CAP_SEND) != 0;
}

static hk_plan_t barrier_plan(const hk_run_t *run)
{
    return (hk_plan_t){.divisor = 1, .algorithm = barrier_is_native(run) ? "native" : "portable"};
}

static hk_status_t barrier_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const barrier)(hk_ctx_t *) = barrier_is_native(run) ? ctx->tp->barrier : hk_portable_barrier;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = barrier(ctx);
    }
    return status;
}

const hk_pattern_t hk_pattern_barrier = {
    .name = "barrier",
    .summary = "no rank goes on before all have come; the slowest rank's time",
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_SLOWEST,
    .sized = false,
    .option = {{"algorithm", "auto|native|portable", BARRIER_AUTO, 0, 0,
                "the library's own barrier, or dissemination over messages; auto: its own if it has one"}},
    .fits = barrier_fits,
    .plan = barrier_plan,
    .repeat = barrier_repeat,
};
