/* The core of all collective patterns. A repetition is one call of the operation, by the transport's own implementation
 * or by a portable algorithm; both are one function of the call, so they are timed alike.
 *
 * When a repetition starts:
 * "stream": when the previous one has ended on this rank. Where ranks could run ahead of each other, as with a root,
 * all meet after each batch, timed. "barrier": after a barrier, untimed, as in the OSU benchmarks. "window": at a time
 * that rank 0 has set, on clocks that were compared, as in ReproMPI (S. Hunold and A. Carpen-Amarie, Reproducible MPI
 * benchmarking is still not as easy as you think, 2016). A rank that is late starts at once and counts it. */
#include <string.h>

#include "../mix.h"
#include "../sync.h"
#include "clock.h"
#include "collective_core.h"
#include "pure.h"

enum { CLOCK_EXCHANGES = 20 };
enum { WINDOW_NS_PER_RANK = 25000 }; /* until all have heard of it: rank 0 tells one after the other */

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A single pair of buffers stays as make_call has left it: in place, MPI has a name instead of one. */
static inline void aim(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_setup_t *setup = &state->setup;
    const size_t copy = state->count++ % setup->copies;
    if (setup->copies > 1) {
        setup->call.out = run->out + copy * setup->out_stride;
        setup->call.in = run->in + copy * setup->in_stride;
    }
}

static hk_status_t operate_whole(hk_run_t *run)
{
    hk_call_t *call = &((hk_collective_state_t *)run->state)->setup.call;
    return call->run(run->ctx, call);
}

/* A start, and the wait for the end. */
static hk_status_t operate_split(hk_run_t *run)
{
    hk_call_t *call = &((hk_collective_state_t *)run->state)->setup.call;
    HK_TRY(call->run(run->ctx, call));
    return call->wait(run->ctx, call);
}

/* Computing in between, and tests for the end. */
static hk_status_t operate_overlapped(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->setup.call;
    HK_TRY(call->run(ctx, call));
    for (int64_t i = 0; i < state->setup.asked.tests; i++) {
        bool is_done = false;
        ctx->tp->compute(ctx, state->part_ns);
        HK_TRY(call->test(ctx, call, &is_done));
    }
    ctx->tp->compute(ctx, state->part_ns);
    state->overlaps++;
    return call->wait(ctx, call);
}

/* Back to back, on one pair of buffers: nothing but the calls. */
static hk_status_t loop_plain(hk_run_t *run, uint64_t reps)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->setup.call;
    hk_status_t (*const operate)(hk_ctx_t *, hk_call_t *) = call->run;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(operate(ctx, call));
    }
    state->count += reps;
    return HK_OK;
}

static hk_status_t loop_stream(hk_run_t *run, uint64_t reps)
{
    hk_status_t (*const operate)(hk_run_t *) = ((hk_collective_state_t *)run->state)->operate;
    for (uint64_t i = 0; i < reps; i++) {
        aim(run);
        HK_TRY(operate(run));
    }
    return HK_OK;
}

/* A uniform delay up to the option's, different on each rank and in each repetition, the same in each measurement. */
static void arrive(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    if (state->delay_ns > 0) {
        run->ctx->tp->compute(run->ctx, hk_mix_next(&state->arrivals) % (state->delay_ns + 1));
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
    return run->in + ((const hk_collective_state_t *)run->state)->setup.in_room;
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

/* Repetitions that start together; only their own time counts. `in_window` is a constant in each call. */
static inline hk_status_t loop_together(hk_run_t *run, uint64_t reps, const bool in_window)
{
    hk_collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    uint64_t (*const now_ns)(hk_ctx_t *) = ctx->tp->now_ns;
    hk_status_t (*const operate)(hk_run_t *) = state->operate;
    const uint64_t began_ns = now_ns(ctx);
    uint64_t timed_ns = 0;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(hk_sync(ctx));
        if (in_window) {
            uint64_t start_ns = 0;
            HK_TRY(agree_on_start(run, WINDOW_NS_PER_RANK * (uint64_t)ctx->size, &start_ns));
            await_start(run, start_ns);
        }
        arrive(run);
        aim(run);
        const uint64_t start_ns = now_ns(ctx);
        HK_TRY(operate(run));
        timed_ns += now_ns(ctx) - start_ns;
    }
    run->untimed_ns += now_ns(ctx) - began_ns - timed_ns;
    return HK_OK;
}

static hk_status_t loop_after_barrier(hk_run_t *run, uint64_t reps)
{
    return loop_together(run, reps, false);
}

static hk_status_t loop_in_window(hk_run_t *run, uint64_t reps)
{
    return loop_together(run, reps, true);
}

hk_status_t hk_collective_repeat(hk_run_t *run, uint64_t reps)
{
    const hk_collective_state_t *state = run->state;
    const hk_call_t *call = &state->setup.call;
    HK_TRY(state->loop(run, reps));
    return !call->is_met && hk_is_a(call->operation, HK_ROOTED | HK_ORDERED) ? hk_sync(run->ctx) : HK_OK;
}

/* ---- before and after ---------------------------------------------------------------------------------------------
 */

static void lay_out(hk_collective_state_t *state)
{
    const hk_asked_t *asked = &state->setup.asked;
    hk_call_t *call = &state->setup.call;
    size_t *const out_at = state->at, *const in_at = state->at + state->setup.blocks + 1;
    call->out_at = hk_gives[call->operation] == HK_DATA_BLOCKS ? out_at : NULL;
    call->in_at = hk_gets[call->operation] == HK_DATA_BLOCKS ? in_at : NULL;
    for (int i = 0; i < state->setup.blocks && (call->out_at != NULL || call->in_at != NULL); i++) {
        out_at[i + 1] = out_at[i] + hk_given_bytes(asked, call, i);
        in_at[i + 1] = in_at[i] + hk_got_bytes(asked, call, i);
    }
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

static hk_status_t run_barrier(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)call;
    return ctx->tp->barrier(ctx);
}

static hk_status_t make(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_setup_t *setup = &state->setup;
    hk_call_t *call = &setup->call;
    if (setup->own_bytes == 0) {
        call->run = setup->algorithm != NULL ? setup->algorithm->run : run_barrier;
        return HK_OK;
    }
    call->own = (unsigned char *)run->state + hk_state_bytes(setup);
    return setup->algorithm == NULL
               ? run->ctx->tp->make_call(run->ctx, call)
               : hk_parts_make(run->ctx, call, setup->algorithm, setup->copies, setup->out_stride, setup->in_stride);
}

hk_status_t hk_collective_prepare(hk_run_t *run)
{
    hk_collective_state_t *state = run->state;
    hk_call_t *call = &state->setup.call;
    hk_set_up(run, &state->setup);
    lay_out(state);
    const hk_asked_t *asked = &state->setup.asked;
    call->out = run->out;
    call->in = run->in;
    call->work = run->in + state->setup.work_at;
    call->reqs = run->reqs;
    call->given_bytes = state->setup.out_bytes;
    HK_TRY(make(run));
    const bool is_split = call->wait != NULL, streams = asked->start == HK_START_STREAM;
    state->operate = is_split ? operate_split : operate_whole;
    state->arrivals = (uint64_t)(unsigned)run->ctx->rank << 32;
    if (asked->overlap != 0) {
        HK_TRY(hk_unless_broken(hk_time_pure(run, streams ? loop_stream : loop_after_barrier, &state->pure_ns)));
        state->part_ns = state->pure_ns / ((uint64_t)asked->tests + 1);
        state->operate = operate_overlapped;
    }
    state->delay_ns = (uint64_t)asked->arrival_us * 1000;
    state->loop = asked->start == HK_START_WINDOW       ? loop_in_window
                  : !streams                            ? loop_after_barrier
                  : is_split || state->setup.copies > 1 ? loop_stream
                                                        : loop_plain;
    return asked->start == HK_START_WINDOW ? hk_unless_broken(compare_clocks(run)) : HK_OK;
}

hk_status_t hk_collective_finish(hk_run_t *run)
{
    hk_setup_t *setup = &((hk_collective_state_t *)run->state)->setup;
    if (setup->own_bytes > 0) {
        (setup->algorithm != NULL ? hk_parts_drop : run->ctx->tp->drop_call)(run->ctx, &setup->call);
    }
    return HK_OK;
}
