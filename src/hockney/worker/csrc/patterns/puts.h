/* Puts that are followed by others: the core of put, putring and putpong. */
#ifndef HK_PUTS_H
#define HK_PUTS_H

#include <string.h>

#include "../pattern.h"

enum { HK_QUIET_BATCH, HK_QUIET_EACH, HK_QUIET_SEEN };
enum { HK_WORD_BYTES = 8 };

// clang-format off
#define HK_PUTS_OPTION_QUIET \
    {"quiet", "batch|each|seen", HK_QUIET_BATCH, 0, 0, \
     "wait for completion once at the end of the batch, after every put, or until the target has seen each put"}
// clang-format on

/* Puts `out`, whose last word becomes `number`, into peer's `in`. A put of several words may arrive in any order. So
 * the last word is a separate put, made when the rest is complete. `is_long` is a constant in each call, so the loops
 * contain no test. */
static inline hk_status_t hk_hand_over(hk_run_t *run, int peer, uint64_t number, bool is_long)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t rest_bytes = run->bytes - HK_WORD_BYTES;
    if (is_long) {
        HK_TRY(tp->put(ctx, peer, run->in, run->out, rest_bytes));
        HK_TRY(tp->quiet(ctx));
    }
    memcpy(run->out + rest_bytes, &number, HK_WORD_BYTES);
    return tp->put(ctx, peer, run->in + rest_bytes, run->out + rest_bytes, HK_WORD_BYTES);
}

/* Waits until that word is here. */
static inline hk_status_t hk_await(hk_run_t *run, uint64_t number)
{
    const void *word = run->in + run->bytes - HK_WORD_BYTES;
    return run->ctx->tp->wait_word(run->ctx, word, number);
}

/* Hooks of patterns with the option; `quiet` is its value. Seen: half the time of a put and of the flag that comes
 * back, so messages have whole words, and their last one counts the puts. */
bool hk_puts_fit(const hk_run_t *run, int64_t quiet, char *why, size_t len);
hk_plan_t hk_puts_plan(hk_plan_t plan, int64_t quiet);
size_t hk_puts_expected_bytes(const hk_run_t *run, int64_t quiet);

/* `reps` puts of `out` into the `in` of rank `to`, while rank `from` puts into this rank's; -1: there is no such rank.
 * All are complete when this returns. */
hk_status_t hk_puts(hk_run_t *run, int to, int from, int64_t quiet, uint64_t reps);

#endif
