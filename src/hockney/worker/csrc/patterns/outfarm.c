/* Outfarming (ATLAS Com-1.5): rank 0 sends a different message to every other rank, all at once. The time is rank
 * 0's, including the acknowledgements of the last messages, or until its sends have returned. */
#include "flow.h"

static hk_plan_t outfarm_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_flow_root_plan(run);
    plan.out_bytes *= (size_t)run->ctx->size - 1;
    return plan;
}

static hk_status_t outfarm_repeat(hk_run_t *run, uint64_t reps)
{
    HK_TRY(hk_flow_from_root(run, run->bytes, reps));
    return hk_flow_acknowledge_root(run);
}

static bool outfarm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const size_t place = (size_t)run->ctx->rank - 1;
    *expected_p = (hk_expected_t){.from_offset = place * run->bytes, .size_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank > 0 && i == 0;
}

const hk_pattern_t hk_pattern_outfarm = {
    .name = "outfarm",
    .summary = "rank 0 sends a different message to every other rank; its time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .option = {HK_FLOW_OPTION_UNTIL},
    .plan = outfarm_plan,
    .repeat = outfarm_repeat,
    .expected = outfarm_expected,
};
