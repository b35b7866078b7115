#include "algorithms.h"

/* One rank after the other: each adds its vector to what the ranks before it have, and passes it on. */
hk_status_t hk_scan_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank;
    const size_t bytes = call->bytes;
    const bool is_inclusive = call->operation == HK_SCAN;
    const unsigned char *sum = hk_given(call);
    if (rank > 0) {
        unsigned char *before = is_inclusive ? call->work : call->in;
        unsigned char *with_mine = is_inclusive ? call->in : call->work;
        if (!is_inclusive && call->in_place) {
            memcpy(call->work + bytes, sum, bytes);
            sum = call->work + bytes;
        }
        HK_TRY(tp->recv(ctx, hk_peer(call, rank - 1), before, bytes));
        call->combine(with_mine, before, sum, bytes);
        sum = with_mine;
    } else if (is_inclusive && !call->in_place) {
        memcpy(call->in, sum, bytes);
    }
    return rank + 1 < call->size ? tp->send(ctx, hk_peer(call, rank + 1), sum, bytes) : HK_OK;
}

/* ceil(log2 P) steps: a rank gives what it has to the one `distance` after it, and combines what the one before gives
 * (Hillis and Steele, Data parallel algorithms, 1986). */
hk_status_t hk_scan_doubling(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank;
    const size_t bytes = call->bytes;
    const bool is_inclusive = call->operation == HK_SCAN;
    unsigned char *sum = is_inclusive ? call->in : call->work + bytes; /* of this rank and those before it */
    const unsigned char *given = hk_given(call);
    if (sum != given) {
        memcpy(sum, given, bytes);
    }
    for (int distance = 1; distance < call->size; distance *= 2) {
        size_t count = 0;
        if (rank >= distance) {
            HK_TRY(tp->irecv(ctx, hk_peer(call, rank - distance), call->work, bytes, &call->reqs[count++]));
        }
        if (rank + distance < call->size) {
            HK_TRY(tp->isend(ctx, hk_peer(call, rank + distance), sum, bytes, &call->reqs[count++]));
        }
        HK_TRY(count > 0 ? tp->wait_all(ctx, call->reqs, count) : HK_OK);
        if (rank >= distance && !is_inclusive && distance == 1) {
            memcpy(call->in, call->work, bytes);
        } else if (rank >= distance && !is_inclusive) {
            call->combine(call->in, call->work, call->in, bytes);
        }
        if (rank >= distance) {
            call->combine(sum, call->work, sum, bytes);
        }
    }
    return HK_OK;
}

/* MPI_Reduce_local by the compiler's loops. */
hk_status_t hk_reduce_local_portable(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx;
    call->combine(call->in, call->out, call->in, call->bytes);
    return HK_OK;
}
