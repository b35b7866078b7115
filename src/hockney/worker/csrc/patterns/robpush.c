/* Active ROBs, push farm (ATLAS Com-3.1): every ROB sends its fragments one after the other, as fast as they are
 * received. The processor receives each event from all ROBs and then computes. */
#include "rob.h"

static hk_status_t robpush_begin(hk_run_t *run, int rob, unsigned char *into, hk_req_t *reqs)
{
    return run->ctx->tp->irecv(run->ctx, rob, into, run->bytes, reqs);
}

static hk_status_t robpush_read(hk_run_t *run, int rob, unsigned char *into)
{
    return run->ctx->tp->recv(run->ctx, rob, into, run->bytes);
}

static hk_status_t robpush_step(hk_run_t *run, int rob, unsigned char *into, size_t i, hk_req_t *req)
{
    (void)i;
    return robpush_begin(run, rob, into, req);
}

static hk_status_t robpush_serve(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(ctx->tp->send(ctx, 0, run->out, run->bytes));
    }
    return HK_OK;
}

static const hk_rob_kind_t push_kind = {
    .requests = 1, .begin = robpush_begin, .read = robpush_read, .step = robpush_step, .serve = robpush_serve};

const hk_pattern_t hk_pattern_robpush = {
    .name = "robpush",
    .kind = HK_KIND_FARM,
    .summary =
        "all other ranks send a message per event to rank 0, which receives them and computes; its time per event",
    .own = &push_kind,
    HK_ROB_SHARED,
};
