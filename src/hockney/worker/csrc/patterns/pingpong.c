/* Ping-pong: the source sends, the target answers with a message of the same length; half the round trip, timed on the
 * source. Ranks 0 and 1 unless the options name others; the rest idles. */
#include "roundtrip.h"

static hk_plan_t pingpong_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .bytes_per_rep = 2 * run->bytes,
                       .messages_per_rep = 2,
                       .divisor = 2,
                       .root = hk_source(run->option)};
}

static hk_status_t pingpong_repeat(hk_run_t *run, uint64_t reps)
{
    const int rank = run->ctx->rank;
    const int peer = hk_role_peer(rank, run->option);
    return peer < 0 ? HK_OK : hk_round_trips(run, peer, rank == hk_source(run->option), reps);
}

static hk_status_t pingpong_meet(hk_run_t *run)
{
    return hk_roles_meet(run, run->option);
}

static bool pingpong_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    *expected_p = (hk_expected_t){.len_bytes = run->bytes, .from_rank = peer};
    return i == 0 && peer >= 0;
}

const hk_pattern_t hk_pattern_pingpong = {
    .name = "pingpong",
    .summary = "one message to and fro between two ranks; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_ROOT,
    .sized = true,
    .option = {HK_ROLES_OPTIONS},
    .fits = hk_roles_fit,
    .plan = pingpong_plan,
    .meet = pingpong_meet,
    .meet_ranks_min = HK_MEET_RANKS_MIN,
    .repeat = pingpong_repeat,
    .expected = pingpong_expected,
};
