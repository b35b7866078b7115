#include "algorithms.h"

/* Neither send waits for its receive: every transport buffers a token. */
static hk_status_t swap_tokens(hk_ctx_t *ctx, hk_call_t *call, int to, int from)
{
    const hk_transport_t *tp = ctx->tp;
    unsigned char nothing = 0; /* a valid address for 0 bytes */
    HK_TRY(tp->send(ctx, hk_peer(call, to), &nothing, 0));
    return tp->recv(ctx, hk_peer(call, from), &nothing, 0);
}

/* If a send waits for its receive, the receive must be started first. */
static hk_status_t swap_posted_tokens(hk_ctx_t *ctx, hk_call_t *call, int to, int from)
{
    unsigned char nothing[2] = {0};
    return hk_swap(ctx, call, to, &nothing[1], 0, from, &nothing[0], 0);
}

/* Dissemination: ceil(log2 P) rounds of one message each way (Hensgen, Finkel and Manber 1988). */
hk_status_t hk_barrier_dissemination(hk_ctx_t *ctx, hk_call_t *call)
{
    const int size = call->size;
    hk_status_t (*const swap)(hk_ctx_t *, hk_call_t *, int, int) =
        (ctx->tp->caps & HK_CAP_SYNCHRONOUS) != 0 ? swap_posted_tokens : swap_tokens;
    for (int distance = 1; distance < size; distance *= 2) {
        HK_TRY(swap(ctx, call, (call->rank + distance) % size, (call->rank - distance + size) % size));
    }
    return HK_OK;
}

/* Tokens up a binomial tree to rank 0, and down again (Mellor-Crummey and Scott 1991, on trees). */
hk_status_t hk_barrier_binomial(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank, size = call->size;
    unsigned char nothing = 0;
    int distance = 1;
    for (; distance < size && (rank & distance) == 0; distance *= 2) {
        if (rank + distance < size) {
            HK_TRY(tp->recv(ctx, hk_peer(call, rank + distance), &nothing, 0));
        }
    }
    if (rank != 0) {
        HK_TRY(tp->send(ctx, hk_peer(call, rank - distance), &nothing, 0));
        HK_TRY(tp->recv(ctx, hk_peer(call, rank - distance), &nothing, 0));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (rank + distance < size) {
            HK_TRY(tp->send(ctx, hk_peer(call, rank + distance), &nothing, 0));
        }
    }
    return HK_OK;
}
