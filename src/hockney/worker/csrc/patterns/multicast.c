/* Multicast (ATLAS Com-1.6): rank 0 sends the same buffer to every other rank. The time is rank 0's, including the
 * acknowledgements of the last messages, or until its sends have returned.
 * "flat": a message to each, all at once. "native": the transport's broadcast. */
#include "flow.h"

enum { MULTICAST_UNTIL = HK_FLOW_UNTIL, MULTICAST_ALGORITHM };
enum { MULTICAST_FLAT, MULTICAST_NATIVE };

static bool multicast_is_native(const hk_transport_t *tp, const int64_t *option)
{
    (void)tp;
    return option[MULTICAST_ALGORITHM] == MULTICAST_NATIVE;
}

static hk_plan_t multicast_plan(const hk_run_t *run)
{
    const uint64_t receivers = (uint64_t)run->ctx->size - 1;
    const bool source = run->ctx->rank == 0;
    const bool native = multicast_is_native(run->ctx->tp, run->option);
    return (hk_plan_t){.out_bytes = source ? run->bytes : 0,
                       .in_bytes = source ? 0 : run->bytes,
                       .reqs_count = source ? receivers : 0,
                       .bytes_per_rep = receivers * run->bytes,
                       .messages_per_rep = receivers,
                       .divisor = 1,
                       .algorithm = native ? "native" : "portable"};
}

static hk_status_t multicast_send_all(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->isend(ctx, (int)k + 1, run->out, run->bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t repeat_native(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const broadcast)(hk_ctx_t *, int, const void *, void *, size_t) = ctx->tp->broadcast;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(broadcast(ctx, 0, run->out, run->in, run->bytes));
    }
    return HK_OK;
}

static hk_status_t multicast_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (multicast_is_native(ctx->tp, run->option)) {
        HK_TRY(repeat_native(run, reps));
    } else if (ctx->rank == 0) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(multicast_send_all(run));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(ctx->tp->recv(ctx, 0, run->in, run->bytes));
        }
    }
    return hk_flow_acknowledge_root(run);
}

static bool multicast_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.len_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank > 0 && i == 0;
}

const hk_pattern_t hk_pattern_multicast = {
    .name = "multicast",
    .summary = "rank 0 sends the same message to every other rank; its time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .collective = HK_BROADCAST,
    .native = multicast_is_native,
    .option = {HK_FLOW_OPTION_UNTIL,
               {"algorithm", "flat|native", MULTICAST_FLAT, 0, 0, "a message to each, or the transport's broadcast"}},
    .plan = multicast_plan,
    .repeat = multicast_repeat,
    .expected = multicast_expected,
};
