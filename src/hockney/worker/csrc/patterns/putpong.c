/* Ping-pong of puts (ping_pong of the Cray T3D report): the source writes into the memory of the target, which notices
 * and writes the same number of bytes back. The time is half a round trip on the source.
 *
 * How a rank notices: sync=word: it waits for the last word, which holds the number of the round trip, so that no stale
 * value matches. signal: for a word that the put writes when it has ended. fence, pscw: at the end of an epoch, as in
 * osu_put_latency. */
#include <stdio.h>

#include "epoch.h"
#include "puts.h"
#include "roundtrip.h"

enum { PUTPONG_SYNC = HK_ROLE_TARGET + 1 };
enum { PUTPONG_WORD, PUTPONG_SIGNAL, PUTPONG_FENCE, PUTPONG_FENCES, PUTPONG_PSCW };
enum { PUTPONG_SIGNAL_AWAY_BYTES = 128 }; /* behind the message: no line, nor its neighbour, has both */

typedef struct trips {
    uint64_t number; /* of the last round trip since the first repetition */
    int peer;
    hk_epoch_t there, back; /* of the source's access, and of the target's */
} trips_t;

static hk_epoch_kind_t putpong_epoch(const hk_run_t *run)
{
    switch (run->option[PUTPONG_SYNC]) {
    case PUTPONG_FENCE:
        return HK_EPOCH_FENCE;
    case PUTPONG_FENCES:
        return HK_EPOCH_FENCES;
    case PUTPONG_PSCW:
        return HK_EPOCH_PSCW;
    default:
        return HK_NO_EPOCH;
    }
}

static bool putpong_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    if (run->option[PUTPONG_SYNC] == PUTPONG_SIGNAL && (tp->caps & HK_CAP_SIGNAL) == 0) {
        snprintf(why, len, "%s has no put with a signal%s; sync=word does without", tp->name,
                 strncmp(tp->name, "shmem", 5) == 0 ? ", which came with OpenSHMEM 1.5" : "");
        return false;
    }
    if (putpong_epoch(run) != HK_NO_EPOCH && (tp->caps & HK_CAP_EPOCHS) == 0) {
        snprintf(why, len, "%s has no epochs; sync=word does without", tp->name);
        return false;
    }
    return hk_roles_fit(run, why, len) && hk_epoch_fits(run, putpong_epoch(run), why, len);
}

static hk_plan_t putpong_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes + PUTPONG_SIGNAL_AWAY_BYTES + HK_WORD_BYTES,
                       .state_bytes = sizeof(trips_t),
                       HK_MOVES(run, 2),
                       .divisor = 2,
                       .root = hk_source(run->option)};
}

/* ---- loops: what a rank does is a constant in each call -----------------------------------------------------------
 */

static inline hk_status_t putpong_word_loop(hk_run_t *run, uint64_t reps, const bool begins, const bool is_long)
{
    trips_t *trips = run->state;
    const uint64_t end = trips->number + reps;
    for (uint64_t number = trips->number + 1; number <= end; number++) {
        HK_TRY(begins ? hk_hand_over(run, trips->peer, number, is_long) : hk_await(run, number));
        HK_TRY(begins ? hk_await(run, number) : hk_hand_over(run, trips->peer, number, is_long));
    }
    trips->number = end;
    return run->ctx->tp->quiet(run->ctx);
}

static hk_status_t putpong_words(hk_run_t *run, uint64_t reps, bool begins, bool is_long)
{
    return begins    ? is_long ? putpong_word_loop(run, reps, true, true) : putpong_word_loop(run, reps, true, false)
           : is_long ? putpong_word_loop(run, reps, false, true)
                     : putpong_word_loop(run, reps, false, false);
}

static inline hk_status_t putpong_signals(hk_run_t *run, uint64_t reps, const bool begins)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    trips_t *trips = run->state;
    uint64_t *signal = (uint64_t *)(void *)(run->in + run->bytes + PUTPONG_SIGNAL_AWAY_BYTES);
    const uint64_t end = trips->number + reps;
    for (uint64_t number = trips->number + 1; number <= end; number++) {
        HK_TRY(begins ? tp->put_signal(ctx, trips->peer, run->in, run->out, run->bytes, signal, number) : HK_OK);
        HK_TRY(tp->wait_word(ctx, signal, number));
        HK_TRY(!begins ? tp->put_signal(ctx, trips->peer, run->in, run->out, run->bytes, signal, number) : HK_OK);
    }
    trips->number = end;
    return tp->quiet(ctx);
}

/* One epoch of two. */
static inline hk_status_t putpong_one_way(hk_run_t *run, hk_epoch_t *epoch, const bool opens, const bool puts)
{
    hk_ctx_t *ctx = run->ctx;
    HK_TRY(opens ? epoch->begin(ctx, epoch) : HK_OK);
    HK_TRY(puts ? ctx->tp->put_start(ctx, epoch->to[0], run->in, run->out, run->bytes) : HK_OK);
    return epoch->end(ctx, epoch);
}

static inline hk_status_t putpong_epochs(hk_run_t *run, uint64_t reps, const bool opens, const bool begins,
                                         const bool answers)
{
    trips_t *trips = run->state;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(putpong_one_way(run, &trips->there, opens, begins));
        HK_TRY(putpong_one_way(run, &trips->back, opens, answers));
    }
    return HK_OK;
}

static hk_status_t putpong_repeat(hk_run_t *run, uint64_t reps)
{
    const trips_t *trips = run->state;
    const bool is_idle = trips->peer < 0, begins = run->ctx->rank == hk_source(run->option);
    const bool opens = trips->there.begin != NULL;
    if (is_idle && !hk_takes_part(&trips->there)) {
        return HK_OK;
    }
    switch (run->option[PUTPONG_SYNC]) {
    case PUTPONG_WORD:
        return putpong_words(run, reps, begins, run->bytes != HK_WORD_BYTES);
    case PUTPONG_SIGNAL:
        return begins ? putpong_signals(run, reps, true) : putpong_signals(run, reps, false);
    default:
        return is_idle  ? opens ? putpong_epochs(run, reps, true, false, false)
                                : putpong_epochs(run, reps, false, false, false)
               : begins ? opens ? putpong_epochs(run, reps, true, true, false)
                                : putpong_epochs(run, reps, false, true, false)
               : opens  ? putpong_epochs(run, reps, true, false, true)
                        : putpong_epochs(run, reps, false, false, true);
    }
}

static hk_status_t putpong_prepare(hk_run_t *run)
{
    trips_t *trips = run->state;
    const int rank = run->ctx->rank;
    const bool begins = rank == hk_source(run->option);
    trips->peer = hk_role_peer(rank, run->option);
    const hk_epoch_t access = {.kind = putpong_epoch(run), .to = &trips->peer, .to_count = 1, .memory = run->in};
    const hk_epoch_t accessed = {.kind = access.kind, .from = &trips->peer, .from_count = 1, .memory = run->in};
    const hk_epoch_t idle = {.kind = access.kind, .memory = run->in};
    trips->there = trips->peer < 0 ? idle : begins ? access : accessed;
    trips->back = trips->peer < 0 ? idle : begins ? accessed : access;
    HK_TRY(hk_epoch_make(run->ctx, &trips->there));
    return hk_epoch_keep(run->ctx, &trips->there, hk_epoch_make(run->ctx, &trips->back));
}

static hk_status_t putpong_finish(hk_run_t *run)
{
    trips_t *trips = run->state;
    HK_TRY(hk_epoch_drop(run->ctx, &trips->back));
    return hk_epoch_drop(run->ctx, &trips->there);
}

/* Exchange one word, for the same reason as hk_meet. The rest of a message is not needed. Epochs meet by themselves. */
static hk_status_t putpong_meet(hk_run_t *run)
{
    const trips_t *trips = run->state;
    return run->option[PUTPONG_SYNC] != PUTPONG_WORD ? putpong_repeat(run, 1)
           : trips->peer < 0 ? HK_OK
                             : putpong_words(run, 1, run->ctx->rank == hk_source(run->option), false);
}

/* All, but for the last word where the wait has verified it. */
static bool putpong_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    const size_t word_bytes = run->option[PUTPONG_SYNC] == PUTPONG_WORD ? HK_WORD_BYTES : 0;
    *expected_p = (hk_expected_t){.size_bytes = run->bytes - word_bytes, .from_rank = peer};
    return i == 0 && peer >= 0;
}

const hk_pattern_t hk_pattern_putpong = {
    .name = "putpong",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "one put back and forth between two ranks, each waiting until it is there; half the round trip",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .grain_bytes = HK_WORD_BYTES,
    .option = {HK_ROLES_OPTIONS,
               {"sync", "word|signal|fence|fences|pscw", PUTPONG_WORD, 0, 0,
                "how a rank notices a put: its last word, a signal at its end, or the end of an epoch"}},
    .fits = putpong_fits,
    .plan = putpong_plan,
    .prepare = putpong_prepare,
    .finish = putpong_finish,
    .meet = putpong_meet,
    .repeat = putpong_repeat,
    .expected = putpong_expected,
};
