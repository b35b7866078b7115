/* One-way (ATLAS Com-1.1; "pingping" of mpptest): the source sends, the target receives; the time per message on the
 * sender's side, with the last acknowledgement or without any. It is not half a round trip. Ranks 0 and 1 unless the
 * options name others; the rest idles. */
#include "flow.h"
#include "roundtrip.h"

enum { ROLES = HK_FLOW_WINDOW + 1 };

static bool oneway_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_roles_fit_in(run, run->option + ROLES, why, len);
}

static hk_plan_t oneway_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_flow_plan(run, 1);
    plan.root = hk_source(run->option + ROLES);
    return plan;
}

static hk_status_t oneway_repeat(hk_run_t *run, uint64_t reps)
{
    const int source = hk_source(run->option + ROLES);
    const int target = hk_target(run->option + ROLES);
    if (run->ctx->rank == source) {
        return hk_flow_send(run, target, reps);
    }
    return run->ctx->rank == target ? hk_flow_receive(run, source, reps) : HK_OK;
}

static hk_status_t oneway_meet(hk_run_t *run)
{
    return hk_roles_meet(run, run->option + ROLES);
}

static bool oneway_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){
        .in_offset = i * run->bytes, .len_bytes = run->bytes, .from_rank = hk_source(run->option + ROLES)};
    return run->ctx->rank == hk_target(run->option + ROLES) && i < hk_flow_places(run->bytes, run->reqs_count);
}

const hk_pattern_t hk_pattern_oneway = {
    .name = "oneway",
    .summary = "messages from one rank to another; time per message on the sender's side",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_ROOT,
    .sized = true,
    .option = {HK_FLOW_OPTIONS, HK_ROLES_OPTIONS},
    .fits = oneway_fits,
    .plan = oneway_plan,
    .meet = oneway_meet,
    .meet_ranks_min = HK_MEET_RANKS_MIN,
    .repeat = oneway_repeat,
    .expected = oneway_expected,
};
