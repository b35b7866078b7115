/* Passive ROBs, pull farm (ATLAS Com-3.2): for each event the processor sends a short request to each ROB, receives
 * the fragments as answers, and then computes. */
#include "rob.h"

enum { REQUEST_BYTES = 16 };

static hk_status_t robpull_begin(hk_run_t *run, int rob, unsigned char *into, hk_req_t *reqs)
{
    hk_ctx_t *ctx = run->ctx;
    HK_TRY(ctx->tp->irecv(ctx, rob, into, run->bytes, &reqs[0]));
    return ctx->tp->isend(ctx, rob, run->out, REQUEST_BYTES, &reqs[1]);
}

static hk_status_t robpull_read(hk_run_t *run, int rob, unsigned char *into)
{
    hk_ctx_t *ctx = run->ctx;
    HK_TRY(ctx->tp->send(ctx, rob, run->out, REQUEST_BYTES));
    return ctx->tp->recv(ctx, rob, into, run->bytes);
}

static hk_status_t robpull_step(hk_run_t *run, int rob, unsigned char *into, size_t i, hk_req_t *req)
{
    const hk_transport_t *tp = run->ctx->tp;
    return i == 0 ? tp->isend(run->ctx, rob, run->out, REQUEST_BYTES, req)
                  : tp->irecv(run->ctx, rob, into, run->bytes, req);
}

static hk_status_t robpull_serve(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(ctx->tp->recv(ctx, 0, run->in, REQUEST_BYTES));
        HK_TRY(ctx->tp->send(ctx, 0, run->out, run->bytes));
    }
    return HK_OK;
}

static const hk_rob_kind_t pull_kind = {.requests = 2,
                                        .asked_bytes = REQUEST_BYTES,
                                        .begin = robpull_begin,
                                        .read = robpull_read,
                                        .step = robpull_step,
                                        .serve = robpull_serve};

const hk_pattern_t hk_pattern_robpull = {
    .name = "robpull",
    .kind = HK_KIND_FARM,
    .summary =
        "rank 0 requests a message per event from all other ranks, receives them and computes; its time per event",
    .own = &pull_kind,
    HK_ROB_SHARED,
};
