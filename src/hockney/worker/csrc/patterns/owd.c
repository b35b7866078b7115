/* One-way delay (RFC 7679): how long a message takes from its send to its receipt, by the clocks of both ranks.
 *
 * The source reads its clock and sends, and the target answers with the time of the receipt by its own clock. Short
 * messages that are answered alike compare the clocks before and after (clock.h). Clocks drift, so the difference is
 * on a line between the two comparisons: in the mean of all messages it is in the middle.
 *
 * On a busy machine all exchanges of a comparison may be late. Such a batch is left out and made again: its error is
 * more than four times the least one so far, and 1 % of its round trips, or its delay is not even positive. Nothing
 * else decides, as leaving out short delays would make the rest too long. A measurement fails if more than half of its
 * batches are left out, and ten more. The delays are then those while the ranks' CPUs and the network were free enough
 * to compare clocks.
 *
 * A short message takes half a round trip itself, however unequal the two directions are: its time says nothing. So a
 * time is too short up to twice the error of the clocks, which is half the shortest round trip. A measurement fails if
 * most of its times are. */
#include <stdio.h>
#include <string.h>

#include "clock.h"

enum { OWD_DIRECTION };
enum { OWD_UP, OWD_DOWN };
enum { OWD_EXCHANGES = 10, OWD_STAMP_BYTES = sizeof(uint64_t) };
enum { OWD_ERROR_FACTOR = 4, OWD_TRIP_PARTS = 100, OWD_LEFT_OUT_MORE = 10 };

/* The largest error of the clocks, the number of batches, of those that are too short, and of those left out, and the
 * first one that is too short, since the first look at the counters: the samples follow it. The least error is that of
 * all batches. */
typedef struct owd_state {
    double error_ns, least_error_ns;
    double short_ns, short_error_ns;
    uint64_t batches, shorts, left_out;
    bool is_counting;
} owd_state_t;

typedef struct owd_times {
    double total_ns, trips_ns; /* of a batch: its delays, and its round trips by the source's own clock */
} owd_times_t;

typedef struct owd_stamps {
    uint64_t sent_ns, read_ns, answered_ns; /* read_ns by the target's clock, the others by the source's */
} owd_stamps_t;

static int owd_source(const hk_run_t *run)
{
    return run->option[OWD_DIRECTION] == OWD_UP ? 0 : 1;
}

/* The short messages and the answers lie after the message, which they would overwrite. */
static size_t owd_short_at(const hk_run_t *run)
{
    return (run->bytes + OWD_STAMP_BYTES - 1) / OWD_STAMP_BYTES * OWD_STAMP_BYTES;
}

static hk_plan_t owd_plan(const hk_run_t *run)
{
    const size_t room = owd_short_at(run) + OWD_STAMP_BYTES;
    return (hk_plan_t){.out_bytes = room,
                       .in_bytes = room,
                       .state_bytes = sizeof(owd_state_t),
                       HK_MOVES(run, 1),
                       .root = owd_source(run)};
}

static bool owd_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    snprintf(why, len, "one-way delays need time stamps that always arrive, which %s does not offer", tp->name);
    return (tp->caps & (HK_CAP_PAYLOAD | HK_CAP_LOSSY)) == HK_CAP_PAYLOAD;
}

/* ---- the target -------------------------------------------------------------------------------------------------- */

static hk_status_t owd_answer(hk_run_t *run, size_t at, size_t bytes, uint64_t count)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *stamp = run->out + owd_short_at(run);
    for (uint64_t i = 0; i < count; i++) {
        HK_TRY(tp->recv(ctx, 1 - ctx->rank, run->in + at, bytes));
        const uint64_t now_ns = tp->now_ns(ctx);
        memcpy(stamp, &now_ns, OWD_STAMP_BYTES);
        HK_TRY(tp->send(ctx, 1 - ctx->rank, stamp, OWD_STAMP_BYTES));
    }
    return HK_OK;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static hk_status_t owd_ask(hk_run_t *run, size_t at, size_t bytes, owd_stamps_t *stamps_p)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *stamp = run->in + owd_short_at(run);
    const uint64_t sent_ns = tp->now_ns(ctx);
    HK_TRY(tp->send(ctx, 1 - ctx->rank, run->out + at, bytes));
    HK_TRY(tp->recv(ctx, 1 - ctx->rank, stamp, OWD_STAMP_BYTES));
    *stamps_p = (owd_stamps_t){.sent_ns = sent_ns, .answered_ns = tp->now_ns(ctx)};
    memcpy(&stamps_p->read_ns, stamp, OWD_STAMP_BYTES);
    return HK_OK;
}

static hk_status_t owd_compare(hk_run_t *run, hk_clock_t *clock)
{
    owd_stamps_t stamps;
    for (int i = 0; i < OWD_EXCHANGES; i++) {
        HK_TRY(owd_ask(run, owd_short_at(run), OWD_STAMP_BYTES, &stamps));
        hk_clock_note(clock, stamps.sent_ns, stamps.read_ns, stamps.answered_ns);
    }
    return HK_OK;
}

/* From then on no batch is made again, and none counts. */
static bool owd_is_too_busy(const owd_state_t *state)
{
    return state->left_out > state->batches + OWD_LEFT_OUT_MORE;
}

/* Whether a batch is left out, by the larger and the smaller error of its two comparisons, and its times. */
static bool owd_leaves_out(owd_state_t *state, double error_ns, double least_ns, const owd_times_t *times,
                           uint64_t reps)
{
    if (state->least_error_ns == 0 || least_ns < state->least_error_ns) {
        state->least_error_ns = least_ns;
    }
    const bool matters = error_ns > times->trips_ns / (double)reps / OWD_TRIP_PARTS;
    return (error_ns > OWD_ERROR_FACTOR * state->least_error_ns && matters) || times->total_ns <= 0;
}

static void owd_count(owd_state_t *state, double mean_ns, double error_ns)
{
    state->error_ns = error_ns > state->error_ns ? error_ns : state->error_ns;
    state->batches++;
    if (mean_ns <= 2 * error_ns && state->shorts++ == 0) {
        state->short_ns = mean_ns;
        state->short_error_ns = error_ns;
    }
}

/* Delays by clocks that are days apart keep their nanoseconds, because the difference of the clocks is subtracted from
 * each. */
static hk_status_t owd_batch(hk_run_t *run, uint64_t reps, hk_clock_t *before, hk_clock_t *after, owd_times_t *times_p)
{
    owd_stamps_t stamps;
    owd_times_t times = {0};
    HK_TRY(owd_compare(run, before));
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(owd_ask(run, 0, run->bytes, &stamps));
        times.total_ns += (double)(int64_t)(stamps.read_ns - stamps.sent_ns) - before->ahead_ns;
        times.trips_ns += (double)(stamps.answered_ns - stamps.sent_ns);
    }
    HK_TRY(owd_compare(run, after));
    times.total_ns -= (double)reps * (after->ahead_ns - before->ahead_ns) / 2;
    *times_p = times;
    return HK_OK;
}

/* Makes a batch until one counts. Only its delays count as time. */
static hk_status_t owd_measure(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    owd_state_t *state = run->state;
    const uint64_t start_ns = ctx->tp->now_ns(ctx);
    owd_times_t times;
    double error_ns;
    unsigned char *again = run->out + owd_short_at(run);
    do {
        hk_clock_t before = {0}, after = {0};
        HK_TRY(owd_batch(run, reps, &before, &after, &times));
        error_ns = after.error_ns > before.error_ns ? after.error_ns : before.error_ns;
        *again = owd_leaves_out(state, error_ns, before.error_ns + after.error_ns - error_ns, &times, reps);
        state->left_out += *again;
        *again = *again && !owd_is_too_busy(state);
        HK_TRY(ctx->tp->send(ctx, 1 - ctx->rank, again, OWD_STAMP_BYTES));
    } while (*again);
    if (!owd_is_too_busy(state)) {
        owd_count(state, times.total_ns / (double)reps, error_ns);
    }
    run->untimed_ns += ctx->tp->now_ns(ctx) - start_ns - (times.total_ns > 0 ? (uint64_t)(times.total_ns + 0.5) : 0);
    return HK_OK;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static hk_status_t owd_repeat(hk_run_t *run, uint64_t reps)
{
    if (run->ctx->rank == owd_source(run)) {
        return owd_measure(run, reps);
    }
    const unsigned char *again = run->in + owd_short_at(run);
    do {
        HK_TRY(owd_answer(run, owd_short_at(run), OWD_STAMP_BYTES, OWD_EXCHANGES));
        HK_TRY(owd_answer(run, 0, run->bytes, reps));
        HK_TRY(owd_answer(run, owd_short_at(run), OWD_STAMP_BYTES, OWD_EXCHANGES));
        HK_TRY(run->ctx->tp->recv(run->ctx, owd_source(run), run->in + owd_short_at(run), OWD_STAMP_BYTES));
    } while (*again);
    return HK_OK;
}

static bool owd_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = owd_source(run)};
    return i == 0 && run->ctx->rank != owd_source(run);
}

/* The core subtracts what the counters are before the samples: 0, then. */
static bool owd_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    owd_state_t *state = run->state;
    if (!state->is_counting) {
        *state = (owd_state_t){.is_counting = true, .least_error_ns = state->least_error_ns};
    }
    *counter_p = i == 0 ? (hk_counter_t){"clock_error_ns", state->error_ns}
                        : (hk_counter_t){"batches_left_out", (double)state->left_out};
    return i < 2;
}

static hk_status_t owd_verdict(const hk_run_t *run)
{
    const owd_state_t *state = run->state;
    const unsigned long long left_out = state->left_out, all = state->left_out + state->batches;
    if (owd_is_too_busy(state)) {
        return hk_fail(
            HK_ERR_CORRUPT, run->ctx->rank,
            "owd: %llu of %llu batches were left out, as the clocks' error was more than %d times the least of "
            "%.2f us: keep the CPUs of the ranks free of other programs",
            left_out, all, OWD_ERROR_FACTOR, state->least_error_ns / 1000);
    }
    if (2 * state->shorts <= state->batches) {
        return HK_OK;
    }
    return hk_fail(HK_ERR_CORRUPT, run->ctx->rank,
                   "owd: a one-way delay of %.2f us is not more than twice the clocks' error of %.2f us: send longer "
                   "messages (--bytes)",
                   state->short_ns / 1000, state->short_error_ns / 1000);
}

const hk_pattern_t hk_pattern_owd = {
    .name = "owd",
    .summary = "one-way delay of a message from one rank to another, by clocks that are compared before and after",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .ranks_max = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .option = {{"direction", "up|down", OWD_UP, 0, 0, "from rank 0 to rank 1, or back"}},
    .fits = owd_fits,
    .plan = owd_plan,
    .repeat = owd_repeat,
    .expected = owd_expected,
    .counter = owd_counter,
    .verdict = owd_verdict,
};
