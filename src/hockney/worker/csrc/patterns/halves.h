/* Two halves of the ranks: partners are rank i of the first and rank i of the second. */
#ifndef HK_HALVES_H
#define HK_HALVES_H

#include "roundtrip.h"

static inline int hk_halves_peer(const hk_ctx_t *ctx)
{
    const int half = ctx->size / 2;
    return ctx->rank < half ? ctx->rank + half : ctx->rank - half;
}

/* The hook `meet`. */
static inline hk_status_t hk_halves_meet(hk_run_t *run)
{
    const int peer = hk_halves_peer(run->ctx);
    return hk_meet(run, peer, run->ctx->rank < peer);
}

/* The hook `expected`: a message of the partner. */
static inline bool hk_halves_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = hk_halves_peer(run->ctx)};
    return i == 0;
}

#endif
