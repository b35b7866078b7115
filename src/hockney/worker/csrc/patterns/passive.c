/* Does a put need its target's help? (Truly_passive_put of the Intel MPI benchmarks.) The source puts, waits for the
 * completion, and meets the target in a barrier. With busy=yes the target computes before it enters the barrier, by
 * default for as long as a repetition without computing takes. If the library needs calls of the target, the two times
 * add; else a repetition takes little longer. until=complete: the source's time ends at the completion, so a put that
 * needs help takes as long as the target computes. */
#include "delay.h"
#include "epoch.h"
#include "pure.h"
#include "roles.h"

#include <stdio.h>

#include "../sync.h"

enum { PASSIVE_SYNC = HK_ROLE_TARGET + 1, PASSIVE_BUSY, PASSIVE_DELAY_US, PASSIVE_UNTIL };
enum { PASSIVE_COMPLETE = 1 };

typedef struct passive_state {
    hk_epoch_t epoch;
    hk_status_t (*put)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes);
    int peer;
    uint64_t pure_ns, delay_ns;
    double delays;
} passive_state_t;

/* The option has no epochs in which the target takes part, and begins with "quiet". */
static hk_epoch_kind_t passive_epoch(const hk_run_t *run)
{
    return (hk_epoch_kind_t)(run->option[PASSIVE_SYNC] + HK_EPOCH_QUIET);
}

static bool passive_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_epoch_kind_t kind = passive_epoch(run);
    if (run->option[PASSIVE_BUSY] == 0 && run->option[PASSIVE_DELAY_US] > 0) {
        snprintf(why, len, "delay_us is the target's computing: it needs busy=yes");
        return false;
    }
    return hk_roles_fit(run, why, len) && (kind == HK_EPOCH_QUIET || hk_epoch_fits(run, kind, why, len));
}

static hk_plan_t passive_plan(const hk_run_t *run)
{
    return (hk_plan_t){HK_ONE_EACH(run), HK_MOVES(run, 1), .state_bytes = sizeof(passive_state_t),
                       .root = hk_source(run->option)};
}

/* `opens` and `until_complete` are constants in each call. */
static inline hk_status_t passive_puts(hk_run_t *run, uint64_t reps, const bool opens, const bool until_complete)
{
    passive_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_epoch_t *epoch = &state->epoch;
    uint64_t (*const now_ns)(hk_ctx_t *) = ctx->tp->now_ns;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(opens ? epoch->begin(ctx, epoch) : HK_OK);
        HK_TRY(state->put(ctx, state->peer, run->in, run->out, run->bytes));
        HK_TRY(epoch->end(ctx, epoch));
        const uint64_t complete_ns = until_complete ? now_ns(ctx) : 0;
        HK_TRY(hk_sync(ctx));
        run->untimed_ns += until_complete ? now_ns(ctx) - complete_ns : 0;
    }
    return HK_OK;
}

static hk_status_t passive_source(hk_run_t *run, uint64_t reps, bool until_complete)
{
    return ((passive_state_t *)run->state)->epoch.begin != NULL
               ? until_complete ? passive_puts(run, reps, true, true) : passive_puts(run, reps, true, false)
           : until_complete ? passive_puts(run, reps, false, true)
                            : passive_puts(run, reps, false, false);
}

static inline hk_status_t passive_target(hk_run_t *run, uint64_t reps, const bool computes)
{
    const passive_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    for (uint64_t i = 0; i < reps; i++) {
        if (computes) {
            ctx->tp->compute(ctx, state->delay_ns);
        }
        HK_TRY(hk_sync(ctx));
    }
    return HK_OK;
}

static hk_status_t passive_repeat(hk_run_t *run, uint64_t reps)
{
    passive_state_t *state = run->state;
    if (run->ctx->rank == hk_source(run->option)) {
        return passive_source(run, reps, run->option[PASSIVE_UNTIL] == PASSIVE_COMPLETE);
    }
    if (run->ctx->rank == hk_target(run->option) && state->delay_ns > 0) {
        state->delays += (double)reps;
        return passive_target(run, reps, true);
    }
    return passive_target(run, reps, false);
}

/* The target waits: its time is the source's, too. */
static hk_status_t passive_loop_pure(hk_run_t *run, uint64_t reps)
{
    return run->ctx->rank == hk_source(run->option) ? passive_source(run, reps, false)
                                                    : passive_target(run, reps, false);
}

static hk_status_t passive_prepare(hk_run_t *run)
{
    passive_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const bool is_source = ctx->rank == hk_source(run->option);
    state->peer = hk_role_peer(ctx->rank, run->option);
    state->put = (ctx->tp->caps & HK_CAP_DEFERRED) != 0 ? ctx->tp->put_start : ctx->tp->put;
    state->epoch = (hk_epoch_t){.kind = passive_epoch(run),
                                .to = &state->peer,
                                .from = &state->peer,
                                .to_count = is_source ? 1 : 0,
                                .from_count = state->peer >= 0 && !is_source ? 1 : 0,
                                .memory = run->in};
    HK_TRY(hk_epoch_make(ctx, &state->epoch));
    if (run->option[PASSIVE_BUSY] != 0) {
        HK_TRY(hk_unless_broken(hk_time_pure(run, passive_loop_pure, &state->pure_ns)));
        const uint64_t asked_ns = (uint64_t)run->option[PASSIVE_DELAY_US] * 1000;
        state->delay_ns = asked_ns > 0 ? asked_ns : state->pure_ns;
    }
    return HK_OK;
}

static hk_status_t passive_finish(hk_run_t *run)
{
    passive_state_t *state = run->state;
    return hk_epoch_drop(run->ctx, &state->epoch);
}

static bool passive_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = hk_source(run->option)};
    return i == 0 && run->ctx->rank == hk_target(run->option);
}

static bool passive_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const passive_state_t *state = run->state;
    const hk_delay_t delay = {.count = state->delays, .taken_ns = state->delays * (double)state->delay_ns};
    return run->option[PASSIVE_BUSY] != 0 && hk_delay_counter(&delay, i, counter_p);
}

const hk_pattern_t hk_pattern_passive = {
    .name = "passive",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "a put to a rank that waits in a barrier, or computes; time on the writer's side",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .stream = true,
    .option = {HK_ROLES_OPTIONS,
               {"sync", "quiet|flush|flush_local|lock|lock_all", 0, 0, 0, HK_SYNC_HELP},
               {"busy", "no|yes", 0, 0, 0, "yes: the target computes before it enters the barrier"},
               {"delay_us", NULL, 0, 0, 1000000, "for how long, in us; 0: as long as a repetition without it takes"},
               {"until", "barrier|complete", 0, 0, 0,
                "stop the clock when both have met in a barrier, or when the put is complete"}},
    .fits = passive_fits,
    .plan = passive_plan,
    .prepare = passive_prepare,
    .finish = passive_finish,
    .repeat = passive_repeat,
    .expected = passive_expected,
    .counter = passive_counter,
};
