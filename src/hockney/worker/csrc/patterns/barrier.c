/* Barrier: successive barriers over all ranks; the slowest rank's time for one. */
#include "../collectives.h"
#include "../pattern.h"

enum { BARRIER_ALGORITHM };
enum { BARRIER_AUTO, BARRIER_NATIVE, BARRIER_PORTABLE };

static bool barrier_is_native(const hk_transport_t *tp, const int64_t *option)
{
    return option[BARRIER_ALGORITHM] == BARRIER_NATIVE ||
           (option[BARRIER_ALGORITHM] == BARRIER_AUTO && tp->barrier != NULL);
}

static hk_plan_t barrier_plan(const hk_run_t *run)
{
    const bool native = barrier_is_native(run->ctx->tp, run->option);
    return (hk_plan_t){.divisor = 1, .algorithm = native ? "native" : "portable"};
}

static hk_status_t barrier_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const bool native = barrier_is_native(ctx->tp, run->option);
    hk_status_t (*const barrier)(hk_ctx_t *) = native ? ctx->tp->barrier : hk_portable_barrier;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(barrier(ctx));
    }
    return HK_OK;
}

const hk_pattern_t hk_pattern_barrier = {
    .name = "barrier",
    .summary = "no rank continues before all have arrived; the slowest rank's time",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .law = HK_LAW_ROUNDS,
    .stream = true,
    .unsized = true,
    .collective = HK_BARRIER,
    .native = barrier_is_native,
    .option = {{"algorithm", "auto|native|portable", BARRIER_AUTO, 0, 0,
                "the transport's barrier, or dissemination over messages; auto: native if it exists"}},
    .plan = barrier_plan,
    .repeat = barrier_repeat,
};
