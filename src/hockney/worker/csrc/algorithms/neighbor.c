#include "algorithms.h"

static const unsigned char *block_for(const hk_call_t *call, int k)
{
    return call->out_at != NULL ? call->out + call->out_at[k] : call->out;
}

static size_t bytes_for(const hk_call_t *call, int k)
{
    return call->out_at != NULL ? hk_out_bytes(call, k) : call->given_bytes;
}

static hk_status_t receive_all(hk_ctx_t *ctx, hk_call_t *call)
{
    for (int k = 0; k < call->near.count; k++) {
        HK_TRY(ctx->tp->irecv(ctx, hk_peer(call, call->near.from[k]), call->in + call->in_at[k], hk_in_bytes(call, k),
                              &call->reqs[k]));
    }
    return HK_OK;
}

/* All messages at once. */
hk_status_t hk_neighbor_linear(hk_ctx_t *ctx, hk_call_t *call)
{
    const int count = call->near.count;
    HK_TRY(receive_all(ctx, call));
    for (int k = 0; k < count; k++) {
        HK_TRY(ctx->tp->isend(ctx, hk_peer(call, call->near.to[k]), block_for(call, k), bytes_for(call, k),
                              &call->reqs[count + k]));
    }
    return ctx->tp->wait_all(ctx, call->reqs, 2 * (size_t)count);
}

/* All receives at once, then one send after the other. */
hk_status_t hk_neighbor_in_turn(hk_ctx_t *ctx, hk_call_t *call)
{
    HK_TRY(receive_all(ctx, call));
    for (int k = 0; k < call->near.count; k++) {
        HK_TRY(ctx->tp->send(ctx, hk_peer(call, call->near.to[k]), block_for(call, k), bytes_for(call, k)));
    }
    return ctx->tp->wait_all(ctx, call->reqs, (size_t)call->near.count);
}
