/* A ping-pong of partitioned messages (MPI 4): each message is one persistent request, of which the sender passes on
 * part after part. With several threads each passes on its share of the parts, once the first has started the message;
 * they meet before and after, timed. */
#include <stdio.h>

#include "../team.h"
#include "roundtrip.h"

enum { PARTITIONED_COUNT = HK_ROLE_TARGET + 1, PARTITIONED_THREADS, PARTITIONED_ARRIVED };
enum { PARTITIONED_DEFAULT = 8, PARTITIONED_MAX = 4096 };

typedef struct partitioned_state {
    hk_parted_t out, in;
    hk_team_t *team; /* NULL: one thread */
    hk_status_t (*receive)(hk_ctx_t *ctx, hk_parted_t *message);
} partitioned_state_t;

/* What a thread of a team knows. */
typedef struct partitioned_thread {
    partitioned_state_t *shared;
    int first, step; /* of its parts */
    bool begins;
} partitioned_thread_t;

static size_t partitioned_grain(const hk_run_t *run)
{
    return (size_t)run->option[PARTITIONED_COUNT];
}

static bool partitioned_fits(const hk_run_t *run, char *why, size_t len)
{
    if (run->option[PARTITIONED_THREADS] > 1 && (run->ctx->tp->caps & HK_CAP_MULTIPLE) == 0) {
        snprintf(why, len, "threads=%d call %s at once, which only mpi:threads allows",
                 (int)run->option[PARTITIONED_THREADS], run->ctx->tp->name);
        return false;
    }
    if (run->option[PARTITIONED_THREADS] > run->option[PARTITIONED_COUNT]) {
        snprintf(why, len, "threads=%d are more than the %d partitions of a message",
                 (int)run->option[PARTITIONED_THREADS], (int)run->option[PARTITIONED_COUNT]);
        return false;
    }
    return hk_roles_fit(run, why, len);
}

static hk_plan_t partitioned_plan(const hk_run_t *run)
{
    return (hk_plan_t){HK_ONE_EACH(run), .state_bytes = sizeof(partitioned_state_t), HK_MOVES(run, 2), .divisor = 2,
                       .root = hk_source(run->option)};
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static hk_status_t partitioned_receive(hk_ctx_t *ctx, hk_parted_t *message)
{
    const hk_parts_hooks_t *parts = ctx->tp->parts;
    HK_TRY(parts->start(ctx, message));
    return parts->wait(ctx, message);
}

static hk_status_t partitioned_receive_each(hk_ctx_t *ctx, hk_parted_t *message)
{
    const hk_parts_hooks_t *parts = ctx->tp->parts;
    HK_TRY(parts->start(ctx, message));
    for (int i = 0; i < message->count; i++) {
        bool is_there = false;
        while (!is_there) {
            HK_TRY(parts->arrived(ctx, message, i, &is_there));
        }
    }
    return parts->wait(ctx, message);
}

static hk_status_t partitioned_send(hk_ctx_t *ctx, hk_parted_t *message)
{
    const hk_parts_hooks_t *parts = ctx->tp->parts;
    HK_TRY(parts->start(ctx, message));
    for (int i = 0; i < message->count; i++) {
        HK_TRY(parts->ready(ctx, message, i));
    }
    return parts->wait(ctx, message);
}

/* The part of a thread in passing on the message; the first one starts it and waits. */
static hk_status_t partitioned_send_share(hk_ctx_t *ctx, const partitioned_thread_t *me)
{
    const hk_parts_hooks_t *parts = ctx->tp->parts;
    hk_parted_t *message = &me->shared->out;
    const bool is_first = me->first == 0;
    HK_TRY(is_first ? parts->start(ctx, message) : HK_OK);
    hk_team_meet(me->shared->team);
    for (int i = me->first; i < message->count; i += me->step) {
        HK_TRY(parts->ready(ctx, message, i));
    }
    hk_team_meet(me->shared->team);
    return is_first ? parts->wait(ctx, message) : HK_OK;
}

/* Only the first thread receives; the others wait for its next message. */
static hk_status_t partitioned_loop_threads(hk_run_t *run, uint64_t reps)
{
    const partitioned_thread_t *me = run->state;
    partitioned_state_t *shared = me->shared;
    hk_ctx_t *ctx = run->ctx;
    const bool receives = me->first == 0;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(receives && !me->begins ? shared->receive(ctx, &shared->in) : HK_OK);
        HK_TRY(partitioned_send_share(ctx, me));
        HK_TRY(receives && me->begins ? shared->receive(ctx, &shared->in) : HK_OK);
    }
    return HK_OK;
}

static hk_status_t partitioned_repeat(hk_run_t *run, uint64_t reps)
{
    partitioned_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const bool begins = ctx->rank == hk_source(run->option);
    if (hk_role_peer(ctx->rank, run->option) < 0) {
        return HK_OK;
    }
    if (state->team != NULL) {
        const uint64_t began_ns = ctx->tp->now_ns(ctx);
        uint64_t took_ns = 0;
        HK_TRY(hk_team_repeat(state->team, reps, true, &took_ns));
        run->untimed_ns += ctx->tp->now_ns(ctx) - began_ns - took_ns;
    } else if (begins) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(partitioned_send(ctx, &state->out));
            HK_TRY(state->receive(ctx, &state->in));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(state->receive(ctx, &state->in));
            HK_TRY(partitioned_send(ctx, &state->out));
        }
    }
    return HK_OK;
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void partitioned_end_team(partitioned_state_t *state)
{
    if (state->team != NULL) {
        hk_team_close(state->team);
        state->team = NULL;
    }
}

static hk_status_t partitioned_start_team(hk_run_t *run)
{
    partitioned_state_t *state = run->state;
    const int count = (int)run->option[PARTITIONED_THREADS];
    HK_TRY(hk_team_open(run, count, 0, sizeof(partitioned_thread_t), false, &state->team));
    for (int i = 0; i < count; i++) {
        *(partitioned_thread_t *)hk_team_run(state->team, i)->state = (partitioned_thread_t){
            .shared = state, .first = i, .step = count, .begins = run->ctx->rank == hk_source(run->option)};
    }
    const hk_status_t status = hk_team_start(state->team, partitioned_loop_threads);
    if (status != HK_OK) {
        partitioned_end_team(state);
    }
    return status;
}

static hk_status_t partitioned_prepare(hk_run_t *run)
{
    partitioned_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_parts_hooks_t *parts = ctx->tp->parts;
    const int peer = hk_role_peer(ctx->rank, run->option), count = (int)run->option[PARTITIONED_COUNT];
    const hk_parted_t message = {.peer = peer, .count = count, .part_bytes = run->bytes / (size_t)count};
    if (peer < 0) {
        return HK_OK;
    }
    state->receive = run->option[PARTITIONED_ARRIVED] != 0 ? partitioned_receive_each : partitioned_receive;
    state->out = state->in = message;
    state->out.is_sent = true;
    state->out.buf = run->out;
    state->in.buf = run->in;
    HK_TRY(run->option[PARTITIONED_THREADS] > 1 ? partitioned_start_team(run) : HK_OK);
    hk_status_t status = parts->make(ctx, &state->out);
    if (status == HK_OK) {
        status = parts->make(ctx, &state->in);
        if (status != HK_OK) {
            parts->drop(ctx, &state->out);
        }
    }
    if (status != HK_OK) {
        partitioned_end_team(state);
    }
    return status;
}

static hk_status_t partitioned_finish(hk_run_t *run)
{
    partitioned_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    if (hk_role_peer(ctx->rank, run->option) >= 0) {
        partitioned_end_team(state);
        ctx->tp->parts->drop(ctx, &state->in);
        ctx->tp->parts->drop(ctx, &state->out);
    }
    return HK_OK;
}

static hk_status_t partitioned_meet(hk_run_t *run)
{
    partitioned_state_t *state = run->state;
    if (state->team != NULL) {
        hk_team_wake(state->team);
    }
    return hk_roles_meet(run);
}

const hk_pattern_t hk_pattern_partitioned = {
    .name = "partitioned",
    .summary = "a ping-pong of messages whose parts are passed on one after the other (MPI 4); half the round trip",
    .needs = HK_CAP_SEND | HK_CAP_PARTITIONS,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .grain_bytes = PARTITIONED_DEFAULT,
    .option = {HK_ROLES_OPTIONS,
               {"partitions", NULL, PARTITIONED_DEFAULT, 1, PARTITIONED_MAX, "parts of a message, of equal size"},
               {"threads", NULL, 1, 1, HK_TEAM_MAX, "threads that pass on parts"},
               {"arrived", "all|each", 0, 0, 0, "wait for the whole message, or look for each part in turn"}},
    .fits = partitioned_fits,
    .grain = partitioned_grain,
    .plan = partitioned_plan,
    .prepare = partitioned_prepare,
    .finish = partitioned_finish,
    .meet = partitioned_meet,
    .repeat = partitioned_repeat,
    .expected = hk_roles_expected,
};
