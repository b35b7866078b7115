/* cold */
/* The data of collective patterns: what ranks give, and what must have arrived. */
#include "collective.h"

#include <string.h>

#include "../payload.h"

/* Where a rank's own block is, in place. */
static size_t own_at(const hk_asked_t *asked, const hk_call_t *call)
{
    size_t at = 0;
    for (int i = 0; i < call->rank && hk_gets_blocks(asked->operation) && !hk_gives_blocks(asked->operation); i++) {
        at += hk_got_bytes(asked, call, i);
    }
    return at;
}

/* All copies are alike. Before prepare there is no state. */
void hk_collective_fill(hk_run_t *run, uint64_t seed)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    hk_call_t call;
    int near[HK_NEAR_MAX];
    const int blocks = hk_shape(run, &asked, &call, near), rank = run->ctx->rank;
    const hk_call_sizes_t sizes = hk_sizes_of(&asked, &call, blocks, algorithm);
    const uint64_t copies = hk_copies_of(run, &asked, &sizes, algorithm == NULL);
    const bool reduces = hk_reduces(asked.operation); /* others only copy */
    const hk_type_t type = reduces ? call.type : HK_UINT8;
    const hk_reduction_t reduction = reduces ? call.reduction : HK_MAX;
    for (uint64_t copy = 0; copy < copies; copy++) {
        unsigned char *out = run->out + copy * hk_strided(sizes.out_bytes);
        unsigned char *in = run->in + copy * hk_strided(sizes.in_bytes);
        hk_payload_fill_type(out, sizes.out_bytes, type, reduction, rank, seed);
        if (asked.operation == HK_REDUCE_LOCAL) { /* what is there, as if from the next rank */
            hk_payload_fill_type(in, sizes.in_bytes, type, reduction, rank + 1, seed);
        } else if (call.in_place) {
            memcpy(in + own_at(&asked, &call), out, sizes.out_bytes);
        }
    }
}

/* ---- what must have arrived ---------------------------------------------------------------------------------------
 */

/* Where a rank keeps the block for this one. Without neighbours, sizes depend on the sum of both ranks only: the blocks
 * before it are as large as some of this rank's own. */
static size_t offset_at(const hk_run_t *run, const hk_collective_state_t *state, int from)
{
    if (!hk_is_near(state->asked.operation)) {
        const hk_call_t *call = &state->call;
        return hk_span(call, call->out_at, from - call->rank + call->size, call->rank);
    }
    hk_ctx_t ctx = *run->ctx;
    hk_run_t of_giver = *run;
    hk_call_t giver;
    int near[HK_NEAR_MAX];
    size_t offset = 0;
    ctx.rank = state->call.first + from;
    of_giver.ctx = &ctx;
    const int blocks = hk_shape(&of_giver, &state->asked, &giver, near);
    for (int i = 0; i < blocks && hk_block_rank(&giver, i) != state->call.rank; i++) {
        offset += hk_given_bytes(&state->asked, &giver, i);
    }
    return offset;
}

/* Block i of those that the rank gets. */
static hk_expected_t got_block(const hk_run_t *run, const hk_collective_state_t *state, int block)
{
    const hk_call_t *call = &state->call;
    const int from = hk_block_rank(call, block);
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
static hk_expected_t only_block(const hk_collective_state_t *state)
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
    const hk_collective_state_t *state = run->state;
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
    hk_collective_state_t *state = run->state;
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
