#include "puts.h"

#include <stdio.h>

enum { FLAG_AWAY_BYTES = 128 }; /* behind the message: no line, nor its neighbour, has both */

bool hk_puts_fit(const hk_run_t *run, int64_t quiet, char *why, size_t len)
{
    snprintf(why, len, "quiet=seen waits for the last word: the size must be a multiple of %d B, not %zu B",
             HK_WORD_BYTES, run->bytes);
    return quiet != HK_QUIET_SEEN || (run->bytes > 0 && run->bytes % HK_WORD_BYTES == 0);
}

hk_plan_t hk_puts_plan(hk_plan_t plan, int64_t quiet)
{
    if (quiet == HK_QUIET_SEEN) {
        plan.out_bytes += HK_WORD_BYTES;
        plan.in_bytes += FLAG_AWAY_BYTES + HK_WORD_BYTES;
        plan.state_bytes = sizeof(uint64_t);
        plan.divisor = 2;
    }
    return plan;
}

size_t hk_puts_expected_bytes(const hk_run_t *run, int64_t quiet)
{
    return run->bytes - (quiet == HK_QUIET_SEEN ? HK_WORD_BYTES : 0);
}

static hk_status_t put_each(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->put(ctx, peer, run->in, run->out, run->bytes));
        HK_TRY(tp->quiet(ctx));
    }
    return HK_OK;
}

/* The number of the last put since the first repetition is in the state, so no stale word matches. */
static inline hk_status_t put_seen(hk_run_t *run, int to, int from, uint64_t reps, bool is_long)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *seen = run->out + run->bytes;
    unsigned char *flag = run->in + run->bytes + FLAG_AWAY_BYTES;
    uint64_t *puts = run->state;
    const uint64_t end = *puts + reps;
    for (uint64_t number = *puts + 1; number <= end; number++) {
        if (to >= 0) {
            HK_TRY(hk_hand_over(run, to, number, is_long));
        }
        if (from >= 0) {
            HK_TRY(hk_await(run, number));
            memcpy(seen, &number, HK_WORD_BYTES);
            HK_TRY(tp->put(ctx, from, flag, seen, HK_WORD_BYTES));
        }
        if (to >= 0) {
            HK_TRY(tp->wait_word(ctx, (const void *)flag, number));
        }
    }
    *puts = end;
    return tp->quiet(ctx);
}

hk_status_t hk_puts(hk_run_t *run, int to, int from, int64_t quiet, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (quiet == HK_QUIET_SEEN) {
        return run->bytes == HK_WORD_BYTES ? put_seen(run, to, from, reps, false) : put_seen(run, to, from, reps, true);
    }
    if (to < 0) {
        return HK_OK;
    }
    if (quiet == HK_QUIET_EACH) {
        return put_each(run, to, reps);
    }
    hk_status_t (*const put)(hk_ctx_t *, int, void *, const void *, size_t) = ctx->tp->put;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(put(ctx, to, run->in, run->out, run->bytes));
    }
    return ctx->tp->quiet(ctx);
}
