/* Multicast (ATLAS Com-1.6): rank 0 sends the same buffer to every other rank. The time is rank 0's, including the
 * acknowledgements of the last messages, or until its sends have returned.
 * "flat": a message to each, all at once. "native": the transport's broadcast. */
#include "flow.h"

enum { MULTICAST_UNTIL = HK_FLOW_UNTIL, MULTICAST_ALGORITHM };
enum { MULTICAST_FLAT, MULTICAST_NATIVE };

static bool multicast_is_native(const hk_transport_t *tp, const int64_t *option)
{
    (void)tp;
    return option[MULTICAST_ALGORITHM] == MULTICAST_NATIVE;
}

static hk_plan_t multicast_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_flow_root_plan(run);
    plan.algorithm = multicast_is_native(run->ctx->tp, run->option) ? "native" : "portable";
    return plan;
}

static hk_status_t repeat_native(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const broadcast)(hk_ctx_t *, int, const void *, void *, size_t) = ctx->tp->broadcast;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(broadcast(ctx, 0, run->out, run->in, run->bytes));
    }
    return HK_OK;
}

static hk_status_t multicast_repeat(hk_run_t *run, uint64_t reps)
{
    HK_TRY(multicast_is_native(run->ctx->tp, run->option) ? repeat_native(run, reps) : hk_flow_from_root(run, 0, reps));
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
    .collective = HK_BROADCAST,
    .native = multicast_is_native,
    .option = {HK_FLOW_OPTION_UNTIL,
               {"algorithm", "flat|native", MULTICAST_FLAT, 0, 0, "a message to each, or the transport's broadcast"}},
    .plan = multicast_plan,
    .repeat = multicast_repeat,
    .expected = multicast_expected,
};
