/* Passive ROBs, pull farm (ATLAS Com-3.2): the processor asks a ROB for its fragment of an event with a short message
 * and gets it as the answer; when it has the event from all of them, it computes. */
#include "rob.h"

enum { REQUEST_BYTES = 16 };

static hk_status_t robpull_begin(hk_run_t *run, int rob, unsigned char *into, hk_req_t *reqs)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_status_t status = ctx->tp->irecv(ctx, rob, into, run->bytes, &reqs[0]);
    return status == HK_OK ? ctx->tp->isend(ctx, rob, run->out, REQUEST_BYTES, &reqs[1]) : status;
}

static hk_status_t robpull_read(hk_run_t *run, int rob, unsigned char *into)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_status_t status = ctx->tp->send(ctx, rob, run->out, REQUEST_BYTES);
    return status == HK_OK ? ctx->tp->recv(ctx, rob, into, run->bytes) : status;
}

static hk_status_t robpull_step(hk_run_t *run, int rob, unsigned char *into, size_t i, hk_req_t *req)
{
    const hk_transport_t *tp = run->ctx->tp;
    return i == 0 ? tp->isend(run->ctx, rob, run->out, REQUEST_BYTES, req)
                  : tp->irecv(run->ctx, rob, into, run->bytes, req);
}

static const hk_rob_kind_t pull_kind = {
    .requests = 2, .begin = robpull_begin, .read = robpull_read, .step = robpull_step};

static hk_plan_t robpull_plan(const hk_run_t *run)
{
    return hk_rob_plan(run, &pull_kind, REQUEST_BYTES);
}

static hk_status_t robpull_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank == 0) {
        return hk_rob_process(run, &pull_kind, reps);
    }
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = ctx->tp->recv(ctx, 0, run->in, REQUEST_BYTES);
        if (status == HK_OK) {
            status = ctx->tp->send(ctx, 0, run->out, run->bytes);
        }
    }
    return status;
}

/* A ROB must have what it was asked with. */
static bool robpull_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    if (run->ctx->rank > 0) {
        *expected_p = (hk_expected_t){.len_bytes = REQUEST_BYTES, .from_rank = 0};
        return i == 0;
    }
    return hk_rob_expected(run, i, expected_p);
}

const hk_pattern_t hk_pattern_robpull = {
    .name = "robpull",
    .summary = "rank 0 asks all other ranks for a message per event, has them and computes; its time per event",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .sized = true,
    .option = {HK_ROB_OPTIONS},
    .plan = robpull_plan,
    .prepare = hk_rob_prepare,
    .repeat = robpull_repeat,
    .expected = robpull_expected,
    .counter = hk_rob_counter,
};
