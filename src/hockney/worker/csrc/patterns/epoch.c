#include "epoch.h"

#include <stdio.h>

bool hk_epoch_fits(const hk_run_t *run, hk_epoch_kind_t kind, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    if (kind == HK_NO_EPOCH) {
        return true;
    }
    if ((tp->caps & HK_CAP_DEFERRED) == 0) {
        snprintf(why, len, "%s has no puts and gets that complete later; sync=blocking does without", tp->name);
        return false;
    }
    snprintf(why, len, "%s has no epochs, so no %s; sync=quiet completes what was started", tp->name,
             hk_epoch_names[kind]);
    return kind == HK_EPOCH_QUIET || (tp->caps & HK_CAP_EPOCHS) != 0;
}

static hk_status_t epoch_end_quietly(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    (void)epoch;
    return ctx->tp->quiet(ctx);
}

hk_status_t hk_epoch_make(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    if (epoch->kind > HK_EPOCH_QUIET) {
        return ctx->tp->make_epoch(ctx, epoch);
    }
    epoch->begin = NULL;
    epoch->end = epoch_end_quietly;
    return HK_OK;
}

hk_status_t hk_epoch_keep(hk_ctx_t *ctx, hk_epoch_t *epoch, hk_status_t status)
{
    if (status != HK_OK) {
        (void)hk_epoch_drop(ctx, epoch);
    }
    return status;
}

hk_status_t hk_epoch_drop(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    return epoch->own != NULL ? ctx->tp->drop_epoch(ctx, epoch) : HK_OK;
}
