/* Allreduce: every rank gets the sum of all ranks' vectors, word by word. The time is that of the slowest rank.
 * "native": the transport's allreduce. "doubling": recursive doubling over messages. "parts": a reduction to rank 0,
 * then a broadcast from it; both native, or over a binomial tree. */
#include "../collectives.h"
#include "../pattern.h"

enum { ALLREDUCE_ALGORITHM };
enum { ALLREDUCE_AUTO, ALLREDUCE_NATIVE, ALLREDUCE_DOUBLING, ALLREDUCE_PARTS };

static bool allreduce_is_native(const hk_transport_t *tp, const int64_t *option)
{
    return option[ALLREDUCE_ALGORITHM] == ALLREDUCE_NATIVE ||
           (option[ALLREDUCE_ALGORITHM] == ALLREDUCE_AUTO && tp->allreduce != NULL);
}

static bool has_native_parts(const hk_transport_t *tp)
{
    return tp->reduce != NULL && tp->broadcast != NULL;
}

static const char *algorithm_of(const hk_run_t *run)
{
    const hk_transport_t *tp = run->ctx->tp;
    if (run->option[ALLREDUCE_ALGORITHM] == ALLREDUCE_PARTS) {
        return has_native_parts(tp) ? "native parts" : "portable parts";
    }
    return allreduce_is_native(tp, run->option) ? "native" : "portable";
}

/* The distance between the sums of even and odd repetitions. OpenSHMEM may write into `in` before its rank has
 * entered the call, so `in` must not be in use by the previous allreduce. Two buffers are enough: a rank that has
 * left an allreduce has received data from all others, so all have left the previous one. */
static size_t stride_bytes(const hk_run_t *run)
{
    const hk_transport_t *tp = run->ctx->tp;
    return (tp->caps & HK_CAP_ONE_SIDED) != 0 && allreduce_is_native(tp, run->option) ? run->bytes : 0;
}

/* Counts the minimum that an allreduce needs: every rank but one sends its vector, and receives the sum. */
static hk_plan_t allreduce_plan(const hk_run_t *run)
{
    const uint64_t others = (uint64_t)run->ctx->size - 1;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = 2 * run->bytes + stride_bytes(run) + HK_WORK_BYTES,
                       .state_bytes = sizeof(uint64_t),
                       .bytes_per_rep = 2 * others * run->bytes,
                       .messages_per_rep = 2 * others,
                       .divisor = 1,
                       .algorithm = algorithm_of(run)};
}

static hk_status_t native_parts(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    (void)work;
    HK_TRY(ctx->tp->reduce(ctx, 0, out, in, size_bytes));
    return ctx->tp->broadcast(ctx, 0, in, in, size_bytes);
}

static hk_status_t portable_parts(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    HK_TRY(hk_portable_reduce(ctx, out, in, work, size_bytes));
    return hk_portable_broadcast(ctx, in, size_bytes);
}

static hk_status_t allreduce_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t stride = stride_bytes(run);
    void *work = run->in + run->bytes + stride;
    hk_status_t (*allreduce)(hk_ctx_t *, const void *, void *, void *, size_t) = hk_portable_allreduce;
    if (run->option[ALLREDUCE_ALGORITHM] == ALLREDUCE_PARTS) {
        allreduce = has_native_parts(tp) ? native_parts : portable_parts;
    } else if (allreduce_is_native(tp, run->option)) {
        allreduce = tp->allreduce;
    }
    uint64_t *count = run->state; /* no barrier separates two calls of repeat, so they count on */
    const uint64_t end = *count + reps;
    for (uint64_t i = *count; i < end; i++) {
        HK_TRY(allreduce(ctx, run->out, run->in + i % 2 * stride, work, run->bytes));
    }
    *count = end;
    return HK_OK;
}

static bool allreduce_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const uint64_t last = *(const uint64_t *)run->state - 1;
    *expected_p =
        (hk_expected_t){.in_offset = last % 2 * stride_bytes(run), .size_bytes = run->bytes, .from_rank = HK_FROM_ALL};
    return i == 0;
}

const hk_pattern_t hk_pattern_allreduce = {
    .name = "allreduce",
    .summary = "every rank gets the sum of all ranks' vectors of 8-byte integers; the slowest rank's time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .grain_bytes = sizeof(uint64_t),
    .collective = HK_ALLREDUCE,
    .native = allreduce_is_native,
    .option = {{"algorithm", "auto|native|doubling|parts", ALLREDUCE_AUTO, 0, 0,
                "the transport's allreduce, recursive doubling over messages, or a reduction and a broadcast; auto: "
                "native if it exists, else doubling"}},
    .plan = allreduce_plan,
    .repeat = allreduce_repeat,
    .expected = allreduce_expected,
};
