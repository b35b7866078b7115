#include "puts.h"

static hk_status_t put_each(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = tp->put(ctx, peer, run->in, run->out, run->bytes);
        if (status == HK_OK) {
            status = tp->quiet(ctx);
        }
    }
    return status;
}

hk_status_t hk_puts(hk_run_t *run, int peer, int64_t quiet, uint64_t reps)
{
    if (quiet == HK_QUIET_EACH) {
        return put_each(run, peer, reps);
    }
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const put)(hk_ctx_t *, int, void *, const void *, size_t) = ctx->tp->put;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = put(ctx, peer, run->in, run->out, run->bytes);
    }
    return status == HK_OK ? ctx->tp->quiet(ctx) : status;
}
