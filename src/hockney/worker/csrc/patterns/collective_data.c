/* cold */
/* The data of collective patterns: what ranks give, and what must have arrived. */
#include <string.h>

#include "../payload.h"
#include "collective_core.h"
#include "delay.h"

/* Where a rank's own block is, in place. */
static size_t own_at(const hk_setup_t *setup)
{
    const hk_operation_t operation = setup->asked.operation;
    size_t at = 0;
    for (int i = 0;
         i < setup->call.rank && hk_gets[operation] == HK_DATA_BLOCKS && hk_gives[operation] == HK_DATA_BLOCK; i++) {
        at += hk_got_bytes(&setup->asked, &setup->call, i);
    }
    return at;
}

/* All copies are alike. Before prepare there is no state. */
void hk_collective_fill(hk_run_t *run, uint64_t seed)
{
    hk_setup_t setup;
    hk_set_up(run, &setup);
    const hk_call_t *call = &setup.call;
    const int rank = run->ctx->rank;
    const bool reduces = hk_is_a(call->operation, HK_REDUCES); /* others only copy */
    const hk_type_t type = reduces ? call->type : HK_UINT8;
    const hk_reduction_t reduction = reduces ? call->reduction : HK_MAX;
    for (uint64_t copy = 0; copy < setup.copies; copy++) {
        unsigned char *out = run->out + copy * setup.out_stride;
        unsigned char *in = run->in + copy * setup.in_stride;
        hk_payload_fill_type(out, setup.out_bytes, type, reduction, rank, seed);
        if (call->operation == HK_REDUCE_LOCAL) { /* what is there, as if from the next rank */
            hk_payload_fill_type(in, setup.in_bytes, type, reduction, rank + 1, seed);
        } else if (call->in_place) {
            memcpy(in + own_at(&setup), out, setup.out_bytes);
        }
    }
}

/* ---- what must have arrived ---------------------------------------------------------------------------------------
 */

/* Block i of those that the rank gets. A neighbour gives it as its i-th, too, and all ranks give blocks of the same
 * sizes. Of others, sizes depend on the sum of both ranks only: the blocks before it are as large as some of this
 * rank's own. */
static hk_expected_t got_block(const hk_call_t *call, int block)
{
    const bool is_near = hk_is_a(call->operation, HK_NEAR);
    const size_t *at = hk_gives[call->operation] == HK_DATA_BLOCKS ? call->out_at : NULL;
    return (hk_expected_t){.in_offset = call->in_at[block],
                           .size_bytes = hk_in_bytes(call, block),
                           .from_rank = hk_peer(call, is_near ? call->near.from[block] : block),
                           .from_offset = at == NULL ? 0
                                          : is_near  ? at[block]
                                                     : hk_span(call, at, block - call->rank + call->size, call->rank)};
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
static hk_expected_t only_block(const hk_call_t *call)
{
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

bool hk_expects(const hk_call_t *call, size_t i, hk_expected_t *expected_p)
{
    const bool is_root = call->rank == call->root;
    switch (hk_gets[call->operation]) {
    case HK_DATA_NOTHING:
        return false;
    case HK_DATA_BLOCKS:
        if (i >= (size_t)hk_blocks(call) || (hk_is_a(call->operation, HK_ROOTED) && !is_root)) {
            return false;
        }
        *expected_p = got_block(call, (int)i);
        return true;
    default:
        *expected_p = only_block(call);
        return i == 0;
    }
}

bool hk_collective_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const hk_collective_state_t *state = run->state;
    const hk_setup_t *setup = &state->setup;
    if (!hk_expects(&setup->call, i, expected_p)) {
        return false;
    }
    if (setup->algorithm != NULL && setup->algorithm->run == hk_alltoall_flat && (int)i == setup->call.rank) {
        expected_p->size_bytes = 0; /* it leaves the own block out */
    }
    expected_p->in_offset += (state->count - 1) % setup->copies * setup->in_stride;
    return true;
}

/* The core subtracts what the counters are before the samples, which is 0 for the clocks' error, too: it is no sum. */
bool hk_collective_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    hk_collective_state_t *state = run->state;
    const hk_delay_t delay = {.count = state->overlaps, .taken_ns = state->overlaps * (double)state->pure_ns};
    if (state->setup.asked.overlap != 0 && hk_delay_counter(&delay, i, counter_p)) {
        return true;
    }
    i -= state->setup.asked.overlap != 0 ? 2 : 0;
    if (state->setup.asked.start != HK_START_WINDOW || i > 1) {
        return false;
    }
    *counter_p = (hk_counter_t){"late_starts", state->late_starts};
    if (i == 1) {
        *counter_p = (hk_counter_t){"clock_error_ns", state->is_counting ? state->clock_error_ns : 0};
        state->is_counting = true;
    }
    return true;
}
