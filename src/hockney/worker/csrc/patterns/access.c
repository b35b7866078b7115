#include "access.h"

#include <stdio.h>

#include "distance.h"
#include "flow.h"
#include "pure.h"
#include "puts.h"
#include "roles.h"

enum { PLACES_OF_BATCH = 64 };

/* One rank that this one accesses, and where the data go: in `in` there (puts), or here (gets). */
typedef struct access_target {
    int peer;
    size_t at;
} access_target_t;

typedef struct access_state {
    uint64_t puts; /* of quiet=seen; first, as puts.h has it */
    hk_epoch_t epoch;
    hk_status_t (*start)(hk_ctx_t *ctx, int peer, void *to, const void *from, size_t size_bytes);
    bool is_plain, computes;
    uint64_t window;
    size_t places;
    uint64_t pure_ns; /* of one window without computing */
    double overlaps;
    int targets_count;
    access_target_t *target; /* in the room behind, as epoch.to and epoch.from */
    _Alignas(16) unsigned char room[];
} access_state_t;

static const hk_access_kind_t *access_kind(const hk_run_t *run)
{
    return run->pattern->own;
}

static int64_t access_option(const hk_run_t *run, int option)
{
    return run->option[access_kind(run)->options_at + option];
}

static hk_epoch_kind_t access_epoch(const hk_run_t *run)
{
    return (hk_epoch_kind_t)access_option(run, HK_ACCESS_SYNC);
}

static int64_t access_quiet(const hk_run_t *run)
{
    return access_kind(run)->quiet_at >= 0 ? run->option[access_kind(run)->quiet_at] : HK_QUIET_BATCH;
}

/* Blocking operations between one rank and another, in loops of their own: on shared memory each takes a few ns. */
static bool access_is_plain(const hk_run_t *run)
{
    const hk_reach_t reach = access_kind(run)->reach;
    return access_epoch(run) == HK_NO_EPOCH && access_option(run, HK_ACCESS_WINDOW) == 0 &&
           access_option(run, HK_ACCESS_PLACES) == 0 &&
           (reach == HK_REACH_PAIR || reach == HK_REACH_HALVES || reach == HK_REACH_RING);
}

static size_t access_places(const hk_run_t *run)
{
    const size_t window = (size_t)access_option(run, HK_ACCESS_WINDOW);
    if (access_option(run, HK_ACCESS_PLACES) != 0) {
        return window > 0 ? window : PLACES_OF_BATCH;
    }
    return window > 0 ? hk_flow_places(run->bytes, window) : 1;
}

/* ---- plan -------------------------------------------------------------------------------------------------------- */

static bool access_options_fit(const hk_run_t *run, char *why, size_t len)
{
    const bool reads = access_kind(run)->reads, is_blocking = access_epoch(run) == HK_NO_EPOCH;
    const int64_t window = access_option(run, HK_ACCESS_WINDOW), quiet = access_quiet(run);
    if (is_blocking && access_option(run, HK_ACCESS_OVERLAP) != 0) {
        snprintf(why, len, "overlap=yes needs operations that are only started: sync=quiet, or another");
    } else if (access_option(run, HK_ACCESS_OVERLAP) != 0 && window == 0) {
        snprintf(why, len, "overlap=yes needs a window: the rank computes in each");
    } else if (is_blocking && reads && window > 0) {
        snprintf(why, len, "window=%lld needs gets that are only started: sync=quiet, or another", (long long)window);
    } else if (quiet != HK_QUIET_BATCH && (!is_blocking || window > 0)) {
        snprintf(why, len, "quiet= needs blocking puts without a window; %s",
                 is_blocking ? "window=1 completes each" : "with this sync window=1 completes each");
    } else {
        return true;
    }
    return false;
}

bool hk_access_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_reach_t reach = access_kind(run)->reach;
    return (reach != HK_REACH_PAIR || hk_roles_fit(run, why, len)) &&
           (reach != HK_REACH_RING || hk_ring_fits(run, why, len)) && access_options_fit(run, why, len) &&
           hk_puts_fit(run, access_quiet(run), why, len) && hk_epoch_fits(run, access_epoch(run), why, len);
}

hk_plan_t hk_access_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_AS_DECLARED, HK_TIMED_SLOWEST, HK_TIMED_ROOT};
    const uint64_t window = (uint64_t)access_option(run, HK_ACCESS_WINDOW), at_once = window > 0 ? window : 1;
    const size_t places = access_places(run);
    hk_plan_t plan = {.out_bytes = places * run->bytes,
                      .in_bytes = hk_reach_slots(run) * places * run->bytes,
                      HK_MOVES(run, hk_reach_accesses(run) * at_once),
                      .divisor = at_once,
                      .timed = timed[access_option(run, HK_ACCESS_TIME)],
                      .root = access_kind(run)->reach == HK_REACH_PAIR ? hk_source(run->option) : 0};
    plan = hk_puts_plan(plan, access_quiet(run));
    plan.state_bytes = sizeof(access_state_t) + hk_reach_peers_max(run) * (sizeof(access_target_t) + 2 * sizeof(int));
    return plan;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* `begins` and `computes` are constants in each call. A batch is one window. */
static inline hk_status_t access_windows(hk_run_t *run, uint64_t reps, const bool begins, const bool computes)
{
    access_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_epoch_t *epoch = &state->epoch;
    hk_status_t (*const start)(hk_ctx_t *, int, void *, const void *, size_t) = state->start;
    const access_target_t *const end = state->target + state->targets_count;
    const size_t bytes = run->bytes, places_bytes = state->places * bytes;
    const uint64_t window = state->window > 0 ? state->window : reps;
    const uint64_t windows = state->window > 0 ? reps : 1;
    for (uint64_t i = 0; i < windows; i++) {
        HK_TRY(begins ? epoch->begin(ctx, epoch) : HK_OK);
        size_t place = 0;
        for (uint64_t k = 0; k < window; k++) {
            for (const access_target_t *target = state->target; target < end; target++) {
                HK_TRY(start(ctx, target->peer, run->in + target->at + place, run->out + place, bytes));
            }
            place = place + bytes < places_bytes ? place + bytes : 0;
        }
        if (computes) {
            ctx->tp->compute(ctx, state->pure_ns);
            state->overlaps++;
        }
        HK_TRY(epoch->end(ctx, epoch));
    }
    return HK_OK;
}

static hk_status_t access_loop_windows(hk_run_t *run, uint64_t reps, bool computes)
{
    const access_state_t *state = run->state;
    if (!hk_takes_part(&state->epoch)) {
        return HK_OK;
    }
    if (state->epoch.begin != NULL) {
        return computes ? access_windows(run, reps, true, true) : access_windows(run, reps, true, false);
    }
    return computes ? access_windows(run, reps, false, true) : access_windows(run, reps, false, false);
}

static hk_status_t access_loop_gets(hk_run_t *run, uint64_t reps)
{
    const access_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const get)(hk_ctx_t *, int, void *, const void *, size_t) = ctx->tp->get;
    const int peer = state->target[0].peer;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(get(ctx, peer, run->in, run->out, run->bytes));
    }
    return HK_OK;
}

hk_status_t hk_access_repeat(hk_run_t *run, uint64_t reps)
{
    const access_state_t *state = run->state;
    const bool acts = state->targets_count > 0;
    if (!state->is_plain) {
        return access_loop_windows(run, reps, state->computes && acts);
    }
    if (access_kind(run)->reads) {
        return acts ? access_loop_gets(run, reps) : HK_OK;
    }
    return hk_puts(run, acts ? state->target[0].peer : -1, state->epoch.from_count > 0 ? state->epoch.from[0] : -1,
                   access_quiet(run), reps);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static hk_status_t access_loop_pure(hk_run_t *run, uint64_t reps)
{
    return access_loop_windows(run, reps, false);
}

/* What one window takes by itself; of quiet with blocking operations, as in osu_oshm_put_overlap. */
static hk_status_t access_time_pure(hk_run_t *run)
{
    access_state_t *state = run->state;
    const hk_transport_t *tp = run->ctx->tp;
    hk_status_t (*const start)(hk_ctx_t *, int, void *, const void *, size_t) = state->start;
    if (state->epoch.kind == HK_EPOCH_QUIET) {
        state->start = access_kind(run)->reads ? tp->get : tp->put;
    }
    HK_TRY(hk_time_pure(run, access_loop_pure, &state->pure_ns));
    state->start = start;
    return HK_OK;
}

/* Lists of ranks, each once. */
static void access_list_peers(hk_run_t *run)
{
    access_state_t *state = run->state;
    const bool reads = access_kind(run)->reads;
    const size_t slot_bytes = state->places * run->bytes, room = hk_reach_peers_max(run);
    state->target = (access_target_t *)(void *)state->room;
    int *to = (int *)(void *)(state->target + room), *from = to + room;
    int to_count = hk_reach_peers(run, true, to), from_count = hk_reach_peers(run, false, from);
    for (int i = 0; i < to_count; i++) {
        const size_t slot = reads ? hk_reach_slot_here(run, i, to[i]) : hk_reach_slot_there(run, i);
        state->target[i] = (access_target_t){.peer = to[i], .at = slot * slot_bytes};
    }
    state->targets_count = to_count;
    if (access_kind(run)->reach == HK_REACH_EXCHANGE && to[0] == to[1]) {
        to_count = from_count = 1;
    }
    state->epoch =
        (hk_epoch_t){.kind = access_epoch(run),
                     .to = to,
                     .from = from,
                     .to_count = to_count,
                     .from_count = from_count,
                     .to_all = access_kind(run)->reach == HK_REACH_ALL || access_kind(run)->reach == HK_REACH_FAN,
                     .memory = reads ? run->out : run->in};
}

hk_status_t hk_access_prepare(hk_run_t *run)
{
    access_state_t *state = run->state;
    const hk_transport_t *tp = run->ctx->tp;
    const bool reads = access_kind(run)->reads, is_blocking = access_epoch(run) == HK_NO_EPOCH;
    state->window = (uint64_t)access_option(run, HK_ACCESS_WINDOW);
    state->places = access_places(run);
    access_list_peers(run);
    state->start = reads ? (is_blocking ? tp->get : tp->get_start) : is_blocking ? tp->put : tp->put_start;
    HK_TRY(hk_epoch_make(run->ctx, &state->epoch));
    state->is_plain = access_is_plain(run);
    state->computes = access_option(run, HK_ACCESS_OVERLAP) != 0;
    return state->computes ? hk_unless_broken(access_time_pure(run)) : HK_OK;
}

hk_status_t hk_access_finish(hk_run_t *run)
{
    access_state_t *state = run->state;
    return hk_epoch_drop(run->ctx, &state->epoch);
}

/* One repetition fills the first places of each slot. */
bool hk_access_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const access_state_t *state = run->state;
    const bool reads = access_kind(run)->reads;
    const size_t at_once = state->window > 0 ? (size_t)state->window : 1;
    const size_t least = state->places < at_once ? state->places : at_once;
    const size_t filled = least > 0 ? least : 1;
    const size_t n = i / filled, place = i % filled;
    const int count = reads                                          ? state->targets_count
                      : access_kind(run)->reach == HK_REACH_EXCHANGE ? 2
                                                                     : state->epoch.from_count;
    if (n >= (size_t)count) {
        return false;
    }
    const bool is_second = n == 1 && state->epoch.from_count == 1; /* two ranks that exchange */
    const int peer = reads ? state->target[n].peer : state->epoch.from[is_second ? 0 : n];
    *expected_p =
        (hk_expected_t){.in_offset = (hk_reach_slot_here(run, (int)n, peer) * state->places + place) * run->bytes,
                        .from_offset = place * run->bytes,
                        .size_bytes = state->is_plain ? hk_puts_expected_bytes(run, access_quiet(run)) : run->bytes,
                        .from_rank = peer};
    return true;
}

bool hk_access_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const access_state_t *state = run->state;
    const hk_delay_t delay = {.count = state->overlaps, .taken_ns = state->overlaps * (double)state->pure_ns};
    return access_option(run, HK_ACCESS_OVERLAP) != 0 && hk_delay_counter(&delay, i, counter_p);
}
