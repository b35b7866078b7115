#include "algorithms.h"

static void copy_own(const hk_call_t *call)
{
    memcpy(call->in + call->in_at[call->rank], call->out + call->out_at[call->rank], hk_out_bytes(call, call->rank));
}

/* All messages at once, none to itself (Com-1.3 of the ATLAS benchmarks): a rank's own block of `in` does not change.
 * Each rank starts with its right neighbour, so that rank 0 does not receive all messages first. */
hk_status_t hk_alltoall_flat(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank, size = call->size;
    hk_req_t *req = call->reqs;
    for (int step = 1; step < size; step++) {
        const int from = rank >= step ? rank - step : rank - step + size;
        HK_TRY(tp->irecv(ctx, hk_peer(call, from), call->in + call->in_at[from], hk_in_bytes(call, from), req++));
    }
    for (int step = 1; step < size; step++) {
        const int to = rank + step < size ? rank + step : rank + step - size;
        HK_TRY(tp->isend(ctx, hk_peer(call, to), call->out + call->out_at[to], hk_out_bytes(call, to), req++));
    }
    return tp->wait_all(ctx, call->reqs, 2 * (size_t)(size - 1));
}

/* The same, and a copy of the rank's own block, as in a library. */
hk_status_t hk_alltoall_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    copy_own(call);
    return hk_alltoall_flat(ctx, call);
}

/* One exchange at a time: step s sends to the rank s after this one and receives from the rank s before it (Thakur,
 * Rabenseifner and Gropp 2005). */
hk_status_t hk_alltoall_pairwise(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    copy_own(call);
    for (int step = 1; step < size; step++) {
        const int from = rank >= step ? rank - step : rank - step + size;
        const int to = rank + step < size ? rank + step : rank + step - size;
        HK_TRY(hk_swap(ctx, call, to, call->out + call->out_at[to], hk_out_bytes(call, to), from,
                       call->in + call->in_at[from], hk_in_bytes(call, from)));
    }
    return HK_OK;
}

/* The blocks whose number has this bit, to or from a packed buffer; the number of bytes. */
static size_t pack_blocks(const hk_call_t *call, int bit, unsigned char *packed, bool unpacks)
{
    const size_t bytes = call->bytes;
    size_t at = 0;
    for (int i = bit; i < call->size; i++) {
        if ((i & bit) != 0) {
            unsigned char *block = call->work + (size_t)i * bytes;
            memcpy(unpacks ? block : packed + at, unpacks ? packed + at : block, bytes);
            at += bytes;
        }
    }
    return at;
}

/* ceil(log2 P) steps, in each of which a rank sends half of all blocks: block i travels as far as i has bits (Bruck et
 * al. 1997). */
hk_status_t hk_alltoall_bruck(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const size_t bytes = call->bytes, after = (size_t)(size - rank) * bytes;
    unsigned char *sent = call->work + (size_t)size * bytes;
    unsigned char *got = sent + (size_t)(size / 2) * bytes;
    memcpy(call->work, call->out + (size_t)rank * bytes, after); /* block i is for the rank i after this one */
    memcpy(call->work + after, call->out, (size_t)rank * bytes);
    for (int bit = 1; bit < size; bit *= 2) {
        const size_t moved = pack_blocks(call, bit, sent, false);
        HK_TRY(hk_swap(ctx, call, (rank + bit) % size, sent, moved, (rank + size - bit) % size, got, moved));
        pack_blocks(call, bit, got, true);
    }
    for (int i = 0; i < size; i++) { /* block i is from the rank i before this one */
        memcpy(call->in + (size_t)((rank + size - i) % size) * bytes, call->work + (size_t)i * bytes, bytes);
    }
    return HK_OK;
}
