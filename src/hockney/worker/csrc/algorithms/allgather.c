#include "algorithms.h"

static void keep_own(const hk_call_t *call)
{
    if (!call->in_place) {
        memcpy(call->in + call->in_at[call->rank], call->out, hk_in_bytes(call, call->rank));
    }
}

/* All blocks to all ranks, at once. */
hk_status_t hk_allgather_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank, size = call->size;
    size_t count = 0;
    keep_own(call);
    for (int step = 1; step < size; step++) {
        const int from = (rank + size - step) % size;
        HK_TRY(tp->irecv(ctx, hk_peer(call, from), call->in + call->in_at[from], hk_in_bytes(call, from),
                         &call->reqs[count++]));
    }
    for (int step = 1; step < size; step++) {
        HK_TRY(tp->isend(ctx, hk_peer(call, (rank + step) % size), call->in + call->in_at[rank],
                         hk_in_bytes(call, rank), &call->reqs[count++]));
    }
    return tp->wait_all(ctx, call->reqs, count);
}

/* In P - 1 steps each rank passes on the block that it got last (Thakur, Rabenseifner and Gropp 2005). */
hk_status_t hk_allgather_ring(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    keep_own(call);
    for (int step = 0; step < size - 1; step++) {
        const int given = (rank + size - step) % size, got = (given + size - 1) % size;
        HK_TRY(hk_swap(ctx, call, (rank + 1) % size, call->in + call->in_at[given], hk_in_bytes(call, given),
                       (rank + size - 1) % size, call->in + call->in_at[got], hk_in_bytes(call, got)));
    }
    return HK_OK;
}

/* Pairs at growing distances swap all that they have: log2 P steps, for powers of two (Thakur, Rabenseifner and Gropp
 * 2005). */
hk_status_t hk_allgather_doubling(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank;
    const size_t *at = call->in_at;
    keep_own(call);
    for (int distance = 1; distance < call->size; distance *= 2) {
        const int mine = rank / distance * distance, peer = rank ^ distance, other = mine ^ distance;
        HK_TRY(hk_swap(ctx, call, peer, call->in + at[mine], at[mine + distance] - at[mine], peer, call->in + at[other],
                       at[other + distance] - at[other]));
    }
    return HK_OK;
}

/* ceil(log2 P) steps for any P: a rank gives all that it has to the one `distance` before it, its own block first; at
 * the end the blocks are put in order (Bruck et al., Efficient algorithms for all-to-all communications, 1997). */
hk_status_t hk_allgather_bruck(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const size_t *at = call->in_at;
    const unsigned char *own = call->in_place ? call->in + at[rank] : call->out;
    memcpy(call->work, own, hk_in_bytes(call, rank));
    for (int distance = 1; distance < size; distance *= 2) {
        const int count = 2 * distance <= size ? distance : size - distance;
        const int from = (rank + distance) % size;
        HK_TRY(hk_swap(ctx, call, (rank + size - distance) % size, call->work, hk_span(call, at, rank, count), from,
                       call->work + hk_span(call, at, rank, distance), hk_span(call, at, from, count)));
    }
    const size_t first = at[size] - at[rank];
    memcpy(call->in + at[rank], call->work, first);
    memcpy(call->in, call->work + first, at[rank]);
    return HK_OK;
}

/* P / 2 steps, for even P: after the first, neighbours swap pairs of blocks, to the left and to the right in turn (Chen
 * et al., Performance evaluation of allgather algorithms on terascale Linux cluster, 2005). */
hk_status_t hk_allgather_neighbour(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const size_t *at = call->in_at;
    const bool is_even = rank % 2 == 0;
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    const int peer[2] = {is_even ? right : left, is_even ? left : right};
    const int move[2] = {is_even ? 2 : size - 2, is_even ? size - 2 : 2};
    int got[2] = {is_even ? rank : left, is_even ? rank : left}; /* the first block of the pair that came from there */
    int given = got[0];
    keep_own(call);
    HK_TRY(hk_swap(ctx, call, peer[0], call->in + at[rank], hk_in_bytes(call, rank), peer[0], call->in + at[peer[0]],
                   hk_in_bytes(call, peer[0])));
    for (int step = 1; step < size / 2; step++) {
        const int way = step % 2;
        got[way] = (got[way] + move[way]) % size;
        HK_TRY(hk_swap(ctx, call, peer[way], call->in + at[given], at[given + 2] - at[given], peer[way],
                       call->in + at[got[way]], at[got[way] + 2] - at[got[way]]));
        given = got[way];
    }
    return HK_OK;
}
