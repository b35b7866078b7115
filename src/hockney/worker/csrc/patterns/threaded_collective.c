/* mt_collective: all threads of a rank call the library's own collective operation at once, each on a communicator of
 * its own, as in IMB-MT. Thread i of all ranks makes one call. */
#include <stddef.h>
#include <stdio.h>

#include "../payload.h"
#include "../sync.h"
#include "collective_core.h"
#include "threads.h"

enum { MTC_OPERATION = HK_THREADS_OPTIONS, MTC_START };
enum { MTC_START_BARRIER, MTC_START_STREAM };

/* The words of the option, which are the names of operations. */
// clang-format off
#define MTC_OPERATIONS(X)                                                                                              \
    X(ALLREDUCE, "allreduce") X(BARRIER, "|barrier") X(BCAST, "|bcast") X(REDUCE, "|reduce") X(SCATTER, "|scatter")    \
    X(SCATTERV, "|scatterv") X(REDUCE_SCATTER, "|reduce_scatter") X(GATHER, "|gather") X(GATHERV, "|gatherv")          \
    X(ALLGATHER, "|allgather") X(ALLGATHERV, "|allgatherv") X(ALLTOALL, "|alltoall") X(ALLTOALLV, "|alltoallv")
// clang-format on
#define MTC_OPERATION_OF(name, word) HK_##name,
#define MTC_WORD_OF(name, word) word
static const hk_operation_t mtc_operations[] = {MTC_OPERATIONS(MTC_OPERATION_OF)};
#define MTC_WORDS MTC_OPERATIONS(MTC_WORD_OF)

#define MTC_TYPE HK_INT32
enum { MTC_TYPE_BYTES = 4 };

typedef struct mtc_thread {
    hk_call_t call;
    hk_team_t *team;
    hk_ctx_t *rank_ctx; /* of the rank: its barrier is that of all ranks */
    bool is_first;      /* of its rank */
    size_t at[];        /* [size + 1] */
} mtc_thread_t;

static hk_operation_t mtc_operation(const hk_run_t *run)
{
    return mtc_operations[run->option[MTC_OPERATION]];
}

/* What a rank may give, or get: as the root. */
static size_t mtc_bytes(const hk_run_t *run, const hk_data_t data[])
{
    const hk_data_t mine = data[mtc_operation(run)];
    return mine == HK_DATA_NOTHING ? 0 : mine == HK_DATA_BLOCKS ? (size_t)run->ctx->size * run->bytes : run->bytes;
}

static size_t mtc_out_stride(const hk_run_t *run)
{
    return hk_threads_stride(mtc_bytes(run, hk_gives));
}

static size_t mtc_in_stride(const hk_run_t *run)
{
    return hk_threads_stride(mtc_bytes(run, hk_gets));
}

static hk_call_t mtc_call(const hk_run_t *run)
{
    return (hk_call_t){.operation = mtc_operation(run),
                       .type = hk_is_a(mtc_operation(run), HK_REDUCES) ? MTC_TYPE : HK_UINT8,
                       .reduction = HK_SUM,
                       .rank = run->ctx->rank,
                       .size = run->ctx->size,
                       .bytes = run->bytes};
}

static size_t mtc_grain(const hk_run_t *run)
{
    return hk_is_a(mtc_operation(run), HK_REDUCES) ? MTC_TYPE_BYTES : 0;
}

static bool mtc_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_call_t call = mtc_call(run);
    const hk_transport_t *tp = run->ctx->tp;
    char missing[160] = "collective operation of its own";
    const bool has = tp->has_call != NULL && tp->has_call(tp, &call, missing, sizeof missing);
    snprintf(why, len, "%s has no %s", tp->name, missing);
    return has;
}

static hk_plan_t mtc_plan(const hk_run_t *run)
{
    const size_t threads = (size_t)run->option[HK_THREADS];
    const uint64_t each = hk_least_messages(mtc_operation(run), (uint64_t)run->ctx->size);
    return (hk_plan_t){.out_bytes = threads * mtc_out_stride(run),
                       .in_bytes = threads * mtc_in_stride(run),
                       .state_bytes = sizeof(hk_threads_t),
                       HK_MOVES(run, threads * each),
                       .algorithm = "native",
                       .timed = run->option[HK_THREADS_TIME] == HK_THREADS_SLOWEST ? HK_TIMED_SLOWEST : HK_TIMED_MEAN};
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* No thread of any rank continues before all have come. */
static hk_status_t mtc_meet_all(const mtc_thread_t *me)
{
    hk_team_meet(me->team);
    HK_TRY(me->is_first ? hk_sync(me->rank_ctx) : HK_OK);
    hk_team_meet(me->team);
    return HK_OK;
}

static hk_status_t mtc_loop_barrier(hk_run_t *run, uint64_t reps)
{
    mtc_thread_t *me = run->state;
    hk_ctx_t *ctx = run->ctx;
    uint64_t (*const now_ns)(hk_ctx_t *) = ctx->tp->now_ns;
    const uint64_t began_ns = now_ns(ctx);
    uint64_t timed_ns = 0;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(mtc_meet_all(me));
        const uint64_t start_ns = now_ns(ctx);
        HK_TRY(me->call.run(ctx, &me->call));
        timed_ns += now_ns(ctx) - start_ns;
    }
    run->untimed_ns += now_ns(ctx) - began_ns - timed_ns;
    return HK_OK;
}

static hk_status_t mtc_loop_stream(hk_run_t *run, uint64_t reps)
{
    mtc_thread_t *me = run->state;
    hk_ctx_t *ctx = run->ctx;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(me->call.run(ctx, &me->call));
    }
    return HK_OK;
}

/* IMB's: the threads of a rank meet, timed, and then all ranks do. */
static hk_status_t mtc_loop_threads_and_barrier(hk_run_t *run, uint64_t reps)
{
    mtc_thread_t *me = run->state;
    hk_ctx_t *ctx = run->ctx;
    for (uint64_t i = 0; i < reps; i++) {
        hk_team_meet(me->team);
        HK_TRY(me->call.run(ctx, &me->call));
    }
    return HK_OK;
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

/* Where call.own is in a thread's state, as malloc would align it. */
static size_t mtc_own_at(const hk_run_t *run)
{
    const size_t bytes = sizeof(mtc_thread_t) + ((size_t)run->ctx->size + 1) * sizeof(size_t);
    return (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

static void mtc_complete(const hk_run_t *run, hk_run_t *one, int thread, hk_team_t *team)
{
    mtc_thread_t *me = one->state;
    const size_t size = (size_t)run->ctx->size;
    one->out = run->out + (size_t)thread * mtc_out_stride(run);
    one->in = run->in + (size_t)thread * mtc_in_stride(run);
    me->call = mtc_call(run);
    for (size_t i = 0; i <= size; i++) {
        me->at[i] = i * run->bytes;
    }
    me->call.out_at = hk_gives[me->call.operation] == HK_DATA_BLOCKS ? me->at : NULL;
    me->call.in_at = hk_gets[me->call.operation] == HK_DATA_BLOCKS ? me->at : NULL;
    me->call.out = one->out;
    me->call.in = one->in;
    me->call.given_bytes = mtc_bytes(run, hk_gives);
    me->call.own = (unsigned char *)one->state + mtc_own_at(run);
    me->team = team;
    me->rank_ctx = run->ctx;
    me->is_first = thread == 0;
}

/* Of the calls that were made, and of the threads. */
static hk_status_t mtc_drop(hk_run_t *run, int calls)
{
    hk_threads_t *threads = run->state;
    while (calls > 0) {
        hk_run_t *one = hk_team_run(threads->team, --calls);
        run->ctx->tp->drop_call(one->ctx, &((mtc_thread_t *)one->state)->call);
    }
    return hk_threads_finish(run);
}

static hk_status_t mtc_prepare(hk_run_t *run)
{
    hk_threads_t *threads = run->state;
    const hk_transport_t *tp = run->ctx->tp;
    const hk_call_t call = mtc_call(run);
    const int count = (int)run->option[HK_THREADS];
    HK_TRY(hk_threads_open(run, count, HK_APART_COMM, HK_MATCH_ALL, count, 0, mtc_own_at(run) + tp->call_bytes(&call)));
    hk_status_t status = HK_OK;
    int made = 0;
    while (made < count && status == HK_OK) {
        hk_run_t *one = hk_team_run(threads->team, made);
        mtc_complete(run, one, made, threads->team);
        status = tp->make_call(one->ctx, &((mtc_thread_t *)one->state)->call);
        made += status == HK_OK;
    }
    if (status == HK_OK) {
        const bool is_barrier = mtc_operation(run) == HK_BARRIER;
        const bool streams = run->option[MTC_START] == MTC_START_STREAM;
        status = hk_team_start(threads->team, streams      ? mtc_loop_stream
                                              : is_barrier ? mtc_loop_threads_and_barrier
                                                           : mtc_loop_barrier);
    }
    if (status != HK_OK) {
        mtc_drop(run, made);
    }
    return status;
}

static hk_status_t mtc_finish(hk_run_t *run)
{
    return mtc_drop(run, (int)run->option[HK_THREADS]);
}

static bool mtc_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const size_t threads = (size_t)run->option[HK_THREADS], thread = i % threads;
    const hk_run_t *one = hk_team_run(((const hk_threads_t *)run->state)->team, (int)thread);
    if (!hk_expects(&((const mtc_thread_t *)one->state)->call, i / threads, expected_p)) {
        return false;
    }
    expected_p->in_offset += thread * mtc_in_stride(run);
    expected_p->from_offset += thread * mtc_out_stride(run);
    return true;
}

const hk_pattern_t hk_pattern_mt_collective = {
    .name = "mt_collective",
    .summary = "all threads of all ranks make a collective call at once, each on its own communicator",
    .kind = HK_KIND_THREADS,
    .needs = HK_CAP_SEND | HK_CAP_MULTIPLE,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .option =
        {HK_OPTIONS_THREADS,
         {"operation", MTC_WORDS, 0, 0, 0, "the library's own operation; reductions are sums of int32"},
         {"start", "barrier|stream", MTC_START_BARRIER, 0, 0,
          "after all threads of all ranks have met, untimed (operation=barrier: after those of a rank, timed), or "
          "back to back"}},
    .fits = mtc_fits,
    .grain_bytes = MTC_TYPE_BYTES,
    .grain = mtc_grain,
    .plan = mtc_plan,
    .prepare = mtc_prepare,
    .finish = mtc_finish,
    .meet = hk_threads_meet,
    .repeat = hk_threads_repeat,
    .expected = mtc_expected,
};
