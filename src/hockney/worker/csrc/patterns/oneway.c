/* One-way (ATLAS Com-1.1; "pingping" of mpptest): rank 0 sends, rank 1 receives; the time per message on the sender's
 * side, with the last acknowledgement or without any. It is not half a round trip. */
#include "flow.h"

static hk_status_t plan(const hk_run_t *run, hk_plan_t *plan_p)
{
    return hk_flow_plan(run, 1, plan_p);
}

static hk_status_t repeat(hk_run_t *run, uint64_t reps)
{
    switch (run->ctx->rank) {
    case 0:
        return hk_flow_send(run, 1, reps);
    case 1:
        return hk_flow_receive(run, 0, reps);
    default:
        return HK_OK;
    }
}

static bool expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .len_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank == 1 && i < hk_flow_places(run->bytes, run->reqs_count);
}

const hk_pattern_t hk_pattern_oneway = {
    .name = "oneway",
    .summary = "messages from rank 0 to rank 1; time per message on the sender's side",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_ROOT,
    .sized = true,
    .option = {HK_FLOW_OPTIONS},
    .plan = plan,
    .repeat = repeat,
    .expected = expected,
};
