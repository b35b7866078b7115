/* cold */
/* The buffers of a collective pattern, the neighbours of ranks, and what a repetition moves. */
#include <unistd.h>

#include "collective_core.h"

enum { COLLECTIVE_STAMP_BYTES = 64 }; /* behind all that is received */
enum { COLLECTIVE_LINE_BYTES = 64, COLLECTIVE_WORD_BYTES = 8, COPIES_MAX = 1024 };
enum { CACHE_BYTES = 32 << 20 }; /* of the last cache, where the system does not say, or hosts must not differ */

static size_t whole_lines(size_t size_bytes)
{
    return (size_bytes + COLLECTIVE_LINE_BYTES - 1) / COLLECTIVE_LINE_BYTES * COLLECTIVE_LINE_BYTES;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The neighbours of this rank at the distances that were asked for, or on its group's grid, in each dimension the one
 * before and the one after it; with two ranks in it they are one. What goes to the one before comes from the one after.
 */
static void find_near(const hk_run_t *run, hk_setup_t *setup)
{
    hk_call_t *call = &setup->call;
    hk_ctx_t ctx = *run->ctx;
    hk_run_t in_group = *run;
    int count = (int)setup->asked.distances;
    for (int i = 0; i < count; i++) {
        const int ahead = (run->list[i] % call->size + call->size) % call->size;
        setup->to[i] = (call->rank + ahead) % call->size;
        setup->from[i] = (call->rank + call->size - ahead) % call->size;
    }
    ctx.rank = call->rank;
    ctx.size = call->size;
    in_group.ctx = &ctx;
    const hk_grid_t grid = hk_grid_of(&in_group);
    for (int d = 0; d < HK_GRID_DIMENSIONS_MAX && setup->asked.distances == 0; d++) {
        for (int step = -1; step <= 1; step += 2) {
            if (grid.ranks[d] > 2 || (grid.ranks[d] == 2 && step > 0)) {
                setup->to[count] = hk_grid_around(&grid, d, step);
                setup->from[count++] = hk_grid_around(&grid, d, -step);
            }
        }
    }
    call->near = (hk_near_t){.count = count, .to = setup->to, .from = setup->from};
}

static bool is_exchange(hk_operation_t operation)
{
    return hk_gives[operation] == HK_DATA_BLOCKS && hk_gets[operation] == HK_DATA_BLOCKS;
}

/* Whether the first blocks of a vector may have one element more than the others. */
static bool cuts_unevenly(const hk_asked_t *asked)
{
    return asked->vector_bytes > 0 && hk_is_a(asked->operation, HK_UNEVEN);
}

/* Uneven blocks are whole words of 4 B, which OpenSHMEM's count, and elements; they have the sum of even ones, but for
 * rounding. linear: block i is i + 1 times as large as block 0. one-big: the last block has all. */
static size_t block_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    const size_t element = hk_type_bytes[call->type], grain = element > 4 ? element : 4;
    const size_t blocks = (size_t)hk_blocks(call), place = (size_t)block % blocks;
    const size_t extra = place < asked->vector_bytes / element % blocks;
    switch (asked->counts) {
    case HK_COUNTS_LINEAR:
        return call->bytes / grain * 2 * (place + 1) / (blocks + 1) * grain;
    case HK_COUNTS_ONE_BIG:
        return place == blocks - 1 ? call->bytes * blocks : 0;
    default:
        return cuts_unevenly(asked) ? (asked->vector_bytes / element / blocks + extra) * element : call->bytes;
    }
}

/* In an exchange each rank has blocks of all sizes: a rank's i-th is the next one's (i - 1)-th. */
size_t hk_given_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    const bool is_shifted = is_exchange(call->operation) && !hk_is_a(call->operation, HK_NEAR);
    const int mine = hk_gives[call->operation] == HK_DATA_BLOCKS ? block : call->rank;
    return block_bytes(asked, call, is_shifted ? call->rank + block : mine);
}

size_t hk_got_bytes(const hk_asked_t *asked, const hk_call_t *call, int block)
{
    const bool is_near = hk_is_a(call->operation, HK_NEAR);
    if (is_exchange(call->operation)) {
        return hk_given_bytes(asked, call, block);
    }
    return block_bytes(asked, call,
                       hk_gets[call->operation] != HK_DATA_BLOCKS ? call->rank
                       : is_near                                  ? call->near.from[block]
                                                                  : block);
}

static size_t sum_of(const hk_setup_t *setup, hk_data_t data,
                     size_t (*of_block)(const hk_asked_t *, const hk_call_t *, int))
{
    size_t sum = 0;
    if (data == HK_DATA_BLOCKS && setup->asked.counts == HK_COUNTS_EQUAL) {
        return cuts_unevenly(&setup->asked) ? setup->asked.vector_bytes : (size_t)setup->blocks * setup->call.bytes;
    }
    for (int i = 0; i < setup->blocks && data == HK_DATA_BLOCKS; i++) {
        sum += of_block(&setup->asked, &setup->call, i);
    }
    return data == HK_DATA_VECTOR  ? setup->call.bytes
           : data == HK_DATA_BLOCK ? of_block(&setup->asked, &setup->call, 0)
                                   : sum;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static bool is_composed(const hk_setup_t *setup)
{
    return setup->algorithm != NULL && setup->algorithm->parts[0] != HK_NO_OPERATION;
}

/* What a rank gives or gets if blocks are equal. */
static size_t even_bytes(const hk_setup_t *setup, hk_data_t data)
{
    const size_t blocks = data == HK_DATA_BLOCKS ? (size_t)setup->blocks : 1;
    return data == HK_DATA_NOTHING ? 0 : whole_lines(blocks * setup->call.bytes);
}

/* How many pairs of buffers repetitions use in turn. Fresh data: pairs that are together twice as large as the last
 * cache, but at most COPIES_MAX, so that short messages do not fill that much memory. The number is the same on all
 * ranks, whatever their blocks and hosts, if the transport's calls use peers' memory at the same places, or if a
 * warm-up uses all pairs. Else 1, but 2 if a call may write into `in` before its rank has entered it: every rank has
 * left the previous call before any rank enters the next but one. */
static uint64_t copies_of(const hk_run_t *run, const hk_setup_t *setup)
{
    const hk_transport_t *tp = run->ctx->tp;
    const hk_operation_t operation = setup->asked.operation;
    const bool is_shared = tp->writes_early || (tp->caps & HK_CAP_KEEPS) != 0;
    const bool writes_early = tp->writes_early && (setup->algorithm == NULL || is_composed(setup));
    long cache_bytes = CACHE_BYTES;
    if (setup->asked.fresh == 0) {
        return writes_early ? 2 : 1;
    }
    if ((tp->caps & HK_CAP_VIRTUAL) != 0) {
        return 2; /* a model has no caches */
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    const long last_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    cache_bytes = is_shared || last_bytes <= 0 ? CACHE_BYTES : last_bytes;
#endif
    const size_t each_bytes = even_bytes(setup, hk_gives[operation]) + even_bytes(setup, hk_gets[operation]);
    const size_t needed = 2 * (size_t)cache_bytes / (each_bytes > 0 ? each_bytes : 1);
    return needed < 2 ? 2 : needed > COPIES_MAX ? COPIES_MAX : needed;
}

static size_t own_bytes_of(const hk_ctx_t *ctx, const hk_setup_t *setup)
{
    const hk_call_t *call = &setup->call;
    const bool is_own = setup->algorithm == NULL && !hk_is_plain_barrier(ctx, call);
    return is_own               ? ctx->tp->call_bytes(call)
           : is_composed(setup) ? hk_parts_bytes(ctx->tp, call, setup->algorithm, setup->copies)
                                : 0;
}

void hk_set_up(const hk_run_t *run, hk_setup_t *setup_p)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_operation_t operation = asked.operation;
    *setup_p = (hk_setup_t){.asked = asked, .algorithm = hk_chosen(run, &asked), .call = hk_call_of(run, &asked)};
    if (hk_is_a(operation, HK_NEAR)) {
        find_near(run, setup_p);
    }
    setup_p->blocks = hk_blocks(&setup_p->call);
    setup_p->out_bytes = sum_of(setup_p, hk_gives[operation], hk_given_bytes);
    setup_p->in_bytes = sum_of(setup_p, hk_gets[operation], hk_got_bytes);
    if (asked.in_place != 0 && setup_p->in_bytes < setup_p->out_bytes && hk_gives[operation] == HK_DATA_BLOCKS) {
        setup_p->in_bytes = setup_p->out_bytes; /* of a reduction: what the rank gives */
    } else if (operation == HK_BARRIER && is_composed(setup_p)) {
        setup_p->in_bytes = 2 * COLLECTIVE_WORD_BYTES; /* an allreduce needs data */
    }
    const size_t most = setup_p->out_bytes > setup_p->in_bytes ? setup_p->out_bytes : setup_p->in_bytes;
    const hk_room_t room = setup_p->algorithm != NULL ? setup_p->algorithm->room : HK_ROOM_NONE;
    const size_t work_bytes = whole_lines((size_t)room * most);
    const size_t in_lines = whole_lines(setup_p->in_bytes);
    setup_p->out_stride = whole_lines(setup_p->out_bytes);
    if (run->ctx->tp->writes_early && asked.counts != HK_COUNTS_EQUAL && hk_gives[operation] == HK_DATA_BLOCK) {
        /* Copies of `out`, too, are in the same places on all ranks: the last one's block is the largest. */
        setup_p->out_stride = whole_lines(block_bytes(&asked, &setup_p->call, setup_p->blocks - 1));
    }
    setup_p->in_stride = in_lines + (is_composed(setup_p) ? work_bytes : 0); /* the library may write there, too */
    setup_p->copies = copies_of(run, setup_p);
    setup_p->work_at = is_composed(setup_p) ? in_lines : setup_p->copies * in_lines;
    setup_p->in_room = setup_p->copies * setup_p->in_stride + (is_composed(setup_p) ? 0 : work_bytes);
    setup_p->own_bytes = own_bytes_of(run->ctx, setup_p);
}

size_t hk_state_bytes(const hk_setup_t *setup)
{
    const hk_operation_t operation = setup->asked.operation;
    const bool has_blocks = hk_gives[operation] == HK_DATA_BLOCKS || hk_gets[operation] == HK_DATA_BLOCKS;
    const size_t offsets = has_blocks ? 2 * ((size_t)setup->blocks + 1) : 0;
    return whole_lines(sizeof(hk_collective_state_t) + offsets * sizeof(size_t));
}

hk_plan_t hk_collective_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN, HK_TIMED_ROOT};
    hk_setup_t setup;
    hk_set_up(run, &setup);
    const hk_operation_t operation = setup.asked.operation;
    const hk_algorithm_t *algorithm = setup.algorithm;
    const uint64_t size = (uint64_t)setup.call.size; /* uneven blocks count as even ones */
    const uint64_t in_group =
        hk_is_a(operation, HK_NEAR) ? size * (uint64_t)setup.blocks : hk_least_messages(operation, size);
    const uint64_t messages = (uint64_t)setup.asked.groups * in_group;
    return (hk_plan_t){.out_bytes = setup.copies * setup.out_stride,
                       .in_bytes = setup.in_room + COLLECTIVE_STAMP_BYTES,
                       .reqs_count = algorithm == NULL                ? 0
                                     : algorithm->reqs == HK_REQS_ALL ? 2 * (size_t)setup.blocks
                                                                      : 2,
                       .state_bytes = hk_state_bytes(&setup) + setup.own_bytes,
                       .bytes_per_rep = messages * run->bytes / (setup.asked.vector_bytes > 0 ? size : 1),
                       .messages_per_rep = messages,
                       .algorithm = algorithm == NULL ? "native" : algorithm->name,
                       .timed = timed[setup.asked.time],
                       .root = (int)setup.asked.root,
                       .period = setup.copies};
}
