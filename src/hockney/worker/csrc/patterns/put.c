/* Put (single_pairs of the Cray T3D report): the source writes into the target's memory; the target does nothing.
 * The time per put is the source's, including one wait at the end of a batch until all its puts are complete. With
 * quiet=seen the target answers each put with a flag, and the time is half of that. */
#include "puts.h"
#include "roles.h"

enum { PUT_SOURCE = HK_ROLE_SOURCE, PUT_TARGET = HK_ROLE_TARGET, PUT_QUIET };

static bool put_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_roles_fit(run, why, len) && hk_puts_fit(run, run->option[PUT_QUIET], why, len);
}

static hk_plan_t put_plan(const hk_run_t *run)
{
    return hk_puts_plan(hk_roles_plan(run), run->option[PUT_QUIET]);
}

static hk_status_t put_repeat(hk_run_t *run, uint64_t reps)
{
    const int source = hk_source(run->option);
    const int target = hk_target(run->option);
    return hk_puts(run, run->ctx->rank == source ? target : -1, run->ctx->rank == target ? source : -1,
                   run->option[PUT_QUIET], reps);
}

static bool put_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = hk_puts_expected_bytes(run, run->option[PUT_QUIET]),
                                  .from_rank = hk_source(run->option)};
    return i == 0 && run->ctx->rank == hk_target(run->option);
}

const hk_pattern_t hk_pattern_put = {
    .name = "put",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "one rank writes into the memory of another; time per put on the writer's side",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .stream = true,
    .option = {HK_ROLES_OPTIONS, HK_PUTS_OPTION_QUIET},
    .fits = put_fits,
    .plan = put_plan,
    .repeat = put_repeat,
    .expected = put_expected,
};
