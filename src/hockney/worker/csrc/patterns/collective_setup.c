/* cold */
/* The sizes of the buffers of a collective pattern, what a repetition moves, and the neighbours of ranks. */
#include "collective.h"

#include <unistd.h>

enum { COLLECTIVE_STAMP_BYTES = 64 }; /* behind all that is received */
enum {
    COLLECTIVE_LINE_BYTES = 64,
    COPIES_MAX = 1024,
    CACHE_BYTES = 32 << 20
}; /* CACHE_BYTES: where the system does not say */

/* The neighbours of a rank on the grid, in each dimension the one before and the one after it; with two ranks in it
 * they are one. */
static int find_near(const hk_run_t *run, int rank, int size, int near[HK_NEAR_MAX])
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
int hk_shape(const hk_run_t *run, const hk_asked_t *asked, hk_call_t *call_p, int near[HK_NEAR_MAX])
{
    *call_p = hk_call_of(run, asked);
    if (hk_is_near(asked->operation)) {
        call_p->near = (hk_near_t){.count = find_near(run, call_p->rank, call_p->size, near), .ranks = near};
    }
    return hk_blocks(call_p);
}

int hk_block_rank(const hk_call_t *call, int block)
{
    return hk_is_near(call->operation) ? call->near.ranks[block] : block;
}

size_t hk_given_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    return hk_block_bytes(asked, call, call->rank, hk_block_rank(call, block));
}

size_t hk_got_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    return hk_block_bytes(asked, call, hk_block_rank(call, block), call->rank);
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

hk_call_sizes_t hk_sizes_of(const hk_asked_t *asked, const hk_call_t *call, int blocks, const hk_algorithm_t *algorithm)
{
    const hk_operation_t operation = asked->operation;
    const bool is_vector = hk_reduces(operation) || operation == HK_BCAST;
    hk_call_sizes_t sizes = {0};
    if (operation == HK_BARRIER) {
        return sizes;
    }
    sizes.out_bytes = hk_gives_blocks(operation) ? all_bytes(asked, call, blocks, hk_given_bytes)
                      : is_vector                ? call->bytes
                                                 : hk_block_bytes(asked, call, call->rank, call->rank);
    sizes.in_bytes = hk_gets_blocks(operation)    ? all_bytes(asked, call, blocks, hk_got_bytes)
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

size_t hk_strided(size_t size_bytes)
{
    return (size_bytes + COLLECTIVE_LINE_BYTES - 1) / COLLECTIVE_LINE_BYTES * COLLECTIVE_LINE_BYTES;
}

/* Fresh data: as many copies as are twice as large as the last cache. OpenSHMEM may write into `in` before its rank has
 * entered the call, so `in` must not be in use by the previous call. Two are enough where every rank has left the
 * previous call before any enters the next but one. */
uint64_t hk_copies_of(const hk_run_t *run, const hk_asked_t *asked, const hk_call_sizes_t *sizes, bool is_own)
{
    long cache_bytes = 0;
    if (asked->fresh == 0) {
        return is_own && run->ctx->tp->writes_early ? 2 : 1;
    }
    if ((run->ctx->tp->caps & HK_CAP_VIRTUAL) != 0) {
        return 2; /* a model has no caches */
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    const size_t each = hk_strided(sizes->out_bytes) + hk_strided(sizes->in_bytes);
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

size_t hk_state_bytes(const hk_asked_t *asked, int blocks)
{
    const bool has_blocks = hk_gives_blocks(asked->operation) || hk_gets_blocks(asked->operation);
    const size_t offsets = has_blocks ? 2 * ((size_t)blocks + 1) : 0; /* of out and of in */
    return hk_strided(sizeof(hk_collective_state_t) + offsets * sizeof(size_t));
}

hk_plan_t hk_collective_plan(const hk_run_t *run)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    hk_call_t call;
    int near[HK_NEAR_MAX];
    const int blocks = hk_shape(run, &asked, &call, near);
    const hk_call_sizes_t sizes = hk_sizes_of(&asked, &call, blocks, algorithm);
    const uint64_t copies = hk_copies_of(run, &asked, &sizes, algorithm == NULL);
    const uint64_t size = (uint64_t)call.size; /* uneven blocks count as even ones; all ranks have as many neighbours */
    const uint64_t in_group =
        hk_is_near(asked.operation) ? size * (uint64_t)blocks : messages_of(asked.operation, size);
    const uint64_t messages = (uint64_t)asked.groups * in_group;
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN, HK_TIMED_ROOT};
    return (hk_plan_t){.out_bytes = copies * hk_strided(sizes.out_bytes),
                       .in_bytes =
                           copies * hk_strided(sizes.in_bytes) + hk_strided(sizes.room_bytes) + COLLECTIVE_STAMP_BYTES,
                       .reqs_count = algorithm == NULL                ? 0
                                     : algorithm->reqs == HK_REQS_ALL ? 2 * (size_t)blocks
                                                                      : 2,
                       .state_bytes = hk_state_bytes(&asked, blocks) + hk_own_bytes(run->ctx, &call, algorithm),
                       .bytes_per_rep = messages * run->bytes,
                       .messages_per_rep = messages,
                       .divisor = 1,
                       .algorithm = algorithm == NULL ? "native" : algorithm->name,
                       .timed = timed[asked.time],
                       .root = (int)asked.root,
                       .period = copies};
}
