/* Ring (multiple_pairs of the Cray T3D report, with messages; Sendrecv and Exchange of IMB-MPI1, Sendrecv_replace of
 * IMB-P2P): every rank sends to the rank `distance` after it and receives from the rank `distance` before it, all at
 * once. The time is the mean over all ranks, or the slowest rank's.
 *
 * The option `call`: "parts" is a receive, a send and their wait; "exchange" one call for both; "in-place" one call in
 * which the message received replaces the one sent. With ways=both a rank sends to both neighbours, then receives from
 * both, then waits for its sends. */
#include <stdio.h>

#include "../payload.h"
#include "any.h"
#include "distance.h"

enum { RING_CALL = HK_RING_DISTANCE + 1, RING_WAYS, RING_TIME, RING_RECEIVE };
enum { RING_PARTS, RING_EXCHANGE, RING_IN_PLACE };
enum { RING_ONE, RING_BOTH };

static bool ring_both(const hk_run_t *run)
{
    return run->option[RING_WAYS] == RING_BOTH;
}

static bool ring_any(const hk_run_t *run)
{
    return run->option[RING_RECEIVE] != 0;
}

/* What receives take. */
static int ring_tag(const hk_run_t *run)
{
    return ring_any(run) ? run->ctx->tp->any_tag : 0;
}

static bool ring_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    if (run->option[RING_CALL] != RING_PARTS && (tp->caps & HK_CAP_EXCHANGE) == 0) {
        snprintf(why, len, "call=%s needs one call that sends and receives, which %s does not offer: use call=parts",
                 run->option[RING_CALL] == RING_EXCHANGE ? "exchange" : "in-place", tp->name);
        return false;
    }
    if (run->option[RING_CALL] != RING_PARTS && ring_both(run)) {
        snprintf(why, len, "ways=both has two messages each way: leave call= out");
        return false;
    }
    return hk_any_fits(run, ring_any(run) ? HK_ANY_TAG : -1, why, len) && hk_ring_fits(run, why, len);
}

static hk_plan_t ring_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_MEAN, HK_TIMED_SLOWEST};
    hk_plan_t plan = {HK_ONE_EACH(run), HK_MOVES(run, (uint64_t)run->ctx->size)};
    const size_t ways = ring_both(run) ? 2 : 1;
    plan.reqs_count = 2;
    plan.out_bytes *= ways;
    plan.in_bytes *= ways;
    plan.bytes_per_rep *= ways;
    plan.messages_per_rep *= ways;
    plan.timed = timed[run->option[RING_TIME]];
    return plan;
}

/* The message to send in place. */
static void ring_fill(hk_run_t *run, uint64_t seed)
{
    if (run->option[RING_CALL] == RING_IN_PLACE) {
        hk_payload_fill(run->in, run->bytes, run->ctx->rank, seed);
    }
}

/* `any` is a constant in each call. */
static inline hk_status_t ring_parts(hk_run_t *run, uint64_t reps, const bool any)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int next = hk_ring_next(run), previous = hk_ring_previous(run);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(any ? tp->irecv_tagged(ctx, previous, tp->any_tag, run->in, run->bytes, &run->reqs[0])
                   : tp->irecv(ctx, previous, run->in, run->bytes, &run->reqs[0]));
        HK_TRY(tp->isend(ctx, next, run->out, run->bytes, &run->reqs[1]));
        HK_TRY(tp->wait_all(ctx, run->reqs, 2));
    }
    return HK_OK;
}

/* `in_place` is a constant in each call. */
static inline hk_status_t ring_exchange(hk_run_t *run, uint64_t reps, const bool in_place)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int next = hk_ring_next(run), previous = hk_ring_previous(run), tag = ring_tag(run);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(in_place ? tp->exchange_in_place(ctx, next, previous, tag, run->in, run->bytes)
                        : tp->exchange(ctx, next, run->out, previous, tag, run->in, run->bytes));
    }
    return HK_OK;
}

/* With two ranks, or half way round, both neighbours are one: its messages come in the order in which it sends. */
static inline hk_status_t ring_both_ways(hk_run_t *run, uint64_t reps, const bool any)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int next = hk_ring_next(run), previous = hk_ring_previous(run);
    const size_t bytes = run->bytes;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->isend(ctx, next, run->out, bytes, &run->reqs[0]));
        HK_TRY(tp->isend(ctx, previous, run->out + bytes, bytes, &run->reqs[1]));
        HK_TRY(any ? tp->recv_tagged(ctx, previous, tp->any_tag, run->in, bytes)
                   : tp->recv(ctx, previous, run->in, bytes));
        HK_TRY(any ? tp->recv_tagged(ctx, next, tp->any_tag, run->in + bytes, bytes)
                   : tp->recv(ctx, next, run->in + bytes, bytes));
        HK_TRY(tp->wait_all(ctx, run->reqs, 2));
    }
    return HK_OK;
}

static hk_status_t ring_repeat(hk_run_t *run, uint64_t reps)
{
    if (ring_both(run)) {
        return ring_any(run) ? ring_both_ways(run, reps, true) : ring_both_ways(run, reps, false);
    }
    if (run->option[RING_CALL] == RING_PARTS) {
        return ring_any(run) ? ring_parts(run, reps, true) : ring_parts(run, reps, false);
    }
    return run->option[RING_CALL] == RING_IN_PLACE ? ring_exchange(run, reps, true) : ring_exchange(run, reps, false);
}

/* Part i of what the previous rank sends forward, or of what the next one sends back. */
static bool ring_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes,
                                  .from_offset = i * run->bytes,
                                  .size_bytes = run->bytes,
                                  .from_rank = i == 0 ? hk_ring_previous(run) : hk_ring_next(run)};
    return i < (ring_both(run) ? 2 : 1);
}

const hk_pattern_t hk_pattern_ring = {
    .name = "ring",
    .summary = "every rank sends to the rank `distance` after it, all at once; mean time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .stream = true,
    .option = {HK_RING_OPTION_DISTANCE,
               {"call", "parts|exchange|in-place", RING_PARTS, 0, 0,
                "a receive, a send and a wait; or one call that sends and receives, in two buffers or in one"},
               {"ways", "one|both", RING_ONE, 0, 0, "both: to the rank before it, too"},
               {"time", "mean|slowest", 0, 0, 0, "whose time counts"},
               {"receive", "tag|any-tag", 0, 0, 0, "what receives take: messages with their tag, or with any"}},
    .fits = ring_fits,
    .plan = ring_plan,
    .fill = ring_fill,
    .repeat = ring_repeat,
    .expected = ring_expected,
};
