/* One-way (ATLAS Com-1.1; "pingping" of mpptest): the source sends and the target receives. The time per message is
 * the source's, with or without the last acknowledgement; it is not half a round trip. Ranks 0 and 1 unless the
 * options name others; the rest are idle. Either side may compute after each message, like an application. */
#include <stdio.h>

#include "flow.h"
#include "roundtrip.h"

enum {
    ONEWAY_SOURCE = HK_FLOW_OPTIONS_COUNT,
    ONEWAY_TARGET,
    ONEWAY_SENDER_COMPUTES,
    ONEWAY_RECEIVER_COMPUTES,
};

static bool oneway_fits(const hk_run_t *run, char *why, size_t len)
{
    const int64_t *delay_us = run->option + ONEWAY_SENDER_COMPUTES;
    const bool computes = delay_us[HK_COMPUTE_SENDER] > 0 || delay_us[HK_COMPUTE_RECEIVER] > 0;
    if (computes && run->option[HK_FLOW_WINDOW] > 1) {
        snprintf(why, len, "computation after each message needs window=1: messages of a larger window overlap");
        return false;
    }
    if (computes && run->option[HK_FLOW_ANSWER] == HK_ANSWER_WINDOW) {
        snprintf(why, len, "computation after each message has no answers in between: leave answer=window out");
        return false;
    }
    return hk_flow_fits(run, why, len) && hk_roles_fit_in(run, run->option + ONEWAY_SOURCE, why, len);
}

static hk_plan_t oneway_plan(const hk_run_t *run)
{
    hk_plan_t plan = hk_flow_plan(run, 1, false);
    plan.root = hk_source(run->option + ONEWAY_SOURCE);
    plan.state_bytes = sizeof(hk_delay_t);
    return plan;
}

static hk_status_t oneway_prepare(hk_run_t *run)
{
    const int rank = run->ctx->rank;
    return hk_compute_prepare(run->ctx, run->option + ONEWAY_SENDER_COMPUTES,
                              rank == hk_source(run->option + ONEWAY_SOURCE),
                              rank == hk_target(run->option + ONEWAY_SOURCE), run->state);
}

static hk_status_t oneway_repeat(hk_run_t *run, uint64_t reps)
{
    const int source = hk_source(run->option + ONEWAY_SOURCE);
    const int target = hk_target(run->option + ONEWAY_SOURCE);
    hk_delay_t *delay = run->state;
    delay = delay->amount > 0 ? delay : NULL;
    if (run->ctx->rank == source) {
        return hk_flow_send(run, target, reps, delay);
    }
    return run->ctx->rank == target ? hk_flow_receive(run, source, reps, delay) : HK_OK;
}

static hk_status_t oneway_meet(hk_run_t *run)
{
    return hk_roles_meet_in(run, run->option + ONEWAY_SOURCE);
}

static bool oneway_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){
        .in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = hk_source(run->option + ONEWAY_SOURCE)};
    return run->ctx->rank == hk_target(run->option + ONEWAY_SOURCE) && i < hk_flow_places(run->bytes, run->reqs_count);
}

static bool oneway_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    return hk_compute_counter(run->option + ONEWAY_SENDER_COMPUTES, run->state, i, counter_p);
}

const hk_pattern_t hk_pattern_oneway = {
    .name = "oneway",
    .summary = "messages from one rank to another; time per message on the sender's side",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .stream = true,
    .option = {HK_FLOW_OPTIONS, HK_ROLES_OPTIONS, HK_COMPUTE_OPTIONS, HK_MEMORY_OPTION},
    .fits = oneway_fits,
    .plan = oneway_plan,
    .prepare = oneway_prepare,
    .meet = oneway_meet,
    .repeat = oneway_repeat,
    .expected = oneway_expected,
    .counter = oneway_counter,
};
