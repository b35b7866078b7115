/* Rounds (the circle method of tournaments, T. P. Kirkman 1847): ping-pong in disjoint pairs, all at once. In P - 1
 * rounds (P, if P is odd) every rank meets every other. The time is half a round trip; each rank's samples describe
 * its pair. If P is odd, one rank is idle in each round. */
#include <stdio.h>

#include "roundtrip.h"

enum { ROUNDS_ROUND };

static int rounds_count(int size)
{
    return size % 2 == 0 ? size - 1 : size;
}

/* The partner in this round. The numbers of two partners add up to twice the round, modulo the ranks on a circle.
 * The rank that would meet itself meets the last rank (P even) or is idle (-1). */
static int rounds_peer(const hk_run_t *run)
{
    const int size = run->ctx->size;
    const int rank = run->ctx->rank;
    const int count = rounds_count(size);
    const int round = (int)run->option[ROUNDS_ROUND];
    if (rank == count) {
        return round % count;
    }
    const int peer = (2 * round - rank + 2 * count) % count;
    if (peer != rank) {
        return peer;
    }
    return size % 2 == 0 ? size - 1 : -1;
}

static bool rounds_fits(const hk_run_t *run, char *why, size_t len)
{
    const int size = run->ctx->size;
    const int round = (int)run->option[ROUNDS_ROUND];
    snprintf(why, len, "%d ranks need only %d rounds, so there is no round %d", size, rounds_count(size), round);
    return round <= rounds_count(size);
}

static hk_plan_t rounds_plan(const hk_run_t *run)
{
    const uint64_t paired = (uint64_t)(run->ctx->size / 2) * 2;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .bytes_per_rep = paired * run->bytes,
                       .messages_per_rep = paired,
                       .divisor = 2};
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
    *expected_p = (hk_expected_t){.len_bytes = run->bytes, .from_rank = peer};
    return i == 0 && peer >= 0;
}

const hk_pattern_t hk_pattern_rounds = {
    .name = "rounds",
    .summary = "ping-pong in disjoint pairs, all at once; in P - 1 rounds every rank meets every other",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_ROUND,
    .option = {{"round", NULL, 1, 1, 4095, "number of the round"}},
    .fits = rounds_fits,
    .plan = rounds_plan,
    .meet = rounds_meet,
    .repeat = rounds_repeat,
    .expected = rounds_expected,
};
