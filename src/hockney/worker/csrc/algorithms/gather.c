#include "algorithms.h"

/* All ranks send to the root, at once. */
hk_status_t hk_gather_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    size_t count = 0;
    if (call->rank != call->root) {
        return tp->send(ctx, hk_peer(call, call->root), call->out, hk_in_bytes(call, call->rank));
    }
    for (int i = 1; i < call->size; i++) {
        const int from = hk_to_rank(call, i);
        HK_TRY(tp->irecv(ctx, hk_peer(call, from), call->in + call->in_at[from], hk_in_bytes(call, from),
                         &call->reqs[count++]));
    }
    if (!call->in_place) {
        memcpy(call->in + call->in_at[call->rank], call->out, hk_in_bytes(call, call->rank));
    }
    return tp->wait_all(ctx, call->reqs, count);
}

/* The root's blocks lie in the order of their distance from the root; where that is not rank 0, they are put in order
 * last. */
static void put_in_order(const hk_call_t *call)
{
    const size_t after = call->in_at[call->size] - call->in_at[call->root];
    memcpy(call->in + call->in_at[call->root], call->work, after);
    memcpy(call->in, call->work + after, call->in_at[call->root]);
}

/* Binomial tree: a rank collects the blocks of its subtree and sends them on (Thakur, Rabenseifner and Gropp 2005). */
hk_status_t hk_gather_binomial(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call), size = call->size;
    const bool is_in_order = rank == 0 && call->root == 0;
    const size_t own_bytes = hk_in_bytes(call, call->rank);
    const unsigned char *own = rank == 0 && call->in_place ? call->in + call->in_at[call->rank] : call->out;
    unsigned char *blocks = is_in_order ? call->in : call->work;
    int distance = 1;
    if ((rank & 1) != 0) { /* a leaf */
        return tp->send(ctx, hk_peer(call, hk_to_rank(call, rank - 1)), own, own_bytes);
    }
    if (own != blocks) {
        memcpy(blocks, own, own_bytes);
    }
    for (; distance < size && (rank & distance) == 0; distance *= 2) {
        const int child = rank + distance;
        if (child < size) {
            const int count = child + distance < size ? distance : size - child;
            const size_t at = hk_span(call, call->in_at, call->rank, distance);
            HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, child)), blocks + at,
                            hk_span(call, call->in_at, hk_to_rank(call, child), count)));
        }
    }
    if (rank == 0) {
        if (!is_in_order) {
            put_in_order(call);
        }
        return HK_OK;
    }
    const int count = rank + distance < size ? distance : size - rank;
    return tp->send(ctx, hk_peer(call, hk_to_rank(call, rank - distance)), blocks,
                    hk_span(call, call->in_at, call->rank, count));
}
