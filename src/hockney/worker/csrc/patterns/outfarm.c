/* Outfarming and multicast (ATLAS Com-1.5 and 1.6): rank 0 sends a message to every other rank, all at once: a
 * different one to each, or the same buffer. The time is rank 0's, including the acknowledgements of the last messages,
 * or until its sends have returned. The library's broadcast is the pattern bcast. */
#include "flow.h"

/* From the message for one rank to that for the next. */
static size_t outfarm_stride(const hk_run_t *run)
{
    return *(const bool *)run->pattern->own ? run->bytes : 0;
}

static hk_plan_t outfarm_plan(const hk_run_t *run)
{
    const uint64_t receivers = (uint64_t)run->ctx->size - 1;
    const bool is_source = run->ctx->rank == 0;
    return (hk_plan_t){.out_bytes = !is_source                ? 0
                                    : outfarm_stride(run) > 0 ? receivers * run->bytes
                                                              : run->bytes,
                       .in_bytes = is_source ? 0 : run->bytes,
                       .reqs_count = is_source ? receivers : 0,
                       HK_MOVES(run, receivers)};
}

static hk_status_t outfarm_send_all(hk_run_t *run, size_t stride_bytes)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->isend(ctx, (int)k + 1, run->out + k * stride_bytes, run->bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t outfarm_acknowledge(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank > 0) {
        return ctx->tp->send(ctx, 0, run->out, 0);
    }
    for (int rank = 1; rank < ctx->size; rank++) {
        HK_TRY(ctx->tp->recv(ctx, rank, run->in, 0));
    }
    return HK_OK;
}

static hk_status_t outfarm_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const size_t stride_bytes = outfarm_stride(run);
    if (ctx->rank == 0) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(outfarm_send_all(run, stride_bytes));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(ctx->tp->recv(ctx, 0, run->in, run->bytes));
        }
    }
    return run->option[HK_FLOW_UNTIL] == HK_UNTIL_ACKED ? outfarm_acknowledge(run) : HK_OK;
}

static bool outfarm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const size_t place = (size_t)run->ctx->rank - 1;
    *expected_p = (hk_expected_t){.from_offset = place * outfarm_stride(run), .size_bytes = run->bytes, .from_rank = 0};
    return run->ctx->rank > 0 && i == 0;
}

/* A pattern; whether each rank gets a message of its own. */
#define OUTFARM_ROW(key, is_own, text)                                                                                 \
    const hk_pattern_t hk_pattern_##key = {.name = #key,                                                               \
                                           .summary = (text),                                                          \
                                           .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,                                  \
                                           .ranks_min = 2,                                                             \
                                           .timed = HK_TIMED_ROOT,                                                     \
                                           .law = HK_LAW_MESSAGES,                                                     \
                                           .stream = true,                                                             \
                                           .option = {HK_FLOW_OPTION_UNTIL},                                           \
                                           .plan = outfarm_plan,                                                       \
                                           .repeat = outfarm_repeat,                                                   \
                                           .expected = outfarm_expected,                                               \
                                           .own = &(const bool){is_own}};

OUTFARM_ROW(outfarm, true, "rank 0 sends a different message to every other rank; its time")
OUTFARM_ROW(multicast, false, "rank 0 sends the same message to every other rank; its time")
