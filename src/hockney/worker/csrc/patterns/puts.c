#include "puts.h"

static hk_status_t put_each(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->put(ctx, peer, run->in, run->out, run->bytes));
        HK_TRY(tp->quiet(ctx));
    }
    return HK_OK;
}

hk_status_t hk_puts(hk_run_t *run, int peer, int64_t quiet, uint64_t reps)
{
    if (quiet == HK_QUIET_EACH) {
        return put_each(run, peer, reps);
    }
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const put)(hk_ctx_t *, int, void *, const void *, size_t) = ctx->tp->put;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(put(ctx, peer, run->in, run->out, run->bytes));
    }
    return ctx->tp->quiet(ctx);
}
