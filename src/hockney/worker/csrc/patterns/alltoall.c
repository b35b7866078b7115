/* All-to-all (ATLAS Com-1.3): each rank sends a different message to each other rank. The time is that of the slowest
 * rank.
 * "flat": all messages at once, none to itself. "pairwise": one exchange at a time. "native": the transport's
 * all-to-all, which also copies the rank's own block. */
#include "../collectives.h"
#include "../pattern.h"

enum { ALLTOALL_ALGORITHM };
enum { ALLTOALL_AUTO, ALLTOALL_NATIVE, ALLTOALL_FLAT, ALLTOALL_PAIRWISE };

static bool alltoall_is_native(const hk_transport_t *tp, const int64_t *option)
{
    return option[ALLTOALL_ALGORITHM] == ALLTOALL_NATIVE ||
           (option[ALLTOALL_ALGORITHM] == ALLTOALL_AUTO && tp->alltoall != NULL);
}

static hk_plan_t alltoall_plan(const hk_run_t *run)
{
    const uint64_t size = (uint64_t)run->ctx->size;
    return (hk_plan_t){.out_bytes = size * run->bytes,
                       .in_bytes = size * run->bytes,
                       .reqs_count = run->option[ALLTOALL_ALGORITHM] == ALLTOALL_PAIRWISE ? 2 : 2 * (size - 1),
                       .bytes_per_rep = size * (size - 1) * run->bytes,
                       .messages_per_rep = size * (size - 1),
                       .divisor = 1,
                       .algorithm = alltoall_is_native(run->ctx->tp, run->option) ? "native" : "portable"};
}

static hk_status_t alltoall_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (alltoall_is_native(ctx->tp, run->option)) {
        hk_status_t (*const alltoall)(hk_ctx_t *, const void *, void *, size_t) = ctx->tp->alltoall;
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(alltoall(ctx, run->out, run->in, run->bytes));
        }
    } else {
        hk_status_t (*const alltoall)(hk_ctx_t *, const void *, void *, size_t, hk_req_t *) =
            run->option[ALLTOALL_ALGORITHM] == ALLTOALL_PAIRWISE ? hk_pairwise_alltoall : hk_portable_alltoall;
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(alltoall(ctx, run->out, run->in, run->bytes, run->reqs));
        }
    }
    return HK_OK;
}

static bool alltoall_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int rank = run->ctx->rank;
    const int from = (int)i < rank ? (int)i : (int)i + 1;
    *expected_p = (hk_expected_t){.in_offset = (size_t)from * run->bytes,
                                  .from_offset = (size_t)rank * run->bytes,
                                  .size_bytes = run->bytes,
                                  .from_rank = from};
    return from < run->ctx->size;
}

const hk_pattern_t hk_pattern_alltoall = {
    .name = "alltoall",
    .summary = "every rank sends a different message to every other rank; the slowest rank's time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .collective = HK_ALLTOALL,
    .native = alltoall_is_native,
    .option = {{"algorithm", "auto|native|flat|pairwise", ALLTOALL_AUTO, 0, 0,
                "the transport's all-to-all, all messages at once, or one exchange at a time; auto: native if it "
                "exists, else flat"}},
    .plan = alltoall_plan,
    .repeat = alltoall_repeat,
    .expected = alltoall_expected,
};
