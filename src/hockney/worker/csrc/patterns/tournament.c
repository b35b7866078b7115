/* cold */
#include "tournament.h"

#include <stdio.h>

static int rounds_count(int size)
{
    return size % 2 == 0 ? size - 1 : size;
}

/* Ranks sit round a circle, and the sum of two that meet is twice the round; one that would meet itself meets the last
 * rank of an even number, or rests. */
int hk_tournament_peer(const hk_ctx_t *ctx, int64_t round)
{
    const int count = rounds_count(ctx->size);
    if (ctx->rank == count) {
        return (int)round % count;
    }
    const int peer = (2 * (int)round - ctx->rank + 2 * count) % count;
    if (peer != ctx->rank) {
        return peer;
    }
    return ctx->size % 2 == 0 ? ctx->size - 1 : -1;
}

bool hk_tournament_has(const hk_ctx_t *ctx, int64_t round, char *why, size_t len)
{
    const int count = rounds_count(ctx->size);
    snprintf(why, len, "%d ranks need only %d rounds, so there is no round %d", ctx->size, count, (int)round);
    return round <= count;
}
