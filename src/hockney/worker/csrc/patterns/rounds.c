/* Rounds: ping-pong in the disjoint pairs of a round (tournament.h), all at once. Half the round trip; each rank's own
 * samples are its pair's. */
#include "roundtrip.h"
#include "tournament.h"

enum { ROUNDS_ROUND };

static int rounds_peer(const hk_run_t *run)
{
    return hk_tournament_peer(run->ctx, run->option[ROUNDS_ROUND]);
}

static bool rounds_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_tournament_has(run->ctx, run->option[ROUNDS_ROUND], why, len);
}

static hk_plan_t rounds_plan(const hk_run_t *run)
{
    const uint64_t paired = (uint64_t)(run->ctx->size / 2) * 2;
    return (hk_plan_t){HK_ONE_EACH(run), HK_MOVES(run, paired), .divisor = 2};
}

static hk_status_t rounds_repeat(hk_run_t *run, uint64_t reps)
{
    const int peer = rounds_peer(run);
    return peer < 0 ? HK_OK : hk_round_trips(run, peer, run->ctx->rank < peer, reps);
}

static hk_status_t rounds_meet(hk_run_t *run)
{
    const int peer = rounds_peer(run);
    return hk_meet(run, peer, run->ctx->rank < peer);
}

static bool rounds_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = rounds_peer(run);
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = peer};
    return i == 0 && peer >= 0;
}

const hk_pattern_t hk_pattern_rounds = {
    .name = "rounds",
    .summary = "ping-pong in disjoint pairs, all at once, in P - 1 rounds for all pairs; half the slowest round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_ROUND,
    .option = {HK_TOURNAMENT_OPTION, HK_MEMORY_OPTION},
    .fits = rounds_fits,
    .plan = rounds_plan,
    .meet = rounds_meet,
    .repeat = rounds_repeat,
    .expected = rounds_expected,
};
