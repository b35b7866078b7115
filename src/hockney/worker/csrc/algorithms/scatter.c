#include "algorithms.h"

/* The root sends to all, at once. */
hk_status_t hk_scatter_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    size_t count = 0;
    if (call->rank != call->root) {
        return tp->recv(ctx, hk_peer(call, call->root), call->in, hk_out_bytes(call, call->rank));
    }
    for (int i = 1; i < call->size; i++) {
        const int to = hk_to_rank(call, i);
        HK_TRY(tp->isend(ctx, hk_peer(call, to), call->out + call->out_at[to], hk_out_bytes(call, to),
                         &call->reqs[count++]));
    }
    if (!call->in_place) {
        memcpy(call->in, call->out + call->out_at[call->rank], hk_out_bytes(call, call->rank));
    }
    return tp->wait_all(ctx, call->reqs, count);
}

/* The root's blocks in the order of their distance from the root. */
static const unsigned char *scatter_order(const hk_call_t *call)
{
    const size_t after = call->out_at[call->size] - call->out_at[call->root];
    if (call->root == 0) {
        return call->out;
    }
    memcpy(call->work, call->out + call->out_at[call->root], after);
    memcpy(call->work + after, call->out, call->out_at[call->root]);
    return call->work;
}

/* Binomial tree: a rank gets the blocks of its subtree and sends on those of its children (Thakur, Rabenseifner and
 * Gropp 2005). */
hk_status_t hk_scatter_binomial(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call), size = call->size;
    const unsigned char *blocks = call->work;
    int distance = 1;
    while (distance < size && (rank & distance) == 0) {
        distance *= 2;
    }
    if ((rank & 1) != 0) { /* a leaf */
        return tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank - 1)), call->in, hk_out_bytes(call, call->rank));
    }
    if (rank == 0) {
        blocks = scatter_order(call);
    } else {
        const int count = rank + distance < size ? distance : size - rank;
        HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank - distance)), call->work,
                        hk_span(call, call->out_at, call->rank, count)));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        const int child = rank + distance;
        if (child < size) {
            const int count = child + distance < size ? distance : size - child;
            HK_TRY(tp->send(ctx, hk_peer(call, hk_to_rank(call, child)),
                            blocks + hk_span(call, call->out_at, call->rank, distance),
                            hk_span(call, call->out_at, hk_to_rank(call, child), count)));
        }
    }
    if (!(rank == 0 && call->in_place)) {
        memcpy(call->in, blocks, hk_out_bytes(call, call->rank));
    }
    return HK_OK;
}
