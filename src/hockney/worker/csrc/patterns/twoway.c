/* Two-way (ATLAS Com-1.2; IMB "exchange" of two): ranks 0 and 1 send to each other at once. The time is rank 0's
 * wall time divided by the messages it sent and received, which is half of an exchange. */
#include "flow.h"
#include "roundtrip.h"

enum { WINDOW };

static hk_plan_t twoway_plan(const hk_run_t *run)
{
    const uint64_t window = (uint64_t)run->option[WINDOW];
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = hk_flow_places(run->bytes, window) * run->bytes,
                       .reqs_count = 2 * window,
                       HK_MOVES(run, 2 * window),
                       .divisor = 2 * window};
}

static hk_status_t twoway_repeat(hk_run_t *run, uint64_t reps)
{
    const int rank = run->ctx->rank;
    return rank > 1 ? HK_OK : hk_flow_exchange_windows(run, 1 - rank, false, reps, false);
}

static bool twoway_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p =
        (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = 1 - run->ctx->rank};
    return run->ctx->rank < 2 && i < hk_flow_places(run->bytes, run->reqs_count / 2);
}

const hk_pattern_t hk_pattern_twoway = {
    .name = "twoway",
    .summary = "ranks 0 and 1 send to each other at once; wall time per message sent or received",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .stream = true,
    .option = {{"window", NULL, 1, 1, 1024, "messages under way at once in each direction"}, HK_MEMORY_OPTION},
    .plan = twoway_plan,
    .meet = hk_start_together,
    .repeat = twoway_repeat,
    .expected = twoway_expected,
};
