/* One-sided access: how operations complete, and atomic operations on a peer's memory. Shared by patterns and
 * transports.
 *
 * Started puts and gets (HK_CAP_DEFERRED) leave their local buffers in use until they complete: by `quiet`, or at the
 * end of an epoch (HK_CAP_EPOCHS). An epoch is what MPI's synchronisations have in common: one rank accesses others
 * between its begin and its end, and with fences and pscw those that are accessed take part, too. */
#ifndef HK_ONESIDED_H
#define HK_ONESIDED_H

#include "collective.h"
#include "transport.h"

/* As HK_EPOCH_ and the word of the option `sync`, of which "blocking" is the first: no epoch, and nothing is started.
 *
 * QUIET        the transport's `quiet`, for all ranks and all memory
 * FLUSH        complete at the accessed ranks, which take no part; the right of access is kept
 * FLUSH_LOCAL  the same, but only local buffers are free
 * LOCK         the right of access to each rank is taken at the begin and given back at the end
 * LOCK_ALL     the same to all ranks at once
 * FENCE        all ranks meet at the end, which is also the begin of the next
 * FENCES       all ranks meet at the begin and at the end
 * PSCW         accessed ranks post and wait, accessing ones start and complete */
// clang-format off
#define HK_EPOCHS_(X)               \
    X(QUIET,       "quiet")         \
    X(FLUSH,       "flush")         \
    X(FLUSH_LOCAL, "flush_local")   \
    X(LOCK,        "lock")          \
    X(LOCK_ALL,    "lock_all")      \
    X(FENCE,       "fence")         \
    X(FENCES,      "fences")        \
    X(PSCW,        "pscw")

/* As HK_ATOMIC_, the name of the pattern, and whether the old value comes back.
 *
 * ACCUMULATE, GET_ACCUMULATE       element by element of size_bytes
 * FETCH_AND_OP, COMPARE_AND_SWAP   one element */
#define HK_ATOMICS_(X)                                    \
    X(ACCUMULATE,       "accumulate",       false)        \
    X(GET_ACCUMULATE,   "get_accumulate",   true)         \
    X(FETCH_AND_OP,     "fetch_and_op",     true)         \
    X(COMPARE_AND_SWAP, "compare_and_swap", true)
// clang-format on

#define HK_AS_EPOCH(name, word) HK_EPOCH_##name,
#define HK_AS_ATOMIC(name, word, fetches) HK_ATOMIC_##name,
typedef enum hk_epoch_kind { HK_NO_EPOCH, HK_EPOCHS_(HK_AS_EPOCH) HK_EPOCHS } hk_epoch_kind_t;
typedef enum hk_atomic_kind { HK_ATOMICS_(HK_AS_ATOMIC) HK_ATOMICS } hk_atomic_kind_t;
#undef HK_AS_EPOCH
#undef HK_AS_ATOMIC

extern const char *const hk_epoch_names[HK_EPOCHS];
extern const char *const hk_atomic_names[HK_ATOMICS];

/* Whether the accessed ranks, or all, take part in each epoch. */
static inline bool hk_is_active(hk_epoch_kind_t kind)
{
    return kind == HK_EPOCH_FENCE || kind == HK_EPOCH_FENCES || kind == HK_EPOCH_PSCW;
}

/* One rank's side of an epoch, for as many repetitions as follow. */
typedef struct hk_epoch {
    hk_epoch_kind_t kind;
    const int *to, *from; /* ranks that this one accesses, and that access it, each once */
    int to_count, from_count;
    bool to_all;  /* `to` are all other ranks */
    void *memory; /* a place in the memory that is accessed */

    /* Set by make_epoch. begin NULL: nothing to do. Between them only put_start, get_start and atomics may be used. */
    hk_status_t (*begin)(hk_ctx_t *ctx, struct hk_epoch *epoch);
    hk_status_t (*end)(hk_ctx_t *ctx, struct hk_epoch *epoch);
    void *own; /* the transport's; NULL: it is not made */
} hk_epoch_t;

/* What an atomic operation does to an element: a reduction with the operand, or one of these. The words of the option
 * `op`, in this order after those of reductions. */
typedef enum hk_update {
    HK_UPDATE_REDUCTIONS = HK_REDUCTIONS - 1, /* smaller values are hk_reduction_t */
    HK_UPDATE_REPLACE,
    HK_UPDATE_NO_OP, /* only fetch */
    HK_UPDATE_INC,   /* add 1, without an operand */
    HK_UPDATES
} hk_update_t;

/* One kind of atomic operation, prepared for its repetitions. */
typedef struct hk_atomic {
    hk_atomic_kind_t kind;
    hk_type_t type;
    int update; /* hk_reduction_t or hk_update_t; of compare_and_swap none */
    size_t size_bytes;

    /* Set by make_atomic: start the operation on the peer's `remote`, which is aligned to its elements. `local`,
     * `compare` and `fetched` stay in use as with put_start; those that a kind lacks are not used. */
    hk_status_t (*start)(hk_ctx_t *ctx, const struct hk_atomic *atomic, int peer, void *remote, const void *local,
                         const void *compare, void *fetched);
    _Alignas(16) unsigned char own[32]; /* the transport's */
} hk_atomic_t;

static inline bool hk_fetches(hk_atomic_kind_t kind)
{
    return kind != HK_ATOMIC_ACCUMULATE;
}

static inline bool hk_is_single(hk_atomic_kind_t kind)
{
    return kind == HK_ATOMIC_FETCH_AND_OP || kind == HK_ATOMIC_COMPARE_AND_SWAP;
}

#endif
