/* Pairs (ATLAS Com-1.4; osu_mbw_mr, and Uniband and Biband of IMB): each rank of the first half sends one-way to its
 * partner in the second half, or both do, all pairs at once. The time per message is the mean over the sources, or that
 * of all ranks. */
#include "flow.h"
#include "halves.h"
#include "start.h"

enum { PAIRS_WAYS = HK_FLOW_OPTIONS_COUNT, PAIRS_START, PAIRS_TIME };
enum { PAIRS_ONE, PAIRS_BOTH };

static bool pairs_both(const hk_run_t *run)
{
    return run->option[PAIRS_WAYS] == PAIRS_BOTH;
}

static hk_plan_t pairs_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_SOURCES, HK_TIMED_MEAN, HK_TIMED_SLOWEST};
    hk_plan_t plan = hk_flow_plan(run, run->ctx->size / 2, pairs_both(run));
    plan.timed = timed[run->option[PAIRS_TIME]];
    return plan;
}

static hk_status_t pairs_stream(hk_run_t *run, uint64_t reps)
{
    const int peer = hk_halves_peer(run->ctx);
    const bool begins = run->ctx->rank < peer;
    if (pairs_both(run)) {
        return hk_flow_both(run, peer, begins, reps);
    }
    return begins ? hk_flow_send(run, peer, reps, NULL) : hk_flow_receive(run, peer, reps, NULL);
}

static hk_status_t pairs_repeat(hk_run_t *run, uint64_t reps)
{
    return run->option[PAIRS_START] == HK_FROM_BARRIER ? hk_from_barriers(run, reps, pairs_stream)
                                                       : pairs_stream(run, reps);
}

static hk_status_t pairs_meet(hk_run_t *run)
{
    const int peer = hk_halves_peer(run->ctx);
    return pairs_both(run) ? hk_start_pair(run, peer, run->ctx->rank < peer) : hk_halves_meet(run);
}

static bool pairs_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_halves_peer(run->ctx);
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = peer};
    return (peer < run->ctx->rank || pairs_both(run)) &&
           i < hk_flow_places(run->bytes, (size_t)run->option[HK_FLOW_WINDOW]);
}

const hk_pattern_t hk_pattern_pairs = {
    .name = "pairs",
    .summary =
        "every rank of the first half sends to its partner in the second half, all at once; mean time per message",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 2,
    .untouched = true,
    .timed = HK_TIMED_SOURCES,
    .law = HK_LAW_CONSTANT,
    .links = HK_LINKS_HALVES,
    .alone = "oneway",
    .stream = true,
    .option = {HK_FLOW_OPTIONS,
               {"ways", "one|both", PAIRS_ONE, 0, 0,
                "both: the second half sends, too; time per message sent or received"},
               HK_OPTION_START,
               {"time", "sources|mean|slowest", 0, 0, 0, "whose time counts: sources are the first half"},
               HK_MEMORY_OPTION},
    .fits = hk_flow_fits,
    .plan = pairs_plan,
    .meet = pairs_meet,
    .repeat = pairs_repeat,
    .expected = pairs_expected,
};
