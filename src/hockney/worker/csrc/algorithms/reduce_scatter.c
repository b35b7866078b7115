#include "algorithms.h"

/* A rank sends each block to the rank that gets it, one exchange at a time, and combines those that it gets (Thakur,
 * Rabenseifner and Gropp 2005). */
hk_status_t hk_reduce_scatter_pairwise(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const size_t bytes = hk_out_bytes(call, rank);
    const unsigned char *given = hk_given(call), *mine = given + call->out_at[rank];
    unsigned char *sum = call->work + call->out_at[size]; /* in place, `in` is needed to the end */
    for (int step = 1; step < size; step++) {
        const int to = (rank + step) % size, from = (rank + size - step) % size;
        HK_TRY(hk_swap(ctx, call, to, given + call->out_at[to], hk_out_bytes(call, to), from, call->work, bytes));
        call->combine(step < size - 1 ? sum : call->in, mine, call->work, bytes);
        mine = sum;
    }
    return HK_OK;
}

/* P - 1 steps around a ring: the result for a rank starts at the rank after it and grows until it is there (as the
 * first half of Patarasuk and Yuan 2009). */
hk_status_t hk_reduce_scatter_ring(hk_ctx_t *ctx, hk_call_t *call)
{
    const int rank = call->rank, size = call->size;
    const int after = (rank + 1) % size, before = (rank + size - 1) % size;
    const unsigned char *given = hk_given(call);
    const unsigned char *sent = given + call->out_at[before];
    unsigned char *const rooms[2] = {call->work, call->work + call->out_at[size]};
    for (int step = 0; step < size - 1; step++) {
        const int sent_block = (rank + 2 * size - step - 1) % size, got_block = (sent_block + size - 1) % size;
        unsigned char *got = rooms[step % 2];
        HK_TRY(hk_swap(ctx, call, after, sent, hk_out_bytes(call, sent_block), before, got,
                       hk_out_bytes(call, got_block)));
        call->combine(step < size - 2 ? got : call->in, given + call->out_at[got_block], got,
                      hk_out_bytes(call, got_block));
        sent = got;
    }
    return HK_OK;
}

/* Recursive halving, for powers of two: pairs at shrinking distances swap the halves that the other is responsible for
 * (Thakur, Rabenseifner and Gropp 2005). */
hk_status_t hk_reduce_scatter_halving(hk_ctx_t *ctx, hk_call_t *call)
{
    const size_t *at = call->out_at;
    const unsigned char *mine = hk_given(call);
    unsigned char *sum = call->work + at[call->size];
    int first = 0;
    for (int distance = call->size / 2; distance > 0; distance /= 2) {
        const int peer = call->rank ^ distance, middle = first + distance;
        const bool is_upper = call->rank >= middle;
        const int kept = is_upper ? middle : first, given = is_upper ? first : middle;
        const size_t kept_bytes = at[kept + distance] - at[kept];
        HK_TRY(hk_swap(ctx, call, peer, mine + at[given], at[given + distance] - at[given], peer, call->work + at[kept],
                       kept_bytes));
        call->combine(distance > 1 ? sum + at[kept] : call->in, mine + at[kept], call->work + at[kept], kept_bytes);
        mine = sum;
        first = kept;
    }
    return HK_OK;
}
