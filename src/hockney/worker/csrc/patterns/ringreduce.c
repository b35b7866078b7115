/* Ring allreduce (P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
 * 2009; used for the gradients of machine learning): a vector has one part per rank. In P - 1 steps each rank adds a
 * part from its left neighbour to its own and sends the sum to the right. Then each rank has one part of the total.
 * In P - 1 more steps these parts travel around the ring. The time is that of the slowest rank. */
#include "../algorithms/algorithms.h"
#include "../pattern.h"

/* `in` has room for the sum, and for one part of another rank. */
static hk_plan_t ringreduce_plan(const hk_run_t *run)
{
    const uint64_t ranks = (uint64_t)run->ctx->size;
    const size_t part_bytes = (run->bytes / sizeof(uint64_t) + ranks - 1) / ranks * sizeof(uint64_t);
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes + part_bytes,
                       .reqs_count = 2,
                       .bytes_per_rep = 2 * (ranks - 1) * run->bytes,
                       .messages_per_rep = 2 * (ranks - 1) * ranks};
}

static hk_status_t ringreduce_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_call_t call = {.operation = HK_ALLREDUCE,
                      .type = HK_UINT64,
                      .combine = hk_combine_of(HK_UINT64, HK_SUM),
                      .rank = ctx->rank,
                      .size = ctx->size,
                      .bytes = run->bytes,
                      .out = run->out,
                      .in = run->in,
                      .work = run->in + run->bytes,
                      .reqs = run->reqs};
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(hk_allreduce_ring(ctx, &call));
    }
    return HK_OK;
}

static bool ringreduce_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = HK_FROM_ALL, .type = HK_UINT64};
    return i == 0;
}

const hk_pattern_t hk_pattern_ringreduce = {
    .name = "ringreduce",
    .kind = HK_KIND_APPLICATION,
    .summary =
        "ring allreduce: parts of vectors are summed around a ring, then the sums travel around it; slowest rank",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .grain_bytes = sizeof(uint64_t),
    .plan = ringreduce_plan,
    .repeat = ringreduce_repeat,
    .expected = ringreduce_expected,
};
