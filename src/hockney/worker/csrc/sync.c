#include "sync.h"

#include "algorithms/algorithms.h"

hk_status_t hk_sync(hk_ctx_t *ctx)
{
    if (ctx->tp->barrier != NULL) {
        return ctx->tp->barrier(ctx);
    }
    HK_TRY((ctx->tp->caps & HK_CAP_ONE_SIDED) != 0 ? ctx->tp->quiet(ctx) : HK_OK);
    hk_req_t reqs[2];
    hk_call_t call = {.rank = ctx->rank, .size = ctx->size, .reqs = reqs};
    return hk_barrier_dissemination(ctx, &call);
}

hk_status_t hk_greet_all(hk_ctx_t *ctx)
{
    unsigned char nothing = 0;
    for (int distance = 1; distance < ctx->size; distance++) {
        HK_TRY(ctx->tp->send(ctx, (ctx->rank + distance) % ctx->size, &nothing, 0));
        HK_TRY(ctx->tp->recv(ctx, (ctx->rank - distance + ctx->size) % ctx->size, &nothing, 0));
    }
    return HK_OK;
}
