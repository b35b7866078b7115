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
