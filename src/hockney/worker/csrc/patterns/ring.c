/* Ring (multiple_pairs of the Cray T3D report, with messages): every rank sends to the rank `distance` after it and
 * receives from the rank `distance` before it, all at once. The time is the mean over all ranks. */
#include "distance.h"

static hk_plan_t ring_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_ring_plan(run);
    plan.reqs_count = 2;
    return plan;
}

static hk_status_t ring_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int next = hk_ring_next(run);
    const int previous = hk_ring_previous(run);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->irecv(ctx, previous, run->in, run->bytes, &run->reqs[0]));
        HK_TRY(tp->isend(ctx, next, run->out, run->bytes, &run->reqs[1]));
        HK_TRY(tp->wait_all(ctx, run->reqs, 2));
    }
    return HK_OK;
}

const hk_pattern_t hk_pattern_ring = {
    .name = "ring",
    .summary = "every rank sends to the rank `distance` after it, all at once; mean time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .stream = true,
    .option = {HK_RING_OPTION_DISTANCE},
    .fits = hk_ring_fits,
    .plan = ring_plan,
    .repeat = ring_repeat,
    .expected = hk_ring_expected,
};
