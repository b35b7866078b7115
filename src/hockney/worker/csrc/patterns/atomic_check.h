/* Atomic operations on a peer's memory: loops (atomic.c); sizes, data, and what must have come of them
 * (atomic_check.c).
 *
 * Buffers, each part a window of elements on lines of its own:
 *   out  operands, then the old values that compare_and_swap expects
 *   in   the elements that are changed, then old values that came back, then a block of those of each origin, for the
 *        check */
#ifndef HK_ATOMIC_CHECK_H
#define HK_ATOMIC_CHECK_H

#include "epoch.h"
#include "roles.h"

/* The options after those of roles. */
enum { HK_ATOMIC_ORIGINS = HK_ROLE_TARGET + 1, HK_ATOMIC_WINDOW, HK_ATOMIC_SYNC, HK_ATOMIC_TYPE, HK_ATOMIC_OP };
enum { HK_ATOMIC_SUCCEED = HK_ATOMIC_OP }; /* of compare_and_swap */
enum { HK_ORIGINS_ONE, HK_ORIGINS_HALF, HK_ORIGINS_ALL };
enum { HK_ATOMIC_LINE_BYTES = 64 };

/* What one origin did to an element, for the check: from the old value to the next. */
typedef struct hk_atomic_step {
    uint64_t old, next;
    int origin;
    bool is_reached;
} hk_atomic_step_t;

typedef struct hk_atomic_state {
    hk_epoch_t epoch;
    hk_atomic_t atomic;
    int target;
    bool acts;      /* this rank has operations */
    uint64_t count; /* repetitions so far: compare_and_swap goes back and forth */
    uint64_t seed;  /* of the data */
    hk_fault_t fault;
    int *origins;            /* of each, in the room behind; used on the target */
    hk_atomic_step_t *steps; /* of each */
    uint64_t *values;        /* twice one more than that */
    _Alignas(16) unsigned char room[];
} hk_atomic_state_t;

/* What an option asks for. */
hk_atomic_t hk_atomic_of(const hk_run_t *run);

/* Of one operation, and of the elements of a window with the room behind them. */
size_t hk_atomic_each_bytes(const hk_run_t *run);
size_t hk_atomic_stride(const hk_run_t *run);
size_t hk_atomic_places(const hk_run_t *run);

/* What all origins bring to the check at once, each. */
size_t hk_atomic_block(const hk_run_t *run);

/* Whether elements are as a swap expects. */
static inline bool hk_atomic_succeeds(const hk_run_t *run)
{
    return *(const hk_atomic_kind_t *)run->pattern->own != HK_ATOMIC_COMPARE_AND_SWAP ||
           run->option[HK_ATOMIC_SUCCEED] == 0;
}

static inline bool hk_atomic_by_all(const hk_run_t *run)
{
    return run->option[HK_ATOMIC_ORIGINS] == HK_ORIGINS_ALL;
}

/* Rank i of the first half accesses rank i of the second. */
static inline bool hk_atomic_by_half(const hk_run_t *run)
{
    return run->option[HK_ATOMIC_ORIGINS] == HK_ORIGINS_HALF;
}

/* The rank whose memory this one changes, if it changes any; and the one that changes this one's, if it is only one. */
static inline int hk_atomic_target(const hk_run_t *run)
{
    return hk_atomic_by_half(run) ? run->ctx->rank % (run->ctx->size / 2) + run->ctx->size / 2 : hk_target(run->option);
}

static inline int hk_atomic_origin(const hk_run_t *run)
{
    return hk_atomic_by_half(run) ? run->ctx->rank % (run->ctx->size / 2) : hk_source(run->option);
}

/* Hooks. */
void hk_atomic_fill(hk_run_t *run, uint64_t seed);
hk_status_t hk_atomic_collect(hk_run_t *run);
bool hk_atomic_check(const hk_run_t *run, uint64_t seed, hk_fault_t *fault_p);

#endif
