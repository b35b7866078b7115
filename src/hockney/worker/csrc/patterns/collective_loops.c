/* The core of all collective patterns. A repetition is one call of the operation, by the transport's own implementation
 * or by a portable algorithm; both are one function of the call, so they are timed alike.
 *
 * When a repetition starts:
 * "stream": when the previous one has ended on this rank. Where ranks could run ahead of each other, as with a root,
 * all meet after each batch, timed. "barrier": after a barrier, untimed, as in the OSU benchmarks. "window": at a time
 * that rank 0 has set, on clocks that were compared, as in ReproMPI (S. Hunold and A. Carpen-Amarie, Reproducible MPI
 * benchmarking is still not as easy as you think, 2016). A rank that is late starts at once and counts it. */
#include "collective.h"

#include <string.h>

#include "../sync.h"
#include "clock.h"

enum { PURE_CALLS = 20, CLOCK_EXCHANGES = 20 };
enum { WINDOW_NS_PER_RANK = 25000 }; /* until all have heard of it: rank 0 tells one after the other */

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A single pair of buffers stays as make_call has left it: in place, MPI has a name instead of one. */
static inline void aim(hk_collective_state_t *state)
{
    const size_t copy = state->count++ % state->copies;
    if (state->copies > 1) {
        state->call.out = state->out + copy * state->out_stride;
        state->call.in = state->in + copy * state->in_stride;
    }
}

/* Back to back, on one pair of buffers: nothing but the calls. */
static hk_status_t loop_plain(hk_run_t *run, uint64_t reps)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->call;
    hk_status_t (*const operate)(hk_ctx_t *, hk_call_t *) = call->run;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(operate(ctx, call));
    }
    state->count += reps;
    return HK_OK;
}

static hk_status_t loop_copies(hk_run_t *run, uint64_t reps)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->call;
    hk_status_t (*const operate)(hk_ctx_t *, hk_call_t *) = call->run;
    for (uint64_t i = 0; i < reps; i++) {
        aim(state);
        HK_TRY(operate(ctx, call));
    }
    return HK_OK;
}

/* A start, computing if asked for, and the wait for the end. */
static hk_status_t operate_in_parts(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->call;
    const uint64_t parts = (uint64_t)state->asked.tests + 1;
    HK_TRY(call->run(ctx, call));
    if (state->asked.overlap != 0) {
        for (uint64_t part = 0; part < parts; part++) {
            bool is_done = false;
            ctx->tp->compute(ctx, state->pure_ns / parts);
            HK_TRY(part + 1 < parts ? call->test(ctx, call, &is_done) : HK_OK);
        }
        state->overlaps++;
    }
    return call->wait(ctx, call);
}

static hk_status_t loop_parts(hk_run_t *run, uint64_t reps)
{
    for (uint64_t i = 0; i < reps; i++) {
        aim(run->state);
        HK_TRY(operate_in_parts(run));
    }
    return HK_OK;
}

/* A uniform delay from 0 to the option's, different on each rank and in each repetition, the same in each measurement
 * (SplitMix64: Steele, Lea and Flood 2014). */
static void arrive(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    if (state->asked.arrival_us > 0) {
        uint64_t bits = state->arrivals += 0x9e3779b97f4a7c15u;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        run->ctx->tp->compute(run->ctx, (bits ^ (bits >> 31)) % ((uint64_t)state->asked.arrival_us * 1000 + 1));
    }
}

/* Waits until rank 0's clock shows start_ns. */
static void await_start(hk_run_t *run, uint64_t start_ns)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const uint64_t mine_ns = start_ns - (uint64_t)(int64_t)state->clock_ahead_ns;
    state->late_starts += ctx->tp->now_ns(ctx) > mine_ns;
    while (ctx->tp->now_ns(ctx) < mine_ns) {
    }
}

static unsigned char *stamp_of(hk_run_t *run)
{
    const hk_collective_state_t *state = run->state;
    return run->in + state->copies * state->in_stride + state->room_bytes;
}

/* Rank 0's time of the next start, on all ranks. */
static hk_status_t agree_on_start(hk_run_t *run, uint64_t wait_ns, uint64_t *start_ns_p)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *room = stamp_of(run);
    if (ctx->rank > 0) {
        HK_TRY(tp->recv(ctx, 0, room, sizeof *start_ns_p));
        memcpy(start_ns_p, room, sizeof *start_ns_p);
        return HK_OK;
    }
    *start_ns_p = tp->now_ns(ctx) + wait_ns;
    memcpy(room, start_ns_p, sizeof *start_ns_p);
    for (int rank = 1; rank < ctx->size; rank++) {
        HK_TRY(tp->send(ctx, rank, room, sizeof *start_ns_p));
    }
    return HK_OK;
}

/* Repetitions that start together; only their own time counts. */
static hk_status_t loop_together(hk_run_t *run, uint64_t reps)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    uint64_t (*const now_ns)(hk_ctx_t *) = ctx->tp->now_ns;
    const bool is_in_parts = state->call.wait != NULL;
    const uint64_t began_ns = now_ns(ctx);
    uint64_t timed_ns = 0;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(hk_sync(ctx));
        if (state->asked.start == HK_START_WINDOW) {
            uint64_t start_ns = 0;
            HK_TRY(agree_on_start(run, WINDOW_NS_PER_RANK * (uint64_t)ctx->size, &start_ns));
            await_start(run, start_ns);
        }
        arrive(run);
        aim(state);
        const uint64_t start_ns = now_ns(ctx);
        HK_TRY(is_in_parts ? operate_in_parts(run) : state->call.run(ctx, &state->call));
        timed_ns += now_ns(ctx) - start_ns;
    }
    run->untimed_ns += now_ns(ctx) - began_ns - timed_ns;
    return HK_OK;
}

static bool may_run_ahead(hk_operation_t operation)
{
    return hk_has_root(operation) || operation == HK_SCAN || operation == HK_EXSCAN;
}

hk_status_t hk_collective_repeat(hk_run_t *run, uint64_t reps)
{
    hk_collective_state_t *state = run->state;
    HK_TRY(state->loop(run, reps));
    return may_run_ahead(state->asked.operation) && state->asked.start == HK_START_STREAM ? hk_sync(run->ctx) : HK_OK;
}

/* ---- before and after ---------------------------------------------------------------------------------------------
 */

static void lay_out(const hk_asked_t *asked, hk_call_t *call, int blocks, size_t *out_at, size_t *in_at)
{
    const bool has_blocks = hk_gives_blocks(asked->operation) || hk_gets_blocks(asked->operation);
    for (int i = 0; i < blocks && has_blocks; i++) {
        out_at[i + 1] = out_at[i] + hk_given_bytes(asked, call, i);
        in_at[i + 1] = in_at[i] + hk_got_bytes(asked, call, i);
    }
    call->out_at = hk_gives_blocks(asked->operation) ? out_at : NULL;
    call->in_at = hk_gets_blocks(asked->operation) ? in_at : NULL;
}

/* What one operation takes by itself, to compute as long. */
static hk_status_t time_pure(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const int64_t overlap = state->asked.overlap;
    uint64_t sum_ns = 0;
    state->asked.overlap = 0;
    HK_TRY(hk_sync(ctx));
    for (int i = -PURE_CALLS / 4; i < PURE_CALLS; i++) {
        HK_TRY(state->asked.start != HK_START_STREAM ? hk_sync(ctx) : HK_OK);
        const uint64_t start_ns = ctx->tp->now_ns(ctx);
        aim(state);
        HK_TRY(operate_in_parts(run));
        sum_ns += i >= 0 ? ctx->tp->now_ns(ctx) - start_ns : 0;
    }
    state->pure_ns = sum_ns / PURE_CALLS;
    state->asked.overlap = overlap;
    return hk_sync(ctx);
}

/* How far rank 0's clock is ahead of this rank's: one rank after the other asks rank 0. A difference within its error
 * is none: ranks of one host have one clock. */
static hk_status_t compare_clocks(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *stamp = stamp_of(run);
    hk_clock_t clock = {.is_known = false};
    for (int rank = 1; rank < ctx->size; rank++) {
        for (int i = 0; i < CLOCK_EXCHANGES && (ctx->rank == 0 || ctx->rank == rank); i++) {
            const uint64_t sent_ns = tp->now_ns(ctx);
            if (ctx->rank == 0) {
                HK_TRY(tp->recv(ctx, rank, stamp, sizeof sent_ns));
                const uint64_t read_ns = tp->now_ns(ctx);
                memcpy(stamp, &read_ns, sizeof read_ns);
                HK_TRY(tp->send(ctx, rank, stamp, sizeof read_ns));
            } else {
                uint64_t read_ns = 0;
                HK_TRY(tp->send(ctx, 0, stamp, sizeof sent_ns));
                HK_TRY(tp->recv(ctx, 0, stamp, sizeof sent_ns));
                memcpy(&read_ns, stamp, sizeof read_ns);
                hk_clock_note(&clock, sent_ns, read_ns, tp->now_ns(ctx));
            }
        }
    }
    const double ahead_ns = clock.ahead_ns < 0 ? -clock.ahead_ns : clock.ahead_ns;
    state->clock_ahead_ns = ahead_ns > clock.error_ns ? clock.ahead_ns : 0;
    state->clock_error_ns = clock.error_ns;
    return HK_OK;
}

hk_status_t hk_collective_prepare(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->call;
    state->asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &state->asked);
    const int blocks = hk_shape(run, &state->asked, call, state->near);
    const hk_call_sizes_t sizes = hk_sizes_of(&state->asked, call, blocks, algorithm);
    lay_out(&state->asked, call, blocks, state->at, state->at + blocks + 1);
    state->copies = hk_copies_of(run, &state->asked, &sizes, algorithm == NULL);
    state->out_stride = hk_strided(sizes.out_bytes);
    state->in_stride = hk_strided(sizes.in_bytes);
    state->room_bytes = hk_strided(sizes.room_bytes);
    state->has_own_block = algorithm == NULL || algorithm->run != hk_alltoall_flat;
    state->out = run->out;
    state->in = run->in;
    state->arrivals = (uint64_t)(unsigned)ctx->rank << 32;
    call->out = state->out;
    call->in = state->in;
    call->work = run->in + state->copies * state->in_stride;
    call->reqs = run->reqs;
    call->own_bytes = sizes.out_bytes;
    if (hk_own_bytes(ctx, call, algorithm) > 0) {
        call->own = (unsigned char *)run->state + hk_state_bytes(&state->asked, blocks);
    }
    state->algorithm = algorithm;
    if (algorithm == NULL) {
        HK_TRY(hk_make_own(ctx, call));
    } else if (algorithm->parts[0] != HK_NO_OPERATION) {
        HK_TRY(hk_parts_make(ctx, call, algorithm));
    } else {
        call->run = algorithm->run;
    }
    state->loop = state->asked.start != HK_START_STREAM ? loop_together
                  : call->wait != NULL                  ? loop_parts
                  : state->copies > 1                   ? loop_copies
                                                        : loop_plain;
    HK_TRY(state->asked.overlap != 0 ? time_pure(run) : HK_OK);
    return state->asked.start == HK_START_WINDOW ? compare_clocks(run) : HK_OK;
}

hk_status_t hk_collective_finish(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    if (state->call.own != NULL) {
        (state->algorithm != NULL ? hk_parts_drop : run->ctx->tp->drop_call)(run->ctx, &state->call);
    }
    return HK_OK;
}
