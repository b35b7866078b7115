/* Window (Intel MPI benchmarks): all ranks make memory accessible to each other, use it between two synchronisations by
 * a put of one byte to themselves, and make it private again. */
#include "../pattern.h"

enum { WINDOW_USE, WINDOW_USE_NOTHING = 1 };

static hk_plan_t window_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = 1, .in_bytes = run->bytes + 1};
}

static hk_status_t window_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const bool is_used = run->option[WINDOW_USE] != WINDOW_USE_NOTHING;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(ctx->tp->use_window(ctx, run->in, run->bytes, run->out, is_used));
    }
    return HK_OK;
}

static bool window_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = 1, .from_rank = run->ctx->rank};
    return i == 0 && run->bytes > 0 && run->option[WINDOW_USE] != WINDOW_USE_NOTHING;
}

const hk_pattern_t hk_pattern_window = {
    .name = "window",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "memory becomes accessible to all ranks, is used once, and ceases to be; the slowest rank",
    .needs = HK_CAP_WINDOWS,
    .ranks_min = 1,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .option = {{"use", "put|nothing", 0, 0, 0,
                "put: one byte of each rank to itself between two synchronisations of all, as in IMB"}},
    .plan = window_plan,
    .repeat = window_repeat,
    .expected = window_expected,
};
