#include "halving.h"

enum { REDUCE_SEGMENT_BYTES = 16384 }; /* of a pipeline; whole elements of all types */

/* Where the result of the root, or the partial result of another rank grows. */
static unsigned char *sum_of(const hk_call_t *call)
{
    return call->rank == call->root ? call->in : call->work + call->bytes;
}

/* The root receives the vectors one after the other. */
hk_status_t hk_reduce_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const unsigned char *sum = hk_given(call);
    if (call->rank != call->root) {
        return tp->send(ctx, hk_peer(call, call->root), call->out, call->bytes);
    }
    for (int i = 1; i < call->size; i++) {
        HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, i)), call->work, call->bytes));
        call->combine(call->in, sum, call->work, call->bytes);
        sum = call->in;
    }
    return HK_OK;
}

/* Binomial tree: ceil(log2 P) rounds (Thakur, Rabenseifner and Gropp 2005). */
hk_status_t hk_reduce_binomial(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call), size = call->size;
    const unsigned char *mine = call->rank == call->root ? hk_given(call) : call->out;
    unsigned char *sum = sum_of(call);
    for (int distance = 1; distance < size; distance *= 2) {
        if ((rank & distance) != 0) {
            return tp->send(ctx, hk_peer(call, hk_to_rank(call, rank - distance)), mine, call->bytes);
        }
        if (rank + distance < size) {
            HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank + distance)), call->work, call->bytes));
            call->combine(sum, mine, call->work, call->bytes);
            mine = sum;
        }
    }
    return HK_OK;
}

/* A chain of all ranks towards the root, in segments: a rank receives one while it sends the one before it
 * (Pjesivac-Grbovic et al. 2007). */
hk_status_t hk_reduce_chain(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call);
    const int farther = hk_peer(call, hk_to_rank(call, rank + 1));
    const int nearer = hk_peer(call, hk_to_rank(call, rank + call->size - 1));
    const bool receives = rank + 1 < call->size, sends = rank > 0;
    const unsigned char *given = call->rank == call->root ? hk_given(call) : call->out;
    unsigned char *sum = sum_of(call);
    size_t at = 0;
    do { /* `at` is the first byte that this rank has not combined */
        const size_t rest = call->bytes - at, part = rest < REDUCE_SEGMENT_BYTES ? rest : REDUCE_SEGMENT_BYTES;
        const size_t next = rest - part < REDUCE_SEGMENT_BYTES ? rest - part : REDUCE_SEGMENT_BYTES;
        size_t count = 0;
        if (receives && at == 0) {
            HK_TRY(tp->recv(ctx, farther, call->work, part));
        }
        if (receives) {
            call->combine(sum + at, given + at, call->work + at, part);
        }
        if (receives && next > 0) {
            HK_TRY(tp->irecv(ctx, farther, call->work + at + part, next, &call->reqs[count++]));
        }
        if (sends) {
            HK_TRY(tp->isend(ctx, nearer, (receives ? sum : given) + at, part, &call->reqs[count++]));
        }
        HK_TRY(count > 0 ? tp->wait_all(ctx, call->reqs, count) : HK_OK);
        at += part;
    } while (at < call->bytes);
    return HK_OK;
}

/* Recursive halving, then a gathering of the parts along the same pairs (Rabenseifner, Optimization of collective
 * reduction operations, 2004). */
hk_status_t hk_reduce_rabenseifner(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = hk_from_root(call);
    const unsigned char *given = call->rank == call->root ? hk_given(call) : call->out;
    unsigned char *sum = sum_of(call);
    halving_t halving;
    HK_TRY(halving_begin(ctx, call, rank, given, sum, &halving));
    if (rank >= halving.doubling) {
        return HK_OK; /* another rank has its vector */
    }
    for (int distance = 1; distance < halving.doubling; distance *= 2) {
        const int peer = hk_peer(call, hk_to_rank(call, rank ^ distance));
        const halving_range_t mine = halving_back(&halving);
        if ((rank & distance) != 0) {
            return tp->send(ctx, peer, sum + mine.at, mine.end - mine.at);
        }
        const halving_range_t other = halving_other(&halving, mine);
        HK_TRY(tp->recv(ctx, peer, sum + other.at, other.end - other.at));
    }
    return HK_OK;
}
