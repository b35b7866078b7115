/* Ring allreduce (P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
 * 2009; used for the gradients of machine learning): a vector has one part per rank. In P - 1 steps each rank adds a
 * part from its left neighbour to its own and sends the sum to the right. Then each rank has one part of the total.
 * In P - 1 more steps these parts travel around the ring. The time is that of the slowest rank. */
#include "../pattern.h"
#include "../sync.h"

/* The offset of a part. The first parts are one word longer if the words do not divide evenly. */
static size_t part_offset(const hk_run_t *run, int part)
{
    const size_t words = run->bytes / sizeof(uint64_t), parts = (size_t)run->ctx->size, at = (size_t)part;
    const size_t longer = words % parts;
    return (at * (words / parts) + (at < longer ? at : longer)) * sizeof(uint64_t);
}

static size_t part_bytes(const hk_run_t *run, int part)
{
    return part_offset(run, part + 1) - part_offset(run, part);
}

/* `in` has room for the sum and for one incoming part; the first part is the longest. */
static hk_plan_t ringreduce_plan(const hk_run_t *run)
{
    const uint64_t ranks = (uint64_t)run->ctx->size;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes + part_bytes(run, 0),
                       .reqs_count = 2,
                       .bytes_per_rep = 2 * (ranks - 1) * run->bytes,
                       .messages_per_rep = 2 * (ranks - 1) * ranks,
                       .divisor = 1};
}

/* Send a part of `from` to the right, and receive the part before it from the left into `into`. */
static hk_status_t pass_on(hk_run_t *run, const unsigned char *from, int part, unsigned char *into, int part_before)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int right = ctx->rank + 1 < ctx->size ? ctx->rank + 1 : 0;
    const int left = ctx->rank > 0 ? ctx->rank - 1 : ctx->size - 1;
    HK_TRY(tp->irecv(ctx, left, into, part_bytes(run, part_before), &run->reqs[0]));
    HK_TRY(tp->isend(ctx, right, from + part_offset(run, part), part_bytes(run, part), &run->reqs[1]));
    return tp->wait_all(ctx, run->reqs, 2);
}

static hk_status_t ringreduce_once(hk_run_t *run)
{
    const int size = run->ctx->size;
    unsigned char *const arrived = run->in + run->bytes;
    const unsigned char *sums = run->out; /* the first part to send is this rank's */
    int part = run->ctx->rank;
    for (int step = 1; step < size; step++) {
        const int before = part > 0 ? part - 1 : size - 1;
        const size_t offset = part_offset(run, before);
        HK_TRY(pass_on(run, sums, part, arrived, before));
        hk_combine_of(HK_UINT64, HK_SUM)(run->in + offset, run->out + offset, arrived, part_bytes(run, before));
        part = before;
        sums = run->in;
    }
    for (int step = 1; step < size; step++) {
        const int before = part > 0 ? part - 1 : size - 1;
        HK_TRY(pass_on(run, run->in, part, run->in + part_offset(run, before), before));
        part = before;
    }
    return HK_OK;
}

static hk_status_t ringreduce_repeat(hk_run_t *run, uint64_t reps)
{
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(ringreduce_once(run));
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
