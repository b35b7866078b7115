/* Byte stream (the Ancor Fibre Channel note): a loop of writes on the source, and a loop of reads on the other rank,
 * each blocking or not; no messages, no acknowledgement. Both sides are timed from their common start. The source ends
 * when its last write has returned, the reader when it has all bytes. The figure is the time of the slower side,
 * normally the reader; results hold both.
 *
 * Either side may compute, like an application: after each write of a whole block, or after each read.
 *
 * The reader always asks for the size of one write, and takes what it gets. */
#include "delay.h"

enum { WRITE, READ, SOURCE, WRITES, STREAM_COMPUTE };

/* Counters of this rank. The loops count in local variables and add them at the end. */
typedef struct state {
    uint64_t write_would_block, read_would_block, reads, short_reads;
    hk_delay_t delay;
} state_t;

typedef hk_status_t write_call_t(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p);
typedef hk_status_t read_call_t(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p);

/* A stream cannot carry nothing: a block of 0 bytes travels as one byte, as in all byte streams here. */
static size_t block_bytes(const hk_run_t *run)
{
    return run->bytes > 0 ? run->bytes : 1;
}

static int source_of(const hk_run_t *run)
{
    return (int)run->option[SOURCE];
}

static hk_plan_t stream_plan(const hk_run_t *run)
{
    const uint64_t writes = (uint64_t)run->option[WRITES];
    return (hk_plan_t){.out_bytes = block_bytes(run),
                       .in_bytes = 2 * block_bytes(run),
                       .state_bytes = sizeof(state_t),
                       HK_MOVES(run, writes),
                       .divisor = writes};
}

static hk_status_t set_mode(const hk_run_t *run, bool write_now, bool read_now)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank > 1 || ctx->tp->stream_mode == NULL) {
        return HK_OK;
    }
    const bool is_source = ctx->rank == source_of(run);
    return ctx->tp->stream_mode(ctx, 1 - ctx->rank, is_source && write_now, !is_source && read_now);
}

static hk_status_t stream_prepare(hk_run_t *run)
{
    const int rank = run->ctx->rank;
    hk_delay_t *delay = &((state_t *)run->state)->delay;
    const bool is_source = rank == source_of(run);
    const hk_status_t status =
        hk_compute_prepare(run->ctx, run->option + STREAM_COMPUTE, is_source, rank == 1 - source_of(run), delay);
    return status == HK_OK ? set_mode(run, run->option[WRITE] != 0, run->option[READ] != 0) : status;
}

static hk_status_t stream_finish(hk_run_t *run)
{
    return set_mode(run, false, false);
}

/* `computes` is a constant in each call, so the loop without computation contains no test. */
static inline hk_status_t write_all(hk_run_t *run, uint64_t writes, write_call_t *write_call, const bool computes)
{
    hk_ctx_t *ctx = run->ctx;
    hk_delay_t *delay = &((state_t *)run->state)->delay;
    const int peer = 1 - ctx->rank;
    const size_t bytes = block_bytes(run);
    uint64_t would_block = 0;
    for (uint64_t i = 0; i < writes; i++) {
        for (size_t at = 0; at < bytes;) {
            size_t moved = 0;
            HK_TRY(write_call(ctx, peer, run->out + at, bytes - at, &moved));
            would_block += moved == 0;
            at += moved;
        }
        if (computes) {
            delay->take(ctx, delay);
        }
    }
    ((state_t *)run->state)->write_would_block += would_block;
    return HK_OK;
}

/* Byte i of the stream goes to place i % bytes of `in`, or to bytes + i % bytes if a read crosses the end of the
 * block. So each read fills one contiguous area, and the first block stays complete. */
static inline hk_status_t read_all(hk_run_t *run, uint64_t writes, read_call_t *read_call, const bool computes)
{
    hk_ctx_t *ctx = run->ctx;
    const int peer = 1 - ctx->rank;
    const size_t bytes = block_bytes(run);
    state_t *state = run->state;
    uint64_t left_bytes = writes * bytes;
    uint64_t would_block = 0;
    uint64_t reads = 0;
    uint64_t short_reads = 0;
    size_t at = 0;
    while (left_bytes > 0) {
        /* Bytes after the last one belong to the next loop. */
        const size_t asked = left_bytes < bytes ? (size_t)left_bytes : bytes;
        size_t moved = 0;
        HK_TRY(read_call(ctx, peer, run->in + at, asked, &moved));
        would_block += moved == 0;
        reads += moved > 0;
        short_reads += moved > 0 && moved < asked;
        left_bytes -= moved;
        at += moved;
        at = at < bytes ? at : at - bytes;
        if (computes && moved > 0) {
            state->delay.take(ctx, &state->delay);
        }
    }
    state->read_would_block += would_block;
    state->reads += reads;
    state->short_reads += short_reads;
    return HK_OK;
}

static hk_status_t stream_repeat(hk_run_t *run, uint64_t reps)
{
    const hk_transport_t *tp = run->ctx->tp;
    const uint64_t writes = reps * (uint64_t)run->option[WRITES];
    if (run->ctx->rank > 1) {
        return HK_OK;
    }
    const bool computes = ((const state_t *)run->state)->delay.amount > 0;
    if (run->ctx->rank == source_of(run)) {
        write_call_t *const write_call = run->option[WRITE] != 0 ? tp->write_now : tp->write_some;
        return computes ? write_all(run, writes, write_call, true) : write_all(run, writes, write_call, false);
    }
    read_call_t *const read_call = run->option[READ] != 0 ? tp->read_now : tp->read_some;
    return computes ? read_all(run, writes, read_call, true) : read_all(run, writes, read_call, false);
}

static bool stream_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = block_bytes(run), .from_rank = source_of(run)};
    return i == 0 && run->ctx->rank == 1 - source_of(run);
}

static bool stream_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const state_t *state = run->state;
    const hk_counter_t all[] = {
        {"write_would_block", (double)state->write_would_block},
        {"read_would_block", (double)state->read_would_block},
        {"reads", (double)state->reads},
        {"short_reads", (double)state->short_reads},
    };
    const size_t count = sizeof all / sizeof all[0];
    if (i >= count) {
        return hk_compute_counter(run->option + STREAM_COMPUTE, &state->delay, i - count, counter_p);
    }
    *counter_p = all[i];
    return true;
}

const hk_pattern_t hk_pattern_stream = {
    .name = "stream",
    .summary = "writes and reads of a byte stream, each blocking or not; the slower side's time per write",
    .needs = HK_CAP_SEND | HK_CAP_STREAM,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_ENDS,
    .stream = true,
    .option =
        {
            {"write", "blocking|nonblocking", 0, 0, 0, "a write to a full buffer waits, or returns and is repeated"},
            {"read", "blocking|nonblocking", 0, 0, 0, "a read from an empty buffer waits, or returns and is repeated"},
            {"source", NULL, 0, 0, 1, "the rank that writes; selects the direction between unequal hosts"},
            {"writes", NULL, 256, 1, 100000, "writes in one repetition: enough to fill the buffers between the ranks"},
            HK_COMPUTE_OPTIONS,
        },
    .plan = stream_plan,
    .prepare = stream_prepare,
    .finish = stream_finish,
    .repeat = stream_repeat,
    .expected = stream_expected,
    .counter = stream_counter,
};
