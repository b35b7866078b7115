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

#include <unistd.h>

#include "../payload.h"
#include "../sync.h"
#include "clock.h"
#include "grid.h"

enum { PURE_CALLS = 20, CLOCK_EXCHANGES = 20, LINE_BYTES = 64 };
enum { COPIES_MAX = 1024, CACHE_BYTES = 32 << 20 }; /* CACHE_BYTES: where the system does not say */
enum { WINDOW_NS_PER_RANK = 25000 };                /* until all have heard of it: rank 0 tells one after the other */
enum { STAMP_BYTES = 64 };                          /* behind all that is received */
enum { NEAR_MAX = 2 * HK_GRID_DIMENSIONS_MAX };

typedef struct collective_state {
    hk_call_t call;
    hk_asked_t asked;
    const hk_algorithm_t *algorithm; /* NULL: the transport's own */
    hk_status_t (*loop)(hk_run_t *run, uint64_t reps);
    unsigned char *out, *in; /* of copy 0 */
    size_t out_stride, in_stride, room_bytes;
    uint64_t copies, count; /* count: repetitions so far; one uses copy count % copies */
    uint64_t pure_ns;       /* of one operation without computing */
    uint64_t arrivals;      /* the state of the random delays */
    double overlaps, late_starts, clock_ahead_ns, clock_error_ns;
    bool has_own_block; /* the operation leaves it in `in`, too */
    bool is_counting;   /* the counters have been read before the samples */
    int near[NEAR_MAX];
    size_t at[]; /* out_at, then in_at */
} collective_state_t;

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static bool may_run_ahead(hk_operation_t operation)
{
    return hk_has_root(operation) || operation == HK_SCAN || operation == HK_EXSCAN;
}

/* The neighbours of a rank on the grid, in each dimension the one before and the one after it; with two ranks in it
 * they are one. */
static int find_near(const hk_run_t *run, int rank, int size, int near[NEAR_MAX])
{
    hk_ctx_t ctx = *run->ctx;
    hk_run_t of_rank = *run;
    int count = 0;
    ctx.rank = rank;
    ctx.size = size;
    of_rank.ctx = &ctx;
    const hk_grid_t grid = hk_grid_of(&of_rank);
    for (int d = 0; d < HK_GRID_DIMENSIONS_MAX; d++) {
        for (int step = -1; step <= 1; step += 2) {
            if (grid.ranks[d] > 2 || (grid.ranks[d] == 2 && step > 0)) {
                near[count++] = hk_grid_around(&grid, d, step);
            }
        }
    }
    return count;
}

/* The call with its neighbours, and the number of its blocks. */
static int shape(const hk_run_t *run, const hk_asked_t *asked, hk_call_t *call_p, int near[NEAR_MAX])
{
    *call_p = hk_call_of(run, asked);
    if (hk_is_near(asked->operation)) {
        call_p->near = (hk_near_t){.count = find_near(run, call_p->rank, call_p->size, near), .ranks = near};
    }
    return hk_blocks(call_p);
}

static int block_rank(const hk_call_t *call, int block)
{
    return hk_is_near(call->operation) ? call->near.ranks[block] : block;
}

static size_t given_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    return hk_block_bytes(asked, call, call->rank, block_rank(call, block));
}

static size_t got_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    return hk_block_bytes(asked, call, block_rank(call, block), call->rank);
}

typedef size_t (*block_size_t)(const hk_asked_t *, const hk_call_t *, int);

static size_t all_bytes(const hk_asked_t *asked, const hk_call_t *call, int blocks, block_size_t of_block)
{
    size_t sum = 0;
    if (asked->counts == HK_COUNTS_EQUAL) {
        return (size_t)blocks * call->bytes;
    }
    for (int i = 0; i < blocks; i++) {
        sum += of_block(asked, call, i);
    }
    return sum;
}

typedef struct sizes {
    size_t out_bytes, in_bytes; /* of one copy */
    size_t room_bytes;          /* for the algorithm's work */
} sizes_t;

static sizes_t sizes_of(const hk_asked_t *asked, const hk_call_t *call, int blocks, const hk_algorithm_t *algorithm)
{
    const hk_operation_t operation = asked->operation;
    const bool is_vector = hk_reduces(operation) || operation == HK_BCAST;
    sizes_t sizes = {0};
    if (operation == HK_BARRIER) {
        return sizes;
    }
    sizes.out_bytes = hk_gives_blocks(operation) ? all_bytes(asked, call, blocks, given_bytes)
                      : is_vector                ? call->bytes
                                                 : hk_block_bytes(asked, call, call->rank, call->rank);
    sizes.in_bytes = hk_gets_blocks(operation)    ? all_bytes(asked, call, blocks, got_bytes)
                     : hk_gives_blocks(operation) ? hk_block_bytes(asked, call, call->rank, call->rank)
                                                  : call->bytes;
    if (hk_gives_blocks(operation) && asked->in_place != 0 && sizes.in_bytes < sizes.out_bytes) {
        sizes.in_bytes = sizes.out_bytes; /* of a reduction: what the rank gives */
    }
    const size_t most = sizes.out_bytes > sizes.in_bytes ? sizes.out_bytes : sizes.in_bytes;
    const hk_room_t room = algorithm != NULL ? algorithm->room : HK_ROOM_NONE;
    sizes.room_bytes = room == HK_ROOM_VECTOR ? most : room != HK_ROOM_NONE ? 2 * most : 0;
    return sizes;
}

static size_t strided(size_t size_bytes)
{
    return (size_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Fresh data: as many copies as are twice as large as the last cache. OpenSHMEM may write into `in` before its rank has
 * entered the call, so `in` must not be in use by the previous call. Two are enough where every rank has left the
 * previous call before any enters the next but one. */
static uint64_t copies_of(const hk_run_t *run, const hk_asked_t *asked, const sizes_t *sizes, bool is_own)
{
    long cache_bytes = 0;
    if (asked->fresh == 0) {
        return is_own && (run->ctx->tp->caps & HK_CAP_ONE_SIDED) != 0 ? 2 : 1;
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    const size_t each = strided(sizes->out_bytes) + strided(sizes->in_bytes);
    const size_t needed = 2 * (size_t)(cache_bytes > 0 ? cache_bytes : CACHE_BYTES) / (each > 0 ? each : 1);
    return needed < 2 ? 2 : needed > COPIES_MAX ? COPIES_MAX : needed;
}

/* The least that ranks must exchange: each block once to each rank that needs it, a reduced vector once from each rank,
 * an allreduced one twice, as its result has to reach all. */
static uint64_t messages_of(hk_operation_t operation, uint64_t size)
{
    switch (operation) {
    case HK_BARRIER:
        return 0;
    case HK_ALLREDUCE:
        return 2 * (size - 1);
    case HK_REDUCE_LOCAL:
        return 1;
    case HK_ALLGATHER:
    case HK_ALLGATHERV:
    case HK_ALLTOALL:
    case HK_ALLTOALLV:
    case HK_ALLTOALLW:
    case HK_REDUCE_SCATTER:
    case HK_REDUCE_SCATTER_BLOCK:
        return size * (size - 1);
    default:
        return size - 1;
    }
}

hk_plan_t hk_collective_plan(const hk_run_t *run)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    hk_call_t call;
    int near[NEAR_MAX];
    const int blocks = shape(run, &asked, &call, near);
    const sizes_t sizes = sizes_of(&asked, &call, blocks, algorithm);
    const uint64_t copies = copies_of(run, &asked, &sizes, algorithm == NULL);
    const uint64_t size = (uint64_t)call.size; /* uneven blocks count as even ones; all ranks have as many neighbours */
    const uint64_t in_group =
        hk_is_near(asked.operation) ? size * (uint64_t)blocks : messages_of(asked.operation, size);
    const uint64_t messages = (uint64_t)asked.groups * in_group;
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN, HK_TIMED_ROOT};
    return (hk_plan_t){.out_bytes = copies * strided(sizes.out_bytes),
                       .in_bytes = copies * strided(sizes.in_bytes) + strided(sizes.room_bytes) + STAMP_BYTES,
                       .reqs_count = algorithm == NULL                ? 0
                                     : algorithm->reqs == HK_REQS_ALL ? 2 * (size_t)blocks
                                                                      : 2,
                       .state_bytes = sizeof(collective_state_t) + 2 * ((size_t)blocks + 1) * sizeof(size_t),
                       .bytes_per_rep = messages * run->bytes,
                       .messages_per_rep = messages,
                       .divisor = 1,
                       .algorithm = algorithm == NULL ? "native" : algorithm->name,
                       .timed = timed[asked.time],
                       .root = (int)asked.root,
                       .period = copies};
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A single pair of buffers stays as make_call has left it: in place, MPI has a name instead of one. */
static inline void aim(collective_state_t *state)
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
    collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const uint64_t mine_ns = start_ns - (uint64_t)(int64_t)state->clock_ahead_ns;
    state->late_starts += ctx->tp->now_ns(ctx) > mine_ns;
    while (ctx->tp->now_ns(ctx) < mine_ns) {
    }
}

static unsigned char *stamp_of(hk_run_t *run)
{
    const collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
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

hk_status_t hk_collective_repeat(hk_run_t *run, uint64_t reps)
{
    collective_state_t *state = run->state;
    HK_TRY(state->loop(run, reps));
    return may_run_ahead(state->asked.operation) && state->asked.start == HK_START_STREAM ? hk_sync(run->ctx) : HK_OK;
}

/* ---- before and after ---------------------------------------------------------------------------------------------
 */

static void lay_out(const hk_asked_t *asked, hk_call_t *call, int blocks, size_t *out_at, size_t *in_at)
{
    for (int i = 0; i < blocks; i++) {
        out_at[i + 1] = out_at[i] + given_bytes(asked, call, i);
        in_at[i + 1] = in_at[i] + got_bytes(asked, call, i);
    }
    call->out_at = hk_gives_blocks(asked->operation) ? out_at : NULL;
    call->in_at = hk_gets_blocks(asked->operation) ? in_at : NULL;
}

/* What one operation takes by itself, to compute as long. */
static hk_status_t time_pure(hk_run_t *run)
{
    collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const int64_t overlap = state->asked.overlap;
    uint64_t start_ns = 0;
    state->asked.overlap = 0;
    HK_TRY(hk_sync(ctx));
    for (int i = -PURE_CALLS / 4; i < PURE_CALLS; i++) {
        start_ns = i == 0 ? ctx->tp->now_ns(ctx) : start_ns;
        aim(state);
        HK_TRY(operate_in_parts(run));
    }
    state->pure_ns = (ctx->tp->now_ns(ctx) - start_ns) / PURE_CALLS;
    state->asked.overlap = overlap;
    return hk_sync(ctx);
}

/* How far rank 0's clock is ahead of this rank's: one rank after the other asks rank 0. A difference within its error
 * is none: ranks of one host have one clock. */
static hk_status_t compare_clocks(hk_run_t *run)
{
    collective_state_t *state = run->state;
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
    collective_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_call_t *call = &state->call;
    state->asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &state->asked);
    const int blocks = shape(run, &state->asked, call, state->near);
    const sizes_t sizes = sizes_of(&state->asked, call, blocks, algorithm);
    lay_out(&state->asked, call, blocks, state->at, state->at + blocks + 1);
    state->copies = copies_of(run, &state->asked, &sizes, algorithm == NULL);
    state->out_stride = strided(sizes.out_bytes);
    state->in_stride = strided(sizes.in_bytes);
    state->room_bytes = strided(sizes.room_bytes);
    state->has_own_block = algorithm == NULL || algorithm->run != hk_alltoall_flat;
    state->out = run->out;
    state->in = run->in;
    state->arrivals = (uint64_t)(unsigned)ctx->rank << 32;
    call->out = state->out;
    call->in = state->in;
    call->work = run->in + state->copies * state->in_stride;
    call->reqs = run->reqs;
    call->own_bytes = sizes.out_bytes;
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
    collective_state_t *state = run->state;
    if (state->call.own != NULL) {
        (state->algorithm != NULL ? hk_parts_drop : run->ctx->tp->drop_call)(run->ctx, &state->call);
    }
    return HK_OK;
}

/* Where a rank's own block is, in place. */
static size_t own_at(const hk_asked_t *asked, const hk_call_t *call)
{
    size_t at = 0;
    for (int i = 0; i < call->rank && hk_gets_blocks(asked->operation) && !hk_gives_blocks(asked->operation); i++) {
        at += got_bytes(asked, call, i);
    }
    return at;
}

/* All copies are alike. Before prepare there is no state. */
void hk_collective_fill(hk_run_t *run, uint64_t seed)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    hk_call_t call;
    int near[NEAR_MAX];
    const int blocks = shape(run, &asked, &call, near), rank = run->ctx->rank;
    const sizes_t sizes = sizes_of(&asked, &call, blocks, algorithm);
    const uint64_t copies = copies_of(run, &asked, &sizes, algorithm == NULL);
    const hk_type_t type = hk_reduces(asked.operation) ? call.type : HK_UINT8; /* others only copy */
    for (uint64_t copy = 0; copy < copies; copy++) {
        unsigned char *out = run->out + copy * strided(sizes.out_bytes);
        unsigned char *in = run->in + copy * strided(sizes.in_bytes);
        hk_payload_fill_type(out, sizes.out_bytes, type, call.reduction, rank, seed);
        if (asked.operation == HK_REDUCE_LOCAL) { /* what is there, as if from the next rank */
            hk_payload_fill_type(in, sizes.in_bytes, type, call.reduction, rank + 1, seed);
        } else if (call.in_place) {
            memcpy(in + own_at(&asked, &call), out, sizes.out_bytes);
        }
    }
}

/* ---- what must have arrived ---------------------------------------------------------------------------------------
 */

/* Where a rank keeps the block for this one. */
static size_t offset_at(const hk_run_t *run, const collective_state_t *state, int from)
{
    hk_ctx_t ctx = *run->ctx;
    hk_run_t of_giver = *run;
    hk_call_t giver;
    int near[NEAR_MAX];
    size_t offset = 0;
    ctx.rank = state->call.first + from;
    of_giver.ctx = &ctx;
    const int blocks = shape(&of_giver, &state->asked, &giver, near);
    for (int i = 0; i < blocks && block_rank(&giver, i) != state->call.rank; i++) {
        offset += given_bytes(&state->asked, &giver, i);
    }
    return offset;
}

/* Block i of those that the rank gets. */
static hk_expected_t got_block(const hk_run_t *run, const collective_state_t *state, int block)
{
    const hk_call_t *call = &state->call;
    const int from = block_rank(call, block);
    return (hk_expected_t){.in_offset = call->in_at[block],
                           .size_bytes = hk_in_bytes(call, block),
                           .from_rank = call->first + from,
                           .from_offset = hk_gives_blocks(call->operation) ? offset_at(run, state, from) : 0};
}

static hk_expected_t reduction_of(const hk_call_t *call, int end)
{
    return (hk_expected_t){.size_bytes = call->bytes,
                           .from_rank = HK_FROM_ALL,
                           .first_rank = call->first,
                           .end_rank = call->first + end,
                           .type = call->type,
                           .reduction = call->reduction};
}

/* The only block that the rank gets. Without one its size is 0. */
static hk_expected_t only_block(const collective_state_t *state)
{
    const hk_call_t *call = &state->call;
    const bool is_root = call->rank == call->root;
    hk_expected_t block = {.size_bytes = 0};
    switch (call->operation) {
    case HK_BCAST:
        return is_root ? block : (hk_expected_t){.size_bytes = call->bytes, .from_rank = hk_peer(call, call->root)};
    case HK_REDUCE:
        return is_root ? reduction_of(call, call->size) : block;
    case HK_ALLREDUCE:
        return reduction_of(call, call->size);
    case HK_SCAN:
        return reduction_of(call, call->rank + 1);
    case HK_EXSCAN:
        return call->rank > 0 ? reduction_of(call, call->rank) : block;
    case HK_REDUCE_LOCAL:
        block = reduction_of(call, call->rank + 2);
        block.first_rank += call->rank;
        return block;
    case HK_REDUCE_SCATTER:
    case HK_REDUCE_SCATTER_BLOCK:
        block = reduction_of(call, call->size);
        block.from_offset = call->out_at[call->rank];
        block.size_bytes = hk_out_bytes(call, call->rank);
        return block;
    default: /* scatter */
        return is_root && call->in_place ? block
                                         : (hk_expected_t){.from_rank = hk_peer(call, call->root),
                                                           .from_offset = call->out_at[call->rank],
                                                           .size_bytes = hk_out_bytes(call, call->rank)};
    }
}

bool hk_collective_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const collective_state_t *state = run->state;
    const hk_call_t *call = &state->call;
    const hk_operation_t operation = call->operation;
    const size_t copy = (state->count - 1) % state->copies;
    if (operation == HK_BARRIER) {
        return false;
    }
    if (hk_gets_blocks(operation)) {
        const bool is_for_me = !hk_has_root(operation) || call->rank == call->root;
        if (!is_for_me || i >= (size_t)hk_blocks(call)) {
            return false;
        }
        *expected_p = got_block(run, state, (int)i);
        if (!state->has_own_block && expected_p->from_rank == run->ctx->rank) {
            expected_p->size_bytes = 0;
        }
    } else {
        *expected_p = only_block(state);
        if (i > 0) {
            return false;
        }
    }
    expected_p->in_offset += copy * state->in_stride;
    return true;
}

/* The core subtracts what the counters are before the samples, which is 0 for the clocks' error, too: it is no sum. */
bool hk_collective_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    collective_state_t *state = run->state;
    if (state->asked.overlap != 0 && i < 2) {
        const double delay_ns = state->overlaps * (double)state->pure_ns;
        *counter_p = i == 0 ? (hk_counter_t){"delays", state->overlaps} : (hk_counter_t){"delay_ns", delay_ns};
        return true;
    }
    i -= state->asked.overlap != 0 ? 2 : 0;
    if (state->asked.start != HK_START_WINDOW || i > 1) {
        return false;
    }
    *counter_p = (hk_counter_t){"late_starts", state->late_starts};
    if (i == 1) {
        *counter_p = (hk_counter_t){"clock_error_ns", state->is_counting ? state->clock_error_ns : 0};
        state->is_counting = true;
    }
    return true;
}
