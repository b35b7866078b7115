/* Pairs (ATLAS Com-1.4): each rank of the first half sends one-way to its partner in the second half, all at once.
 * The time per message is the mean over the sources. */
#include "flow.h"
#include "roundtrip.h"

static hk_plan_t pairs_plan(const hk_run_t *run)
{
    return hk_flow_plan(run, run->ctx->size / 2);
}

static hk_status_t pairs_repeat(hk_run_t *run, uint64_t reps)
{
    const int half = run->ctx->size / 2;
    const int rank = run->ctx->rank;
    return rank < half ? hk_flow_send(run, rank + half, reps, NULL) : hk_flow_receive(run, rank - half, reps, NULL);
}

static hk_status_t pairs_meet(hk_run_t *run)
{
    const int half = run->ctx->size / 2;
    const int rank = run->ctx->rank;
    return hk_meet(run, rank < half ? rank + half : rank - half, rank < half);
}

static bool pairs_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int half = run->ctx->size / 2;
    *expected_p =
        (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = run->ctx->rank - half};
    return run->ctx->rank >= half && i < hk_flow_places(run->bytes, run->reqs_count);
}

const hk_pattern_t hk_pattern_pairs = {
    .name = "pairs",
    .summary =
        "every rank of the first half sends to its partner in the second half, all at once; mean time per message",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 2,
    .timed = HK_TIMED_SOURCES,
    .law = HK_LAW_CONSTANT,
    .links = HK_LINKS_HALVES,
    .alone = "oneway",
    .stream = true,
    .option = {HK_FLOW_OPTIONS},
    .plan = pairs_plan,
    .meet = pairs_meet,
    .repeat = pairs_repeat,
    .expected = pairs_expected,
};
