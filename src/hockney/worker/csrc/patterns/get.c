/* Get (remote loads of the Cray T3D report): the source reads the target's memory; the target does nothing. The time
 * per get is the source's. With coherent shared memory, repeated reads hit the source's cache. */
#include "roles.h"

static hk_status_t get_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const get)(hk_ctx_t *, int, void *, const void *, size_t) = ctx->tp->get;
    const int target = hk_target(run->option);
    if (ctx->rank == hk_source(run->option)) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(get(ctx, target, run->in, run->out, run->bytes));
        }
    }
    return HK_OK;
}

static bool get_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = hk_target(run->option)};
    return i == 0 && run->ctx->rank == hk_source(run->option);
}

const hk_pattern_t hk_pattern_get = {
    .name = "get",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "one rank reads the memory of another; time per get on the reader's side",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .option = {HK_ROLES_OPTIONS},
    .fits = hk_roles_fit,
    .plan = hk_roles_plan,
    .repeat = get_repeat,
    .expected = get_expected,
};
