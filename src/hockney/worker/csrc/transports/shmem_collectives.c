/* OpenSHMEM's collective operations over active sets: broadcast, collect, fcollect, all-to-all and reductions.
 *
 * Data count in words of 4 bytes: here always 4, never 8, to avoid a choice in a timed loop. A sync array can be reused
 * once all ranks have left the previous call. Two are enough where a rank that has left a call has received from all
 * others, so that all have left the one before. */
#include <shmem.h>
#include <stdio.h>

#include "../collective.h"
#include "shmem_hooks.h"

enum { CALL_WORD_BYTES = 4, CALL_SYNCS = 2, BCAST_SYNCS = 64 };

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
enum {
    SYNC_WORDS = LARGER(LARGER(LARGER(SHMEM_BCAST_SYNC_SIZE, SHMEM_COLLECT_SYNC_SIZE), SHMEM_REDUCE_SYNC_SIZE),
                        SHMEM_ALLTOALL_SYNC_SIZE)
};

typedef struct shmem_call {
    long *sync;          /* symmetric: SYNC_WORDS for each turn */
    unsigned char *work; /* symmetric: of reductions alone, for each of two turns */
    size_t work_stride, words, turn;
    void (*reduce)(const hk_call_t *call, void *work, long *sync);
} shmem_call_t;

static long *next_sync(shmem_call_t *own, size_t syncs)
{
    return own->sync + own->turn++ % syncs * SYNC_WORDS;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------
 */

static inline void broadcast(const hk_call_t *call, size_t syncs)
{
    shmem_call_t *own = call->own;
    shmem_broadcast32(call->in, call->out, own->words, call->root, call->first, 0, call->size, next_sync(own, syncs));
}

static hk_status_t call_bcast_met(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx;
    broadcast(call, CALL_SYNCS);
    return HK_OK;
}

/* The root may run many broadcasts ahead. Back to back, a barrier after each round through the sync arrays frees them,
 * as the standard requires: every program has to pay for it. */
static hk_status_t call_bcast(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx;
    broadcast(call, BCAST_SYNCS);
    if (((const shmem_call_t *)call->own)->turn % BCAST_SYNCS == 0) {
        shmem_barrier_all();
    }
    return HK_OK;
}

#define CALL_OF_WORDS(name, call_name)                                                                                 \
    static hk_status_t name(hk_ctx_t *ctx, hk_call_t *call)                                                            \
    {                                                                                                                  \
        shmem_call_t *own = call->own;                                                                                 \
        (void)ctx;                                                                                                     \
        call_name(call->in, call->out, own->words, call->first, 0, call->size, next_sync(own, CALL_SYNCS));            \
        return HK_OK;                                                                                                  \
    }
CALL_OF_WORDS(call_allgather, shmem_fcollect32)
CALL_OF_WORDS(call_allgatherv, shmem_collect32)
CALL_OF_WORDS(call_alltoall, shmem_alltoall32)

static hk_status_t call_allreduce(hk_ctx_t *ctx, hk_call_t *call)
{
    shmem_call_t *own = call->own;
    void *work = own->work + own->turn % CALL_SYNCS * own->work_stride;
    (void)ctx;
    own->reduce(call, work, next_sync(own, CALL_SYNCS));
    return HK_OK;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------
 */

/* Of a type of OpenSHMEM and one of its reductions. */
#define REDUCE(type, ctype, op)                                                                                        \
    static void type##_##op(const hk_call_t *call, void *work, long *sync)                                             \
    {                                                                                                                  \
        shmem_##type##_##op##_to_all((ctype *)(void *)call->in, (ctype *)(uintptr_t)call->out,                         \
                                     (int)(call->bytes / sizeof(ctype)), call->first, 0, call->size, work, sync);      \
    }
#define REDUCE_REAL(type, ctype)                                                                                       \
    REDUCE(type, ctype, sum) REDUCE(type, ctype, prod) REDUCE(type, ctype, min) REDUCE(type, ctype, max)
#define REDUCE_WHOLE(type, ctype)                                                                                      \
    REDUCE_REAL(type, ctype) REDUCE(type, ctype, and) REDUCE(type, ctype, or) REDUCE(type, ctype, xor)

REDUCE_WHOLE(short, short)
REDUCE_WHOLE(int, int)
REDUCE_WHOLE(longlong, long long)
REDUCE_REAL(float, float)
REDUCE_REAL(double, double)

typedef void (*reduce_t)(const hk_call_t *, void *, long *);

/* NULL: OpenSHMEM has no such type or reduction. It has signed types only; sums, products and bits are the same. */
static reduce_t reduce_of(hk_type_t type, hk_reduction_t reduction)
{
#define WHOLE_ROW(name) {name##_sum, name##_prod, name##_min, name##_max, name##_and, name##_or, name##_xor}
#define REAL_ROW(name)                                                                                                 \
    {                                                                                                                  \
        name##_sum, name##_prod, name##_min, name##_max                                                                \
    }
    static const reduce_t rows[HK_TYPES][HK_REDUCTIONS] = {
        [HK_UINT16] = WHOLE_ROW(short), [HK_INT16] = WHOLE_ROW(short),     [HK_UINT32] = WHOLE_ROW(int),
        [HK_INT32] = WHOLE_ROW(int),    [HK_UINT64] = WHOLE_ROW(longlong), [HK_INT64] = WHOLE_ROW(longlong),
        [HK_FLOAT32] = REAL_ROW(float), [HK_FLOAT64] = REAL_ROW(double),
    };
#undef WHOLE_ROW
#undef REAL_ROW
    const bool is_unsigned = type == HK_UINT16 || type == HK_UINT32 || type == HK_UINT64;
    return is_unsigned && (reduction == HK_MIN || reduction == HK_MAX) ? NULL : rows[type][reduction];
}

/* ---- what the library has -------------------------------------------------------------------------------------------
 */

static hk_status_t (*const call_hooks[HK_OPERATIONS])(hk_ctx_t *, hk_call_t *) = {
    [HK_BCAST] = call_bcast,       [HK_ALLGATHER] = call_allgather, [HK_ALLGATHERV] = call_allgatherv,
    [HK_ALLTOALL] = call_alltoall, [HK_ALLREDUCE] = call_allreduce,
};

bool hk_shmem_has_call(const hk_transport_t *tp, const hk_call_t *call, char *why, size_t len)
{
    const char *name = hk_operation_names[call->operation];
    (void)tp;
    (void)snprintf(why, len, "%s", name);
    if (call_hooks[call->operation] == NULL) {
        return false;
    }
    if (call->form != HK_BLOCKING) {
        (void)snprintf(why, len, "%s that is not blocking", name);
        return false;
    }
    if (call->in_place) {
        (void)snprintf(why, len, "%s in place", name);
        return false;
    }
    if (call->operation == HK_ALLREDUCE && reduce_of(call->type, call->reduction) == NULL) {
        (void)snprintf(why, len, "op=%s of %s", hk_reduction_names[call->reduction], hk_type_names[call->type]);
        return false;
    }
    /* Not 0 either: a library's call may return at once. */
    (void)snprintf(why, len, "%s of %zu B: it takes multiples of %d B", name, call->bytes, CALL_WORD_BYTES);
    return call->operation == HK_ALLREDUCE || (call->bytes > 0 && call->bytes % CALL_WORD_BYTES == 0);
}

/* ---- make and drop: symmetric memory, so all ranks ask for the same
 * -------------------------------------------------- */

size_t hk_shmem_call_bytes(const hk_call_t *call)
{
    (void)call;
    return sizeof(shmem_call_t);
}

hk_status_t hk_shmem_make_call(hk_ctx_t *ctx, hk_call_t *call)
{
    const size_t syncs = call->operation == HK_BCAST ? BCAST_SYNCS : CALL_SYNCS;
    const size_t half_bytes = call->bytes / 2 + sizeof(long long); /* required by the standard, in elements */
    const size_t least_bytes = SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(long long);
    const bool reduces = hk_is_a(call->operation, HK_REDUCES);
    shmem_call_t *own = call->own;
    own->work_stride = (half_bytes > least_bytes ? half_bytes : least_bytes) / 16 * 16 + 16;
    own->words = call->given_bytes / CALL_WORD_BYTES;
    own->words = call->operation == HK_ALLTOALL ? call->bytes / CALL_WORD_BYTES : own->words;
    own->reduce = reduce_of(call->type, call->reduction);
    own->sync = shmem_malloc(syncs * SYNC_WORDS * sizeof *own->sync);
    own->work = reduces ? shmem_malloc(CALL_SYNCS * own->work_stride) : NULL;
    if (own->sync == NULL || (reduces && own->work == NULL)) {
        hk_shmem_drop_call(ctx, call);
        return hk_fail(HK_ERR_MEMORY, ctx->rank, "%s: no symmetric memory for its collectives", ctx->tp->name);
    }
    for (size_t i = 0; i < syncs * SYNC_WORDS; i++) {
        own->sync[i] = SHMEM_SYNC_VALUE;
    }
    call->run = call->operation == HK_BCAST && call->is_met ? call_bcast_met : call_hooks[call->operation];
    shmem_barrier_all(); /* before any rank's first call */
    return HK_OK;
}

void hk_shmem_drop_call(hk_ctx_t *ctx, hk_call_t *call)
{
    shmem_call_t *own = call->own;
    (void)ctx;
    shmem_free(own->work); /* of NULL nothing */
    shmem_free(own->sync);
}
