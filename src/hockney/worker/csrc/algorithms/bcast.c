#include "algorithms.h"

enum { SEGMENT_BYTES = 16384 }; /* of a pipeline, as in Open MPI's default rules for long chains */

/* The root's data, and where others receive it: only forwarded from there. */
static unsigned char *vector_of(const hk_call_t *call)
{
    return call->rank == call->root ? (unsigned char *)(uintptr_t)call->out : call->in;
}

/* The root sends to each, all at once. */
hk_status_t hk_bcast_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    size_t count = 0;
    if (call->rank != call->root) {
        return tp->recv(ctx, hk_peer(call, call->root), call->in, call->bytes);
    }
    for (int i = 1; i < call->size; i++) {
        HK_TRY(tp->isend(ctx, hk_peer(call, hk_to_rank(call, i)), call->out, call->bytes, &call->reqs[count++]));
    }
    return tp->wait_all(ctx, call->reqs, count);
}

/* Binomial tree: ceil(log2 P) rounds, in each of which all that have the vector send it (Thakur, Rabenseifner and
 * Gropp, Optimization of collective communication operations in MPICH, 2005). */
hk_status_t hk_bcast_binomial(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call), size = call->size;
    unsigned char *vector = vector_of(call);
    int distance = 1; /* to this rank's parent; of the root at least size */
    while (distance < size && (rank & distance) == 0) {
        distance *= 2;
    }
    if (rank != 0) {
        HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank - distance)), vector, call->bytes));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (rank + distance < size) {
            HK_TRY(tp->send(ctx, hk_peer(call, hk_to_rank(call, rank + distance)), vector, call->bytes));
        }
    }
    return HK_OK;
}

/* A chain of all ranks, along which segments follow each other: a rank receives one while it sends the one before it
 * (pipelined chain: Pjesivac-Grbovic et al., Performance analysis of MPI collective operations, 2007). */
hk_status_t hk_bcast_chain(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call);
    const int before = hk_peer(call, hk_to_rank(call, rank + call->size - 1));
    const int after = hk_peer(call, hk_to_rank(call, rank + 1));
    const bool receives = rank > 0, sends = rank + 1 < call->size;
    unsigned char *vector = vector_of(call);
    size_t at = 0;
    do { /* `at` is the first byte that this rank has not sent */
        const size_t rest = call->bytes - at, part = rest < SEGMENT_BYTES ? rest : SEGMENT_BYTES;
        const size_t next = rest - part < SEGMENT_BYTES ? rest - part : SEGMENT_BYTES;
        size_t count = 0;
        if (receives && at == 0) {
            HK_TRY(tp->recv(ctx, before, vector, part));
        }
        if (receives && next > 0) {
            HK_TRY(tp->irecv(ctx, before, vector + at + part, next, &call->reqs[count++]));
        }
        if (sends) {
            HK_TRY(tp->isend(ctx, after, vector + at, part, &call->reqs[count++]));
        }
        HK_TRY(count > 0 ? tp->wait_all(ctx, call->reqs, count) : HK_OK);
        at += part;
    } while (at < call->bytes);
    return HK_OK;
}

/* Ranks from the root on, each with the part of its number: down a binomial tree a rank gets the parts of its subtree,
 * then all parts go around a ring (Barnett et al., Interprocessor collective communication library, 1994; van de
 * Geijn). */
hk_status_t hk_bcast_scatter_allgather(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call), size = call->size;
    unsigned char *vector = vector_of(call);
    int distance = 1;
    while (distance < size && (rank & distance) == 0) {
        distance *= 2;
    }
    int end = rank + distance < size ? rank + distance : size; /* of the parts that this rank has */
    const size_t mine = hk_slice_at(call, size, rank);
    if (rank != 0) {
        HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank - distance)), vector + mine,
                        hk_slice_at(call, size, end) - mine));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (rank + distance < end) {
            const size_t at = hk_slice_at(call, size, rank + distance);
            HK_TRY(tp->send(ctx, hk_peer(call, hk_to_rank(call, rank + distance)), vector + at,
                            hk_slice_at(call, size, end) - at));
            end = rank + distance;
        }
    }
    for (int step = 0; step < size - 1; step++) {
        const int given = (rank - step + size) % size, got = (rank - step - 1 + size) % size;
        const size_t given_at = hk_slice_at(call, size, given), got_at = hk_slice_at(call, size, got);
        HK_TRY(hk_swap(ctx, call, hk_to_rank(call, rank + 1), vector + given_at,
                       hk_slice_at(call, size, given + 1) - given_at, hk_to_rank(call, rank + size - 1),
                       vector + got_at, hk_slice_at(call, size, got + 1) - got_at));
    }
    return HK_OK;
}
