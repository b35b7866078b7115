/* Ping-pong of puts (ping_pong of the Cray T3D report): the source writes into the memory of the target, which waits
 * for the last word and writes the same number of bytes back. The time is half a round trip on the source.
 *
 * The last word holds the number of the round trip, so no stale value matches. */
#include "puts.h"
#include "roundtrip.h"

/* The number of the last round trip since the first repetition. */
typedef struct trips {
    uint64_t number;
} trips_t;

static hk_plan_t putpong_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .state_bytes = sizeof(trips_t),
                       .bytes_per_rep = 2 * run->bytes,
                       .messages_per_rep = 2,
                       .divisor = 2,
                       .root = hk_source(run->option)};
}

static inline hk_status_t round_trips(hk_run_t *run, uint64_t reps, bool is_long)
{
    const int source = hk_source(run->option);
    const int target = hk_target(run->option);
    trips_t *trips = run->state;
    const uint64_t end = trips->number + reps;
    if (run->ctx->rank == source) {
        for (uint64_t number = trips->number + 1; number <= end; number++) {
            HK_TRY(hk_hand_over(run, target, number, is_long));
            HK_TRY(hk_await(run, number));
        }
    } else if (run->ctx->rank == target) {
        for (uint64_t number = trips->number + 1; number <= end; number++) {
            HK_TRY(hk_await(run, number));
            HK_TRY(hk_hand_over(run, source, number, is_long));
        }
    }
    trips->number = end;
    return run->ctx->tp->quiet(run->ctx);
}

static hk_status_t putpong_repeat(hk_run_t *run, uint64_t reps)
{
    return run->bytes == HK_WORD_BYTES ? round_trips(run, reps, false) : round_trips(run, reps, true);
}

/* Exchange one word, for the same reason as hk_meet. The rest of a message is not needed. */
static hk_status_t putpong_meet(hk_run_t *run)
{
    return round_trips(run, 1, false);
}

/* All except the last word, which the wait has verified. */
static bool putpong_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    *expected_p = (hk_expected_t){.size_bytes = run->bytes - HK_WORD_BYTES, .from_rank = peer};
    return i == 0 && peer >= 0;
}

const hk_pattern_t hk_pattern_putpong = {
    .name = "putpong",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "one put back and forth between two ranks, each waiting for the last word; half the round trip",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .grain_bytes = HK_WORD_BYTES,
    .option = {HK_ROLES_OPTIONS},
    .fits = hk_roles_fit,
    .plan = putpong_plan,
    .meet = putpong_meet,
    .repeat = putpong_repeat,
    .expected = putpong_expected,
};
