/* Bisection (mpptest; osu_multi_lat, and PingPong of IMB-P2P): ranks i and i + P/2 do round trips, all pairs at once.
 * The time is half a round trip on the slowest rank, or the mean. The rate is the sum over all pairs, in one direction
 * at a time. */
#include "halves.h"
#include "start.h"

enum { BISECTION_START, BISECTION_TIME };

static hk_plan_t bisection_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN, HK_TIMED_SOURCES};
    const uint64_t size = (uint64_t)run->ctx->size;
    return (hk_plan_t){HK_ONE_EACH(run), HK_MOVES(run, size), .divisor = 2,
                       .timed = timed[run->option[BISECTION_TIME]]};
}

static hk_status_t bisection_stream(hk_run_t *run, uint64_t reps)
{
    const int peer = hk_halves_peer(run->ctx);
    return hk_round_trips(run, peer, run->ctx->rank < peer, reps);
}

static hk_status_t bisection_repeat(hk_run_t *run, uint64_t reps)
{
    return run->option[BISECTION_START] == HK_FROM_BARRIER ? hk_from_barriers(run, reps, bisection_stream)
                                                           : bisection_stream(run, reps);
}

const hk_pattern_t hk_pattern_bisection = {
    .name = "bisection",
    .summary = "two halves of the ranks: round trips of partners in the two, all at once; half the slowest round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .ranks_step = 2,
    .untouched = true,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_HALVES,
    .alone = "pingpong",
    .stream = true,
    .option = {HK_OPTION_START,
               {"time", "slowest|mean|sources", 0, 0, 0, "whose time counts: sources are the first half"},
               HK_MEMORY_OPTION},
    .plan = bisection_plan,
    .meet = hk_halves_meet,
    .repeat = bisection_repeat,
    .expected = hk_halves_expected,
};
