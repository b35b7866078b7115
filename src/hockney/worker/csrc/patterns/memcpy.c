/* A copy in local memory: one rank copies one buffer to another. Comparing it with a message shows the cost beyond
 * copying. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../pattern.h"

static bool memcpy_fits(const hk_run_t *run, char *why, size_t len)
{
    snprintf(why, len, "memcpy uses real memory, which a model does not have");
    return (run->ctx->tp->caps & HK_CAP_VIRTUAL) == 0;
}

static hk_plan_t memcpy_plan(const hk_run_t *run)
{
    return (hk_plan_t){HK_ONE_EACH(run), HK_MOVES(run, 1)};
}

static hk_status_t memcpy_repeat(hk_run_t *run, uint64_t reps)
{
    for (uint64_t i = 0; i < reps; i++) {
        memcpy(run->in, run->out, run->bytes);
        atomic_signal_fence(memory_order_seq_cst); /* keeps every copy, not only the last */
    }
    return HK_OK;
}

static bool memcpy_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes};
    return i == 0;
}

const hk_pattern_t hk_pattern_memcpy = {
    .name = "memcpy",
    .kind = HK_KIND_MACHINE,
    .summary = "one rank copies one local buffer to another; time per copy",
    .ranks_min = 1,
    .ranks_max = 1,
    .timed = HK_TIMED_ROOT,
    .fits = memcpy_fits,
    .plan = memcpy_plan,
    .repeat = memcpy_repeat,
    .expected = memcpy_expected,
};
