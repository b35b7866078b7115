/* cold */
/* What the start of a launch took: of the library, and of the first messages. Nothing is done here: the times were
 * taken when the launch started (../startup.h). A launch has one sample. */
#include "../startup.h"

#include <stdio.h>

#include "roles.h"

/* ---- init: the library's initialisation -------------------------------------------------------------------------- */

enum { INIT_FROM, INIT_TIME };
enum { INIT_FROM_LIBRARY, INIT_FROM_LAUNCHER };

/* Without a job nothing is known yet. */
static bool init_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_startup_t *startup = run->ctx->startup;
    snprintf(why, len, "this system does not tell when the launcher was started: use from=library");
    return run->option[INIT_FROM] == INIT_FROM_LIBRARY || startup == NULL || startup->launch_ns > 0;
}

static hk_plan_t init_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN, HK_TIMED_ROOT};
    return (hk_plan_t){.divisor = 1, .timed = timed[run->option[INIT_TIME]], .scheduled = true};
}

static hk_status_t init_repeat(hk_run_t *run, uint64_t reps)
{
    const hk_startup_t *startup = run->ctx->startup;
    for (uint64_t i = 0; i < reps; i++) {
        run->latency_ns[i] = run->option[INIT_FROM] == INIT_FROM_LIBRARY ? startup->init_ns : startup->launch_ns;
    }
    return HK_OK;
}

const hk_pattern_t hk_pattern_init = {
    .name = "init",
    .summary = "start of the library on each rank (MPI_Init, shmem_init); one sample per launch",
    .kind = HK_KIND_STARTUP,
    .needs = HK_CAP_STARTUP,
    .ranks_min = 1,
    .timed = HK_TIMED_SLOWEST,
    .unsized = true,
    .once = true,
    .option = {{"from", "library|launcher", INIT_FROM_LIBRARY, 0, 0,
                "the call itself, or all since the launcher, or its agent on this host, was started (to 10 ms)"},
               {"time", "slowest|mean|root", 0, 0, 0, "whose time counts"}},
    .fits = init_fits,
    .plan = init_plan,
    .repeat = init_repeat,
};

/* ---- first: the first exchange of two ranks ---------------------------------------------------------------------- */

enum { FIRST_PAIRS = HK_ROLE_TARGET + 1 };
enum { FIRST_PAIRS_ALL, FIRST_PAIRS_ONE };

/* The pattern's state is the number of repetitions: counters are sums over them. */
static hk_plan_t first_plan(const hk_run_t *run)
{
    const bool is_one = run->option[FIRST_PAIRS] == FIRST_PAIRS_ONE;
    return (hk_plan_t){.state_bytes = sizeof(double),
                       .timed = is_one ? HK_TIMED_ROOT : HK_TIMED_MEAN,
                       .root = is_one ? hk_source(run->option) : 0,
                       .scheduled = true};
}

static bool first_fits(const hk_run_t *run, char *why, size_t len)
{
    return run->option[FIRST_PAIRS] == FIRST_PAIRS_ALL || hk_roles_fit(run, why, len);
}

/* With all peers, on the mean; or with the other end of the pair: both have the pair's time. */
static uint64_t first_time(const hk_run_t *run, const uint64_t *time_ns)
{
    const int size = run->ctx->size, peer = hk_role_peer(run->ctx->rank, run->option);
    uint64_t sum_ns = 0;
    if (run->option[FIRST_PAIRS] == FIRST_PAIRS_ONE) {
        return peer >= 0 ? time_ns[peer] : 0;
    }
    for (int rank = 0; rank < size; rank++) {
        sum_ns += time_ns[rank]; /* 0 with itself */
    }
    return size > 1 ? sum_ns / (uint64_t)(size - 1) : 0;
}

static hk_status_t first_repeat(hk_run_t *run, uint64_t reps)
{
    for (uint64_t i = 0; i < reps; i++) {
        run->latency_ns[i] = first_time(run, run->ctx->startup->first_ns);
    }
    *(double *)run->state += (double)reps;
    return HK_OK;
}

static uint64_t first_longest(const hk_run_t *run)
{
    uint64_t longest_ns = 0;
    for (int rank = 0; rank < run->ctx->size; rank++) {
        const uint64_t time_ns = run->ctx->startup->first_ns[rank];
        longest_ns = time_ns > longest_ns ? time_ns : longest_ns;
    }
    return longest_ns;
}

static bool first_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const hk_startup_t *startup = run->ctx->startup;
    const hk_counter_t counters[] = {{"longest_ns", (double)first_longest(run)},
                                     {"second_ns", (double)first_time(run, startup->second_ns)},
                                     {"resident_bytes", startup->connection.resident_bytes},
                                     {"proportional_bytes", startup->connection.proportional_bytes}};
    const size_t count = startup->has_memory ? 4 : 2;
    if (i < count) {
        *counter_p = counters[i];
        counter_p->value *= *(const double *)run->state;
    }
    return i < count;
}

const hk_pattern_t hk_pattern_first = {
    .name = "first",
    .summary = "the first round trip of 8 B between two ranks, and memory per connection; one sample per launch",
    .kind = HK_KIND_STARTUP,
    .needs = HK_CAP_FIRST,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .unsized = true,
    .once = true,
    .option = {HK_ROLES_OPTIONS,
               {"pairs", "all|one", FIRST_PAIRS_ALL, 0, 0, "the mean of a rank's peers, or source and target alone"}},
    .fits = first_fits,
    .plan = first_plan,
    .repeat = first_repeat,
    .counter = first_counter,
};
