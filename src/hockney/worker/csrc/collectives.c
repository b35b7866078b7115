#include "collectives.h"

/* Neither send waits for its receive: every transport buffers a token. */
static hk_status_t exchange_tokens(hk_ctx_t *ctx, int to, int from)
{
    const hk_transport_t *tp = ctx->tp;
    unsigned char nothing = 0; /* a valid address for 0 bytes */
    HK_TRY(tp->send(ctx, to, &nothing, 0));
    return tp->recv(ctx, from, &nothing, 0);
}

/* If a send waits for its receive, the receive must be started first. */
static hk_status_t exchange(hk_ctx_t *ctx, int to, const void *out, int from, void *in, size_t size_bytes)
{
    const hk_transport_t *tp = ctx->tp;
    hk_req_t reqs[2];
    HK_TRY(tp->irecv(ctx, from, in, size_bytes, &reqs[0]));
    HK_TRY(tp->isend(ctx, to, out, size_bytes, &reqs[1]));
    return tp->wait_all(ctx, reqs, 2);
}

static hk_status_t exchange_posted_tokens(hk_ctx_t *ctx, int to, int from)
{
    unsigned char nothing[2] = {0};
    return exchange(ctx, to, &nothing[1], from, &nothing[0], 0);
}

hk_status_t hk_portable_barrier(hk_ctx_t *ctx)
{
    const int size = ctx->size;
    hk_status_t (*const exchange_both)(hk_ctx_t *, int, int) =
        (ctx->tp->caps & HK_CAP_SYNCHRONOUS) != 0 ? exchange_posted_tokens : exchange_tokens;
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (ctx->rank + distance) % size;
        const int from = (ctx->rank - distance + size) % size;
        HK_TRY(exchange_both(ctx, to, from));
    }
    return HK_OK;
}

/* Each rank starts with its right neighbour, so that rank 0 does not receive all messages first. */
hk_status_t hk_portable_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t size_bytes, hk_req_t *reqs)
{
    const hk_transport_t *tp = ctx->tp;
    hk_req_t *req = reqs;
    for (int step = 1; step < ctx->size; step++) {
        const int from = (ctx->rank - step + ctx->size) % ctx->size;
        HK_TRY(tp->irecv(ctx, from, (unsigned char *)in + (size_t)from * size_bytes, size_bytes, req++));
    }
    for (int step = 1; step < ctx->size; step++) {
        const int to = (ctx->rank + step) % ctx->size;
        HK_TRY(tp->isend(ctx, to, (const unsigned char *)out + (size_t)to * size_bytes, size_bytes, req++));
    }
    return tp->wait_all(ctx, reqs, 2 * (size_t)(ctx->size - 1));
}

void hk_add_words(void *sum, const void *left, const void *right, size_t size_bytes)
{
    uint64_t *sums = sum;
    const uint64_t *lefts = left;
    const uint64_t *rights = right;
    for (size_t i = 0; i < size_bytes / sizeof *sums; i++) {
        sums[i] = lefts[i] + rights[i];
    }
}

hk_status_t hk_pairwise_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t size_bytes, hk_req_t *reqs)
{
    const hk_transport_t *tp = ctx->tp;
    for (int step = 1; step < ctx->size; step++) {
        const int from = ctx->rank >= step ? ctx->rank - step : ctx->rank - step + ctx->size;
        const int to = ctx->rank + step < ctx->size ? ctx->rank + step : ctx->rank + step - ctx->size;
        HK_TRY(tp->irecv(ctx, from, (unsigned char *)in + (size_t)from * size_bytes, size_bytes, &reqs[0]));
        HK_TRY(tp->isend(ctx, to, (const unsigned char *)out + (size_t)to * size_bytes, size_bytes, &reqs[1]));
        HK_TRY(tp->wait_all(ctx, reqs, 2));
    }
    return HK_OK;
}

hk_status_t hk_portable_allreduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = ctx->rank;
    const void *mine = out;
    hk_status_t status = HK_OK;
    int doubling = 1; /* the largest power of two up to size */
    while (2 * doubling <= ctx->size) {
        doubling *= 2;
    }
    if (rank >= doubling) {
        status = tp->send(ctx, rank - doubling, out, size_bytes);
        return status == HK_OK ? tp->recv(ctx, rank - doubling, in, size_bytes) : status;
    }
    const bool stands_for_another = rank + doubling < ctx->size;
    if (stands_for_another) {
        status = tp->recv(ctx, rank + doubling, work, size_bytes);
        hk_add_words(in, mine, work, size_bytes);
        mine = in;
    }
    for (int distance = 1; distance < doubling && status == HK_OK; distance *= 2) {
        status = exchange(ctx, rank ^ distance, mine, rank ^ distance, work, size_bytes);
        hk_add_words(in, mine, work, size_bytes);
        mine = in;
    }
    return status == HK_OK && stands_for_another ? tp->send(ctx, rank + doubling, in, size_bytes) : status;
}

hk_status_t hk_portable_reduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = ctx->rank;
    const void *mine = out;
    for (int distance = 1; distance < ctx->size; distance *= 2) {
        if ((rank & distance) != 0) {
            return tp->send(ctx, rank - distance, mine, size_bytes);
        }
        if (rank + distance < ctx->size) {
            HK_TRY(tp->recv(ctx, rank + distance, work, size_bytes));
            hk_add_words(in, mine, work, size_bytes);
            mine = in;
        }
    }
    return HK_OK;
}

hk_status_t hk_portable_broadcast(hk_ctx_t *ctx, void *in, size_t size_bytes)
{
    const hk_transport_t *tp = ctx->tp;
    const int rank = ctx->rank;
    int distance = 1; /* the distance to this rank's parent; for rank 0 at least size */
    while (distance < ctx->size && (rank & distance) == 0) {
        distance *= 2;
    }
    if (rank != 0) {
        HK_TRY(tp->recv(ctx, rank - distance, in, size_bytes));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (rank + distance < ctx->size) {
            HK_TRY(tp->send(ctx, rank + distance, in, size_bytes));
        }
    }
    return HK_OK;
}

hk_status_t hk_sync(hk_ctx_t *ctx)
{
    return ctx->tp->barrier != NULL ? ctx->tp->barrier(ctx) : hk_portable_barrier(ctx);
}
