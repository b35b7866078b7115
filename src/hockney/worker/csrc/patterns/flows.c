/* Flows: one-way messages in the disjoint pairs of a round (tournament.h), all at once and all in one direction: `up`
 * from the lower rank of each pair to the higher one. The time per message, by the slowest rank; each rank's own
 * samples are its pair's, so all rounds in both directions give the rate from every rank to every other. */
#include "flow.h"
#include "roundtrip.h"
#include "tournament.h"

enum { FLOWS_ROUND = HK_FLOW_OPTIONS_COUNT, FLOWS_DIRECTION };
enum { FLOWS_UP, FLOWS_DOWN };

static int flows_peer(const hk_run_t *run)
{
    return hk_tournament_peer(run->ctx, run->option[FLOWS_ROUND]);
}

static bool flows_sends(const hk_run_t *run, int peer)
{
    return (run->ctx->rank < peer) == (run->option[FLOWS_DIRECTION] == FLOWS_UP);
}

static bool flows_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_flow_fits(run, why, len) && hk_tournament_has(run->ctx, run->option[FLOWS_ROUND], why, len);
}

static hk_plan_t flows_plan(const hk_run_t *run)
{
    return hk_flow_plan(run, run->ctx->size / 2, false);
}

static hk_status_t flows_repeat(hk_run_t *run, uint64_t reps)
{
    const int peer = flows_peer(run);
    if (peer < 0) {
        return HK_OK;
    }
    return flows_sends(run, peer) ? hk_flow_send(run, peer, reps, NULL) : hk_flow_receive(run, peer, reps, NULL);
}

static hk_status_t flows_meet(hk_run_t *run)
{
    const int peer = flows_peer(run);
    return hk_meet(run, peer, peer >= 0 && flows_sends(run, peer));
}

static bool flows_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = flows_peer(run);
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = peer};
    return peer >= 0 && !flows_sends(run, peer) && i < hk_flow_places(run->bytes, run->reqs_count);
}

const hk_pattern_t hk_pattern_flows = {
    .name = "flows",
    .summary =
        "one-way messages in disjoint pairs, all at once, in P - 1 rounds for all pairs; slowest rank, per message",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_ROUND,
    .stream = true,
    .option = {HK_FLOW_OPTIONS,
               HK_TOURNAMENT_OPTION,
               {"direction", "up|down", FLOWS_UP, 0, 0, "from the lower rank of each pair to the higher one, or back"}},
    .fits = flows_fits,
    .plan = flows_plan,
    .meet = flows_meet,
    .repeat = flows_repeat,
    .expected = flows_expected,
};
