/* Outfarming (ATLAS Com-1.5): rank 0 sends a different message to every other rank, all at once. The time is rank
 * 0's, including the acknowledgements of the last messages, or until its sends have returned. */
#include "flow.h"

static hk_plan_t outfarm_plan(const hk_run_t *run)
{
    const uint64_t receivers = (uint64_t)run->ctx->size - 1;
    const bool source = run->ctx->rank == 0;
    return (hk_plan_t){.out_bytes = source ? receivers * run->bytes : 0,
                       .in_bytes = source ? 0 : run->bytes,
                       .reqs_count = source ? receivers : 0,
                       .bytes_per_rep = receivers * run->bytes,
                       .messages_per_rep = receivers,
                       .divisor = 1};
}

static hk_status_t outfarm_send_all(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->isend(ctx, (int)k + 1, run->out + k * run->bytes, run->bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t outfarm_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank == 0) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(outfarm_send_all(run));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(ctx->tp->recv(ctx, 0, run->in, run->bytes));
        }
    }
    return hk_flow_acknowledge_root(run);
}

static bool outfarm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const size_t place = (size_t)run->ctx->rank - 1;
    *expected_p = (hk_expected_t){.from_offset = place * run->bytes, .len_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank > 0 && i == 0;
}

const hk_pattern_t hk_pattern_outfarm = {
    .name = "outfarm",
    .summary = "rank 0 sends a different message to every other rank; its time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .option = {HK_FLOW_OPTION_UNTIL},
    .plan = outfarm_plan,
    .repeat = outfarm_repeat,
    .expected = outfarm_expected,
};
