/* One-way delay (RFC 7679): how long a message takes from its send to its receipt, by the clocks of both ranks.
 *
 * The source reads its clock and sends, and the target answers with the time of the receipt by its own clock. Short
 * messages that are answered alike compare the clocks before and after (clock.h). Clocks drift, so the difference is
 * on a line between the two comparisons: in the mean of all messages it is in the middle.
 *
 * A short message takes half a round trip itself, however unequal the two directions are: its time says nothing. So a
 * time is too short up to twice the error of the clocks, which is half the shortest round trip. A measurement fails if
 * most of its times are. Of a few, as on a busy machine, the longest delay that they may be counts. */
#include <stdio.h>
#include <string.h>

#include "clock.h"

enum { OWD_DIRECTION };
enum { OWD_UP, OWD_DOWN };
enum { OWD_EXCHANGES = 10, OWD_STAMP_BYTES = sizeof(uint64_t) };

/* The largest error of the clocks, the number of batches and of those that are too short, and the first of these, since
 * the first look at the counter: the samples follow it. */
typedef struct owd_state {
    double error_ns;
    double short_ns, short_error_ns;
    uint64_t batches, shorts;
    bool is_counting;
} owd_state_t;

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
                       .bytes_per_rep = run->bytes,
                       .messages_per_rep = 1,
                       .divisor = 1,
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

/* The mean delay of a batch that counts. */
static double owd_judge(owd_state_t *state, double mean_ns, double error_ns)
{
    state->error_ns = error_ns > state->error_ns ? error_ns : state->error_ns;
    state->batches++;
    if (mean_ns > 2 * error_ns) {
        return mean_ns;
    }
    if (state->shorts++ == 0) {
        state->short_ns = mean_ns;
        state->short_error_ns = error_ns;
    }
    return mean_ns + error_ns;
}

/* Only the delays count as time. Those by clocks that are days apart keep their nanoseconds, because the difference
 * of the clocks is subtracted from each. */
static hk_status_t owd_measure(hk_run_t *run, uint64_t reps)
{
    hk_clock_t before = {0}, after = {0};
    owd_stamps_t stamps;
    double total_ns = 0;
    const uint64_t start_ns = run->ctx->tp->now_ns(run->ctx);
    HK_TRY(owd_compare(run, &before));
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(owd_ask(run, 0, run->bytes, &stamps));
        total_ns += (double)(int64_t)(stamps.read_ns - stamps.sent_ns) - before.ahead_ns;
    }
    HK_TRY(owd_compare(run, &after));
    total_ns -= (double)reps * (after.ahead_ns - before.ahead_ns) / 2;
    const double error_ns = after.error_ns > before.error_ns ? after.error_ns : before.error_ns;
    total_ns = (double)reps * owd_judge(run->state, total_ns / (double)reps, error_ns);
    run->untimed_ns += run->ctx->tp->now_ns(run->ctx) - start_ns - (total_ns > 0 ? (uint64_t)(total_ns + 0.5) : 0);
    return HK_OK;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static hk_status_t owd_repeat(hk_run_t *run, uint64_t reps)
{
    if (run->ctx->rank == owd_source(run)) {
        return owd_measure(run, reps);
    }
    HK_TRY(owd_answer(run, owd_short_at(run), OWD_STAMP_BYTES, OWD_EXCHANGES));
    HK_TRY(owd_answer(run, 0, run->bytes, reps));
    return owd_answer(run, owd_short_at(run), OWD_STAMP_BYTES, OWD_EXCHANGES);
}

static bool owd_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = owd_source(run)};
    return i == 0 && run->ctx->rank != owd_source(run);
}

/* The core subtracts what the counter is before the samples: 0, then. */
static bool owd_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    owd_state_t *state = run->state;
    if (!state->is_counting) {
        *state = (owd_state_t){.is_counting = true};
    }
    *counter_p = (hk_counter_t){"clock_error_ns", state->error_ns};
    return i == 0;
}

static hk_status_t owd_verdict(const hk_run_t *run)
{
    const owd_state_t *state = run->state;
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
