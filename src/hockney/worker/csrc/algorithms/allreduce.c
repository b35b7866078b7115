#include "halving.h"

/* Recursive doubling: in log2 P rounds pairs exchange and combine their results (Thakur, Rabenseifner and Gropp 2005).
 * Ranks beyond a power of two give their vector to another rank before, and get the result after. */
hk_status_t hk_allreduce_doubling(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank;
    const size_t bytes = call->bytes;
    const unsigned char *mine = hk_given(call);
    int doubling = 1; /* the largest power of two up to size */
    while (2 * doubling <= call->size) {
        doubling *= 2;
    }
    if (rank >= doubling) {
        HK_TRY(tp->send(ctx, hk_peer(call, rank - doubling), mine, bytes));
        return tp->recv(ctx, hk_peer(call, rank - doubling), call->in, bytes);
    }
    const bool stands_for_another = rank + doubling < call->size;
    if (stands_for_another) {
        HK_TRY(tp->recv(ctx, hk_peer(call, rank + doubling), call->work, bytes));
        call->combine(call->in, mine, call->work, bytes);
        mine = call->in;
    }
    for (int distance = 1; distance < doubling; distance *= 2) {
        HK_TRY(hk_swap(ctx, call, rank ^ distance, mine, bytes, rank ^ distance, call->work, bytes));
        call->combine(call->in, mine, call->work, bytes);
        mine = call->in;
    }
    return stands_for_another ? tp->send(ctx, hk_peer(call, rank + doubling), call->in, bytes) : HK_OK;
}

/* P parts: in P - 1 steps around a ring each is combined, in P - 1 more all results go around (Patarasuk and Yuan,
 * Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009). */
hk_status_t hk_allreduce_ring(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const int after = (rank + 1) % size, before = (rank + size - 1) % size;
    const unsigned char *given = hk_given(call);
    for (int step = 0; step < 2 * (size - 1); step++) {
        const bool combines = step < size - 1;
        const int sent = (rank + 2 * size - step) % size, got = (sent + size - 1) % size;
        const size_t sent_at = hk_slice_at(call, size, sent), sent_bytes = hk_slice_at(call, size, sent + 1) - sent_at;
        const size_t got_at = hk_slice_at(call, size, got), got_bytes = hk_slice_at(call, size, got + 1) - got_at;
        unsigned char *const place = combines ? call->work : call->in + got_at;
        HK_TRY(
            hk_swap(ctx, call, after, (step == 0 ? given : call->in) + sent_at, sent_bytes, before, place, got_bytes));
        if (combines) {
            call->combine(call->in + got_at, given + got_at, place, got_bytes);
        }
    }
    return HK_OK;
}

/* Recursive halving, then doubling of the results along the same pairs (Rabenseifner 2004). */
hk_status_t hk_allreduce_rabenseifner(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = call->rank;
    halving_t halving;
    HK_TRY(halving_begin(ctx, call, rank, hk_given(call), call->in, &halving));
    if (rank >= halving.doubling) {
        return tp->recv(ctx, hk_peer(call, rank - halving.doubling), call->in, call->bytes);
    }
    for (int distance = 1; distance < halving.doubling; distance *= 2) {
        const halving_range_t mine = halving_back(&halving), other = halving_other(&halving, mine);
        HK_TRY(hk_swap(ctx, call, rank ^ distance, call->in + mine.at, mine.end - mine.at, rank ^ distance,
                       call->in + other.at, other.end - other.at));
    }
    const int extra = rank + halving.doubling;
    return extra < call->size ? tp->send(ctx, hk_peer(call, extra), call->in, call->bytes) : HK_OK;
}

/* Rank 0 receives the vectors one after the other, and sends the result to each. */
hk_status_t hk_allreduce_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const hk_transport_t *tp = ctx->tp;
    const unsigned char *sum = hk_given(call);
    if (call->rank != 0) {
        HK_TRY(tp->send(ctx, hk_peer(call, 0), sum, call->bytes));
        return tp->recv(ctx, hk_peer(call, 0), call->in, call->bytes);
    }
    for (int from = 1; from < call->size; from++) {
        HK_TRY(tp->recv(ctx, hk_peer(call, from), call->work, call->bytes));
        call->combine(call->in, sum, call->work, call->bytes);
        sum = call->in;
    }
    for (int to = 1; to < call->size; to++) {
        HK_TRY(tp->send(ctx, hk_peer(call, to), call->in, call->bytes));
    }
    return HK_OK;
}
