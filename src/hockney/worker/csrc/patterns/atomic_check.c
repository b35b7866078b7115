/* cold */
/* What atomic operations must leave behind. The target's elements are those of a rank that does not exist, the number
 * after the last, and each origin's operands those of its own rank. In the repetition that is verified, every origin
 * changes each element once. So the result is exact, and old values that came back are those of some order of the
 * origins: the element before, after the first, … Only sums and products of floating-point numbers by all ranks have a
 * bound of the rounding instead.
 *
 * Old values come to the target block by block, so that its memory does not grow with the ranks. */
#include "atomic_check.h"

#include <stdlib.h>
#include <string.h>

#include "../payload.h"
#include "../sync.h"

enum { COLLECTED_BYTES = 1 << 20 }; /* for the blocks of all origins */

/* ---- sizes --------------------------------------------------------------------------------------------------------
 */

hk_atomic_t hk_atomic_of(const hk_run_t *run)
{
    const hk_atomic_kind_t kind = *(const hk_atomic_kind_t *)run->pattern->own;
    const bool has_op = kind != HK_ATOMIC_COMPARE_AND_SWAP;
    return (hk_atomic_t){.kind = kind,
                         .type = (hk_type_t)run->option[HK_ATOMIC_TYPE],
                         .update = has_op ? (int)run->option[HK_ATOMIC_OP] : (int)HK_UPDATE_REPLACE,
                         .size_bytes = hk_atomic_each_bytes(run)};
}

size_t hk_atomic_each_bytes(const hk_run_t *run)
{
    return run->pattern->unsized ? hk_type_bytes[run->option[HK_ATOMIC_TYPE]] : run->bytes;
}

size_t hk_atomic_places(const hk_run_t *run)
{
    const int64_t window = run->option[HK_ATOMIC_WINDOW];
    return window > 0 ? (size_t)window : 1;
}

size_t hk_atomic_stride(const hk_run_t *run)
{
    const size_t bytes = hk_atomic_places(run) * hk_atomic_each_bytes(run);
    return (bytes + HK_ATOMIC_LINE_BYTES - 1) / HK_ATOMIC_LINE_BYTES * HK_ATOMIC_LINE_BYTES;
}

/* ---- data ---------------------------------------------------------------------------------------------------------
 */

/* Payloads of this reduction's kind: products need numbers near 1; else all bits are random. */
static hk_reduction_t atomic_reduction(const hk_atomic_t *atomic)
{
    return atomic->update <= (int)HK_UPDATE_REDUCTIONS ? (hk_reduction_t)atomic->update : HK_BXOR;
}

/* Swaps that expect another value, and must not happen: all if so asked, else in the repetition that is verified those
 * in every other place of a window. */
static bool atomic_is_vain(const hk_run_t *run, size_t element, uint64_t seed)
{
    return !hk_atomic_succeeds(run) || (seed > 0 && element / hk_atomic_each_bytes(run) % 2 == 1);
}

void hk_atomic_fill(hk_run_t *run, uint64_t seed)
{
    const hk_atomic_t atomic = hk_atomic_of(run);
    const size_t stride = hk_atomic_stride(run), bytes = hk_atomic_places(run) * atomic.size_bytes;
    hk_atomic_state_t *state = run->state;
    const hk_reduction_t reduction = atomic_reduction(&atomic);
    hk_payload_fill_type(run->out, bytes, atomic.type, reduction, run->ctx->rank, seed);
    hk_payload_fill_type(run->out + stride, bytes, atomic.type, reduction, run->ctx->size, seed);
    hk_payload_fill_type(run->in, bytes, atomic.type, reduction, run->ctx->size, seed);
    for (size_t at = 0; at < bytes && atomic.kind == HK_ATOMIC_COMPARE_AND_SWAP; at += atomic.size_bytes) {
        run->out[stride + at] ^= atomic_is_vain(run, at, seed) ? 1 : 0;
    }
    state->count = 0;
    state->seed = seed;
    state->fault = (hk_fault_t){.rank = -1};
}

size_t hk_atomic_block(const hk_run_t *run)
{
    const size_t stride = hk_atomic_stride(run), share = COLLECTED_BYTES / (size_t)run->ctx->size;
    const size_t block =
        share > HK_ATOMIC_LINE_BYTES ? share / HK_ATOMIC_LINE_BYTES * HK_ATOMIC_LINE_BYTES : HK_ATOMIC_LINE_BYTES;
    return hk_atomic_by_all(run) && block < stride ? block : stride;
}

/* ---- one element ------------------------------------------------------------------------------------------------- */

typedef struct atomic_check {
    const hk_run_t *run;
    hk_atomic_state_t *state;
    hk_combine_t combine; /* NULL: another update */
    size_t bytes, element;
    const unsigned char *fetched; /* what origin 0 got of this element; those of others follow, `block` apart */
    size_t block;
    int origins;
    int first; /* the rank of origin 0; the others follow */
    uint64_t before, result;
} atomic_check_t;

/* Elements are numbers of their bits. */
static uint64_t atomic_payload(const atomic_check_t *check, int rank)
{
    uint64_t bits = 0;
    const hk_atomic_t *atomic = &check->state->atomic;
    hk_payload_fill_elements((unsigned char *)&bits, check->bytes, atomic->type, atomic_reduction(atomic), rank,
                             check->element, check->state->seed);
    return bits;
}

static uint64_t atomic_fetched(const atomic_check_t *check, int origin)
{
    uint64_t bits = 0;
    memcpy(&bits, check->fetched + (size_t)origin * check->block, check->bytes);
    return bits;
}

static uint64_t atomic_updated(const atomic_check_t *check, uint64_t value, int origin)
{
    const uint64_t operand = atomic_payload(check, check->first + origin);
    switch (check->state->atomic.update) {
    case HK_UPDATE_REPLACE:
        return operand;
    case HK_UPDATE_NO_OP:
        return value;
    case HK_UPDATE_INC:
        return (value + 1) & (UINT64_MAX >> (64 - 8 * check->bytes));
    default:
        if (check->combine != NULL) { /* `fits` refuses types without one */
            check->combine(&value, &value, &operand, check->bytes);
        }
        return value;
    }
}

/* A fault unless the two are the same. */
static bool atomic_is_as(const atomic_check_t *check, uint64_t found, uint64_t expected, int from)
{
    for (size_t i = 0; i < check->bytes; i++) {
        const unsigned char is = (unsigned char)(found >> 8 * i), must = (unsigned char)(expected >> 8 * i);
        if (is != must) {
            check->state->fault = (hk_fault_t){check->run->ctx->rank, from, check->element + i, must, is};
            return false;
        }
    }
    return true;
}

/* ---- old values came back ---------------------------------------------------------------------------------------- */

static int atomic_in_order(const void *left, const void *right) /* both begin with their number */
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Of all steps, which are in order. */
static hk_atomic_step_t *atomic_first_from(const atomic_check_t *check, uint64_t value)
{
    int low = 0, high = check->origins;
    while (low < high) {
        const int middle = (low + high) / 2;
        const bool is_low = check->state->steps[middle].old < value;
        low = is_low ? middle + 1 : low;
        high = is_low ? high : middle;
    }
    return check->state->steps + low;
}

/* Marks all steps that lead on from the value before; their number. */
static int atomic_reach(const atomic_check_t *check)
{
    const hk_atomic_step_t *end = check->state->steps + check->origins;
    uint64_t *open = check->state->values;
    int reached = 0;
    size_t depth = 1;
    open[0] = check->before;
    while (depth > 0) {
        const uint64_t value = open[--depth];
        for (hk_atomic_step_t *step = atomic_first_from(check, value);
             step < end && step->old == value && !step->is_reached; step++) {
            step->is_reached = true;
            open[depth++] = step->next;
            reached++;
        }
    }
    return reached;
}

/* Each origin is a step from the value that it got to the next one. They can follow each other, from the value before
 * to the result, if all can be reached, and each value is arrived at as often as it is left (L. Euler, Solutio
 * problematis ad geometriam situs pertinentis, 1741). */
static bool atomic_check_steps(const atomic_check_t *check)
{
    const size_t origins = (size_t)check->origins;
    hk_atomic_step_t *steps = check->state->steps;
    uint64_t *arrived = check->state->values, *left = arrived + origins + 1;
    for (int origin = 0; origin < check->origins; origin++) {
        const uint64_t old = atomic_fetched(check, origin);
        steps[origin] = (hk_atomic_step_t){old, atomic_updated(check, old, origin), origin, false};
    }
    qsort(steps, origins, sizeof *steps, atomic_in_order);
    const bool is_connected = atomic_reach(check) == check->origins;
    for (size_t i = 0; i < origins; i++) {
        if (!is_connected && !steps[i].is_reached) {
            return atomic_is_as(check, steps[i].old, check->before, check->first + steps[i].origin);
        }
        arrived[i] = steps[i].next;
        left[i] = steps[i].old;
    }
    arrived[origins] = check->before;
    left[origins] = check->result;
    qsort(arrived, origins + 1, sizeof *arrived, atomic_in_order);
    qsort(left, origins + 1, sizeof *left, atomic_in_order);
    bool is_right = true;
    for (size_t i = 0; is_right && i <= origins; i++) {
        is_right = atomic_is_as(check, left[i], arrived[i], HK_FROM_ALL);
    }
    return is_right;
}

/* One wins: it fetched the old element, the result is its operand, and the others have fetched that. */
static bool atomic_check_swaps(const atomic_check_t *check)
{
    const bool is_vain = atomic_is_vain(check->run, check->element, check->state->seed);
    int winner = -1;
    for (int origin = 0; !is_vain && origin < check->origins; origin++) {
        winner = atomic_fetched(check, origin) == check->before ? origin : winner;
    }
    const uint64_t after = winner < 0 ? check->before : atomic_payload(check, check->first + winner);
    bool is_right =
        is_vain || winner >= 0 || atomic_is_as(check, atomic_fetched(check, 0), check->before, check->first);
    is_right = is_right && atomic_is_as(check, check->result, after, winner < 0 ? HK_FROM_ALL : check->first + winner);
    for (int origin = 0; is_right && origin < check->origins; origin++) {
        is_right = origin == winner || atomic_is_as(check, atomic_fetched(check, origin), after, check->first + origin);
    }
    return is_right;
}

/* ---- nothing came back ------------------------------------------------------------------------------------------- */

/* The result of a single origin is exact, that of all does not depend on their order, or is the operand of one. */
static bool atomic_check_result(const atomic_check_t *check)
{
    const hk_atomic_t *atomic = &check->state->atomic;
    const unsigned char *result = check->run->in + check->element;
    size_t wrong = 0;
    uint64_t value = check->before;
    if (check->combine != NULL && check->origins > 1) {
        const hk_reduced_t reduced = {atomic->type, (hk_reduction_t)atomic->update, 0, check->origins + 1};
        if (hk_payload_check_reduced(result, check->bytes, &reduced, check->element, check->state->seed, &wrong)) {
            return true;
        }
        const size_t at = check->element + wrong;
        check->state->fault = (hk_fault_t){check->run->ctx->rank, HK_FROM_ALL, at,
                                           hk_payload_reduced_byte(at, &reduced, check->state->seed), result[wrong]};
        return false;
    }
    bool is_one = false;
    for (int origin = 0; origin < check->origins; origin++) {
        value = atomic_updated(check, value, origin);
        is_one = is_one || (atomic->update == HK_UPDATE_REPLACE && value == check->result);
    }
    return is_one || atomic_is_as(check, check->result, value, HK_FROM_ALL);
}

/* ---- all elements ------------------------------------------------------------------------------------------------ */

/* Those from `at` on. After a fault nothing is compared. */
static void atomic_check_part(const hk_run_t *run, size_t at, size_t size_bytes)
{
    hk_atomic_state_t *state = run->state;
    const hk_atomic_t *atomic = &state->atomic;
    const bool by_all = hk_atomic_by_all(run), is_reduction = atomic->update <= (int)HK_UPDATE_REDUCTIONS;
    atomic_check_t check = {.run = run,
                            .state = state,
                            .combine = is_reduction ? hk_combine_of(atomic->type, atomic_reduction(atomic)) : NULL,
                            .bytes = hk_type_bytes[atomic->type],
                            .fetched = run->in + 2 * hk_atomic_stride(run),
                            .block = hk_atomic_block(run),
                            .origins = by_all ? run->ctx->size : 1,
                            .first = by_all ? 0 : hk_atomic_origin(run)};
    bool is_right = state->fault.rank < 0;
    for (check.element = at; is_right && check.element < at + size_bytes; check.element += check.bytes) {
        check.before = atomic_payload(&check, run->ctx->size);
        memcpy(&check.result, run->in + check.element, check.bytes);
        is_right = atomic->kind == HK_ATOMIC_COMPARE_AND_SWAP ? atomic_check_swaps(&check)
                   : hk_fetches(atomic->kind)                 ? atomic_check_steps(&check)
                                                              : atomic_check_result(&check);
        check.fetched += check.bytes;
    }
}

hk_status_t hk_atomic_collect(hk_run_t *run)
{
    hk_atomic_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const size_t stride = hk_atomic_stride(run), block = hk_atomic_block(run);
    const size_t bytes = hk_atomic_places(run) * state->atomic.size_bytes;
    const size_t slot = hk_atomic_by_all(run) ? (size_t)ctx->rank : 0;
    HK_TRY(hk_epoch_drop(ctx, &state->epoch)); /* the point's epochs are over */
    for (size_t at = 0; at < bytes && hk_fetches(state->atomic.kind); at += block) {
        const size_t some = bytes - at < block ? bytes - at : block;
        unsigned char *there = run->in + 2 * stride + slot * block;
        HK_TRY(state->acts ? ctx->tp->put(ctx, state->target, there, run->in + stride + at, some) : HK_OK);
        HK_TRY(state->acts ? ctx->tp->quiet(ctx) : HK_OK);
        HK_TRY(hk_sync(ctx));
        if (ctx->rank == state->target) {
            atomic_check_part(run, at, some);
        }
        HK_TRY(hk_sync(ctx));
    }
    return HK_OK;
}

bool hk_atomic_check(const hk_run_t *run, uint64_t seed, hk_fault_t *fault_p)
{
    const hk_atomic_state_t *state = run->state;
    (void)seed; /* that of hk_atomic_fill */
    if (run->ctx->rank == state->target && !hk_fetches(state->atomic.kind)) {
        atomic_check_part(run, 0, hk_atomic_places(run) * state->atomic.size_bytes);
    }
    *fault_p = state->fault;
    return state->fault.rank < 0;
}
