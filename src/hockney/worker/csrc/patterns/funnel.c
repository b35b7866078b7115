/* Funnel (ATLAS Com-1.7): every other rank sends one message to rank 0, all at once. The time is rank 0's. */
#include "../pattern.h"

static hk_plan_t funnel_plan(const hk_run_t *run)
{
    const uint64_t sources = (uint64_t)run->ctx->size - 1;
    const bool target = run->ctx->rank == 0;
    return (hk_plan_t){.out_bytes = target ? 0 : run->bytes,
                       .in_bytes = target ? sources * run->bytes : 0,
                       .reqs_count = target ? sources : 0,
                       HK_MOVES(run, sources)};
}

static hk_status_t funnel_receive_all(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->irecv(ctx, (int)k + 1, run->in + k * run->bytes, run->bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t funnel_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank == 0) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(funnel_receive_all(run));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(ctx->tp->send(ctx, 0, run->out, run->bytes));
        }
    }
    return HK_OK;
}

static bool funnel_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = (int)i + 1};
    return run->ctx->rank == 0 && i < run->reqs_count;
}

const hk_pattern_t hk_pattern_funnel = {
    .name = "funnel",
    .summary = "every other rank sends one message to rank 0; its time to receive them all",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .plan = funnel_plan,
    .repeat = funnel_repeat,
    .expected = funnel_expected,
};
