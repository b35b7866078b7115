/* cold */
/* What atomic operations must leave behind. The target's elements are those of a rank that does not exist, the number
 * after the last, and each origin's operands those of its own rank. In the repetition that is verified, every origin
 * changes each element once. So the result is exact, and old values that came back are those of some order of the
 * origins: the element before, after the first, … Only sums and products of floating-point numbers by all ranks have a
 * bound of the rounding instead. */
#include "atomic.h"

#include <stdlib.h>
#include <string.h>

#include "../payload.h"

enum { ELEMENT_BYTES_MAX = 8 };

/* Payloads of this reduction's kind: products need numbers near 1. */
static hk_reduction_t atomic_reduction(const hk_atomic_t *atomic)
{
    return atomic->update <= (int)HK_UPDATE_REDUCTIONS ? (hk_reduction_t)atomic->update : HK_SUM;
}

/* In the repetition that is verified, swaps in every other place of a window expect another value, and must not happen.
 */
static bool atomic_is_vain(const hk_run_t *run, size_t element)
{
    return element / hk_atomic_each_bytes(run) % 2 == 1;
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
    for (size_t at = 0; at < bytes && seed > 0 && atomic.kind == HK_ATOMIC_COMPARE_AND_SWAP; at += atomic.size_bytes) {
        run->out[stride + at] ^= atomic_is_vain(run, at) ? 1 : 0;
    }
    state->count = 0;
}

/* Old values of each origin to the target. The point's epochs are over. */
hk_status_t hk_atomic_collect(hk_run_t *run)
{
    hk_atomic_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const size_t stride = hk_atomic_stride(run), slot = hk_atomic_by_all(run) ? (size_t)ctx->rank : 0;
    HK_TRY(hk_epoch_drop(ctx, &state->epoch));
    state->has_epoch = false;
    if (!state->acts || !hk_fetches(state->atomic.kind)) {
        return HK_OK;
    }
    HK_TRY(ctx->tp->put(ctx, state->target, run->in + (2 + slot) * stride, run->in + stride, stride));
    return ctx->tp->quiet(ctx);
}

/* One check. */
typedef struct atomic_check {
    const hk_run_t *run;
    hk_atomic_t atomic;
    hk_combine_t combine; /* NULL: another update */
    size_t bytes, stride, element;
    int origins;
    int first; /* the rank of origin 0; the others follow */
    uint64_t seed;
    unsigned char *before, *operands; /* of all elements; operands of each origin, one after the other */
    bool *is_used;                    /* [origins] */
} atomic_check_t;

static const unsigned char *atomic_operand(const atomic_check_t *check, int origin)
{
    return check->operands + (size_t)origin * check->stride + check->element;
}

static const unsigned char *atomic_fetched(const atomic_check_t *check, int origin)
{
    return check->run->in + (2 + (size_t)origin) * check->stride + check->element;
}

static void atomic_update(const atomic_check_t *check, unsigned char *value, const unsigned char *operand)
{
    uint64_t bits = 0;
    switch (check->atomic.update) {
    case HK_UPDATE_REPLACE:
        memcpy(value, operand, check->bytes);
        break;
    case HK_UPDATE_NO_OP:
        break;
    case HK_UPDATE_INC:
        memcpy(&bits, value, check->bytes);
        bits++;
        memcpy(value, &bits, check->bytes);
        break;
    default:
        if (check->combine != NULL) { /* `fits` refuses types without one */
            check->combine(value, value, operand, check->bytes);
        }
        break;
    }
}

static bool atomic_same(const atomic_check_t *check, const unsigned char *one, const unsigned char *other)
{
    return memcmp(one, other, check->bytes) == 0;
}

/* Of this element: a fault unless the bytes are the same. */
static bool atomic_is_as(const atomic_check_t *check, const unsigned char *found, const unsigned char *expected,
                         int from, hk_fault_t *fault_p)
{
    for (size_t i = 0; i < check->bytes; i++) {
        if (found[i] != expected[i]) {
            *fault_p = (hk_fault_t){.rank = check->run->ctx->rank,
                                    .from = from,
                                    .offset = check->element + i,
                                    .expected = expected[i],
                                    .found = found[i]};
            return false;
        }
    }
    return true;
}

/* Whether the origins that are left can follow each other from this value to the result. What changes nothing goes
 * first: it is right in any order. Two that fetched the same differ only where values repeat. */
static bool atomic_is_chain(atomic_check_t *check, const unsigned char *value, int left)
{
    const unsigned char *result = check->run->in + check->element;
    if (left == 0) {
        return atomic_same(check, value, result);
    }
    for (int changes = 0; changes < 2; changes++) {
        for (int origin = 0; origin < check->origins; origin++) {
            unsigned char next[ELEMENT_BYTES_MAX];
            memcpy(next, value, check->bytes);
            atomic_update(check, next, atomic_operand(check, origin));
            if (check->is_used[origin] || !atomic_same(check, atomic_fetched(check, origin), value) ||
                (int)!atomic_same(check, next, value) != changes) {
                continue;
            }
            check->is_used[origin] = true;
            const bool goes_on = atomic_is_chain(check, next, left - 1);
            check->is_used[origin] = false;
            if (goes_on || changes == 0) {
                return goes_on;
            }
        }
    }
    return false;
}

/* The first step of an order that does not exist, for the report: the longest chain that can be told. */
static void atomic_name_broken(atomic_check_t *check, hk_fault_t *fault_p)
{
    unsigned char value[ELEMENT_BYTES_MAX];
    memcpy(value, check->before + check->element, check->bytes);
    for (int step = 0; step < check->origins; step++) {
        int found = -1, other = -1;
        for (int origin = 0; origin < check->origins; origin++) {
            if (!check->is_used[origin]) {
                other = origin;
                found = atomic_same(check, atomic_fetched(check, origin), value) ? origin : found;
            }
        }
        if (found < 0) {
            (void)atomic_is_as(check, atomic_fetched(check, other), value, check->first + other, fault_p);
            break;
        }
        check->is_used[found] = true;
        atomic_update(check, value, atomic_operand(check, found));
    }
    memset(check->is_used, 0, (size_t)check->origins * sizeof *check->is_used);
    if (fault_p->rank < 0) {
        (void)atomic_is_as(check, check->run->in + check->element, value, HK_FROM_ALL, fault_p);
    }
}

static bool atomic_check_chain(atomic_check_t *check, hk_fault_t *fault_p)
{
    if (atomic_is_chain(check, check->before + check->element, check->origins)) {
        return true;
    }
    atomic_name_broken(check, fault_p);
    return fault_p->rank < 0;
}

/* One wins: it fetched the old element, the result is its operand, and the others have fetched that. */
static bool atomic_check_swaps(atomic_check_t *check, hk_fault_t *fault_p)
{
    const unsigned char *before = check->before + check->element, *result = check->run->in + check->element;
    if (atomic_is_vain(check->run, check->element)) {
        bool is_kept = atomic_is_as(check, result, before, HK_FROM_ALL, fault_p);
        for (int origin = 0; is_kept && origin < check->origins; origin++) {
            is_kept = atomic_is_as(check, atomic_fetched(check, origin), before, check->first + origin, fault_p);
        }
        return is_kept;
    }
    int winner = -1;
    for (int origin = 0; origin < check->origins; origin++) {
        winner = atomic_same(check, atomic_fetched(check, origin), before) ? origin : winner;
    }
    if (winner < 0) {
        return atomic_is_as(check, atomic_fetched(check, 0), before, check->first, fault_p);
    }
    const unsigned char *written = atomic_operand(check, winner);
    bool is_right = atomic_is_as(check, result, written, check->first + winner, fault_p);
    for (int origin = 0; is_right && origin < check->origins; origin++) {
        is_right = origin == winner ||
                   atomic_is_as(check, atomic_fetched(check, origin), written, check->first + origin, fault_p);
    }
    return is_right;
}

/* Nothing came back: the result of a single origin is exact, that of all does not depend on their order, or is the
 * operand of one. */
static bool atomic_check_result(atomic_check_t *check, hk_fault_t *fault_p)
{
    const unsigned char *result = check->run->in + check->element;
    unsigned char value[ELEMENT_BYTES_MAX];
    size_t wrong = 0;
    memcpy(value, check->before + check->element, check->bytes);
    if (check->combine != NULL && check->origins > 1) {
        const hk_reduced_t reduced = {check->atomic.type, (hk_reduction_t)check->atomic.update, 0, check->origins + 1};
        if (hk_payload_check_reduced(result, check->bytes, &reduced, check->element, check->seed, &wrong)) {
            return true;
        }
        *fault_p = (hk_fault_t){.rank = check->run->ctx->rank,
                                .from = HK_FROM_ALL,
                                .offset = check->element + wrong,
                                .expected = hk_payload_reduced_byte(check->element + wrong, &reduced, check->seed),
                                .found = result[wrong]};
        return false;
    }
    bool is_one = false;
    for (int origin = 0; origin < check->origins; origin++) {
        atomic_update(check, value, atomic_operand(check, origin));
        is_one = is_one || atomic_same(check, result, atomic_operand(check, origin));
    }
    return (check->atomic.update == HK_UPDATE_REPLACE && is_one) ||
           atomic_is_as(check, result, value, HK_FROM_ALL, fault_p);
}

static bool atomic_check_all(atomic_check_t *check, hk_fault_t *fault_p)
{
    const size_t all_bytes = hk_atomic_places(check->run) * check->atomic.size_bytes;
    const hk_atomic_kind_t kind = check->atomic.kind;
    const hk_reduction_t reduction = atomic_reduction(&check->atomic);
    const hk_type_t type = check->atomic.type;
    hk_payload_fill_type(check->before, all_bytes, type, reduction, check->run->ctx->size, check->seed);
    for (int origin = 0; origin < check->origins; origin++) {
        hk_payload_fill_type(check->operands + (size_t)origin * check->stride, all_bytes, type, reduction,
                             check->first + origin, check->seed);
    }
    bool is_right = true;
    for (check->element = 0; is_right && check->element < all_bytes; check->element += check->bytes) {
        is_right = kind == HK_ATOMIC_COMPARE_AND_SWAP ? atomic_check_swaps(check, fault_p)
                   : hk_fetches(kind)                 ? atomic_check_chain(check, fault_p)
                                                      : atomic_check_result(check, fault_p);
    }
    return is_right;
}

bool hk_atomic_check(const hk_run_t *run, uint64_t seed, hk_fault_t *fault_p)
{
    const hk_atomic_t atomic = hk_atomic_of(run);
    const bool by_all = hk_atomic_by_all(run), is_reduction = atomic.update <= (int)HK_UPDATE_REDUCTIONS;
    if (run->ctx->rank != hk_atomic_target(run)) {
        return true;
    }
    atomic_check_t check = {.run = run,
                            .atomic = atomic,
                            .combine = is_reduction ? hk_combine_of(atomic.type, (hk_reduction_t)atomic.update) : NULL,
                            .bytes = hk_type_bytes[atomic.type],
                            .stride = hk_atomic_stride(run),
                            .origins = by_all ? run->ctx->size : 1,
                            .first = by_all ? 0 : hk_atomic_origin(run),
                            .seed = seed};
    check.before = malloc(check.stride * ((size_t)check.origins + 1));
    check.is_used = calloc((size_t)check.origins, sizeof *check.is_used);
    bool is_right = false;
    if (check.before == NULL || check.is_used == NULL) {
        hk_log(run->ctx->rank, "no memory to check atomic operations of %d ranks", check.origins);
    } else {
        check.operands = check.before + check.stride;
        is_right = atomic_check_all(&check, fault_p);
    }
    free(check.is_used);
    free(check.before);
    return is_right;
}
