/* A ping-pong of two ranks that have child processes, which sleep (osu_latency_mp). A fork makes all pages of the rank
 * copy-on-write, and a library's registered memory may break with it. */
#include <stdio.h>

#include "../sleepers.h"
#include "roundtrip.h"

enum { FORKED_CHILDREN = HK_ROLE_TARGET + 1 };
enum { FORKED_MAX = 128 };

typedef struct forked_state {
    pid_t child[FORKED_MAX];
    int count;
} forked_state_t;

static bool forked_fits(const hk_run_t *run, char *why, size_t len)
{
    if ((run->ctx->tp->caps & HK_CAP_VIRTUAL) != 0) {
        snprintf(why, len, "forked needs real processes, which a model does not have");
        return false;
    }
    return hk_roles_fit(run, why, len);
}

static hk_plan_t forked_plan(const hk_run_t *run)
{
    return (hk_plan_t){HK_ONE_EACH(run), .state_bytes = sizeof(forked_state_t), HK_MOVES(run, 2), .divisor = 2,
                       .root = hk_source(run->option)};
}

static hk_status_t forked_finish(hk_run_t *run)
{
    forked_state_t *state = run->state;
    hk_sleepers_end(state->child, &state->count);
    return HK_OK;
}

static hk_status_t forked_prepare(hk_run_t *run)
{
    forked_state_t *state = run->state;
    const int rank = run->ctx->rank;
    const int wanted = hk_role_peer(rank, run->option) >= 0 ? (int)run->option[FORKED_CHILDREN] : 0;
    const hk_status_t status = hk_sleepers_fork(rank, wanted, state->child, &state->count);
    if (status != HK_OK) {
        (void)forked_finish(run);
    }
    return status;
}

static hk_status_t forked_repeat(hk_run_t *run, uint64_t reps)
{
    const int rank = run->ctx->rank, peer = hk_role_peer(rank, run->option);
    return peer < 0 ? HK_OK : hk_round_trips(run, peer, rank == hk_source(run->option), reps);
}

const hk_pattern_t hk_pattern_forked = {
    .name = "forked",
    .summary = "a ping-pong of ranks that have forked child processes, which sleep; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .option = {HK_ROLES_OPTIONS,
               {"children", NULL, 2, 1, FORKED_MAX, "child processes of the source, and of the target"}},
    .fits = forked_fits,
    .plan = forked_plan,
    .prepare = forked_prepare,
    .finish = forked_finish,
    .meet = hk_roles_meet,
    .repeat = forked_repeat,
    .expected = hk_roles_expected,
};
