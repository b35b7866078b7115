/* Multicast (ATLAS Com-1.6): rank 0 sends the same buffer to every other rank. The time is rank 0's, including the
 * acknowledgements of the last messages, or until its sends have returned. The library's broadcast is the pattern
 * bcast. */
#include "flow.h"

static hk_status_t multicast_repeat(hk_run_t *run, uint64_t reps)
{
    HK_TRY(hk_flow_from_root(run, 0, reps));
    return hk_flow_acknowledge_root(run);
}

static bool multicast_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank > 0 && i == 0;
}

const hk_pattern_t hk_pattern_multicast = {
    .name = "multicast",
    .summary = "rank 0 sends the same message to every other rank; its time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .option = {HK_FLOW_OPTION_UNTIL},
    .plan = hk_flow_root_plan,
    .repeat = multicast_repeat,
    .expected = multicast_expected,
};
