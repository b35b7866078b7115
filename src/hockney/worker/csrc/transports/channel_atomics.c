/* Started operations, signals and atomic operations in shared memory. An atomic operation is one of the CPU, or a loop
 * of compare-and-swap where the CPU has none. */
#include "channel_message.h"

#include <stdio.h>
#include <string.h>

#include "../onesided.h"

static inline unsigned char *atomic_at_peer(hk_channel_t *channel, int peer, const void *mine)
{
    return channel->peer[peer].slice + ((const unsigned char *)mine - channel->slice);
}

hk_status_t hk_channel_put_signal(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                                  uint64_t *signal, uint64_t value)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    void *word = atomic_at_peer(channel, peer, signal);
    memcpy(atomic_at_peer(channel, peer, remote), local, size_bytes);
    atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
    return HK_OK;
}

/* All memory is accessible to all ranks, so only its use remains. */
hk_status_t hk_channel_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used)
{
    if (!is_used) {
        return HK_OK;
    }
    HK_TRY(hk_channel_barrier(ctx));
    if (size_bytes > 0) {
        HK_TRY(hk_channel_put(ctx, ctx->rank, memory, local, 1));
    }
    return hk_channel_barrier(ctx);
}

/* ---- atomic operations ------------------------------------------------------------------------------------------- */

// NOLINTBEGIN(bugprone-macro-parentheses): types cannot be in parentheses
/* For each operation two hooks, do_ and get_: `old` is the element before. Vectors and elements share them. */
#define ATOMIC_LOOP(name, type, expression)                                                                            \
    static inline hk_status_t loop_##name(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote,            \
                                          const void *local, void *fetched, const bool fetches)                        \
    {                                                                                                                  \
        void *there = atomic_at_peer(hk_channel_of(ctx), peer, remote);                                                \
        _Atomic type *elements = there;                                                                                \
        const type *operands = local;                                                                                  \
        type *olds = fetched;                                                                                          \
        for (size_t i = 0; i < atomic->size_bytes / sizeof(type); i++) {                                               \
            _Atomic type *element = &elements[i];                                                                      \
            const type operand = operands[i];                                                                          \
            const type old = (type)(expression);                                                                       \
            if (fetches) {                                                                                             \
                olds[i] = old;                                                                                         \
            }                                                                                                          \
            (void)operand, (void)old;                                                                                  \
        }                                                                                                              \
        return HK_OK;                                                                                                  \
    }                                                                                                                  \
    ATOMIC_HOOK(do_##name, loop_##name(ctx, atomic, peer, remote, local, fetched, false))                              \
    ATOMIC_HOOK(get_##name, loop_##name(ctx, atomic, peer, remote, local, fetched, true))
#define ATOMIC_HOOK(name, call)                                                                                        \
    static hk_status_t name(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote, const void *local,       \
                            const void *compare, void *fetched)                                                        \
    {                                                                                                                  \
        (void)compare;                                                                                                 \
        return call;                                                                                                   \
    }

/* What CPUs lack. */
#define ATOMIC_SELECT(name, type, better)                                                                              \
    static inline type name(_Atomic type *element, type operand)                                                       \
    {                                                                                                                  \
        type old = atomic_load_explicit(element, memory_order_relaxed);                                                \
        while (operand better old && !atomic_compare_exchange_weak(element, &old, operand)) {                          \
        }                                                                                                              \
        return old;                                                                                                    \
    }

#define ATOMIC_SWAP(name, type)                                                                                        \
    static hk_status_t name(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote, const void *local,       \
                            const void *compare, void *fetched)                                                        \
    {                                                                                                                  \
        void *there = atomic_at_peer(hk_channel_of(ctx), peer, remote);                                                \
        type old = *(const type *)compare;                                                                             \
        (void)atomic;                                                                                                  \
        atomic_compare_exchange_strong((_Atomic type *)there, &old, *(const type *)local);                             \
        *(type *)fetched = old;                                                                                        \
        return HK_OK;                                                                                                  \
    }

// NOLINTEND(bugprone-macro-parentheses)

#define ATOMIC_TYPE(word, type)                                                                                        \
    ATOMIC_SELECT(word##_least, type, <)                                                                               \
    ATOMIC_SELECT(word##_most, type, >)                                                                                \
    ATOMIC_LOOP(word##_sum, type, atomic_fetch_add(element, operand))                                                  \
    ATOMIC_LOOP(word##_min, type, word##_least(element, operand))                                                      \
    ATOMIC_LOOP(word##_max, type, word##_most(element, operand))                                                       \
    ATOMIC_LOOP(word##_band, type, atomic_fetch_and(element, operand))                                                 \
    ATOMIC_LOOP(word##_bor, type, atomic_fetch_or(element, operand))                                                   \
    ATOMIC_LOOP(word##_bxor, type, atomic_fetch_xor(element, operand))                                                 \
    ATOMIC_LOOP(word##_replace, type, atomic_exchange(element, operand))                                               \
    ATOMIC_LOOP(word##_no_op, type, atomic_load(element))                                                              \
    ATOMIC_LOOP(word##_inc, type, atomic_fetch_add(element, (type)1))                                                  \
    ATOMIC_SWAP(word##_swap, type)

ATOMIC_TYPE(uint32, uint32_t)
ATOMIC_TYPE(int32, int32_t)
ATOMIC_TYPE(uint64, uint64_t)
ATOMIC_TYPE(int64, int64_t)

typedef hk_status_t (*start_t)(hk_ctx_t *, const hk_atomic_t *, int, void *, const void *, const void *, void *);

#define ATOMIC_UPDATES(verb, word)                                                                                     \
    {[HK_SUM] = verb##_##word##_sum,                                                                                   \
     [HK_MIN] = verb##_##word##_min,                                                                                   \
     [HK_MAX] = verb##_##word##_max,                                                                                   \
     [HK_BAND] = verb##_##word##_band,                                                                                 \
     [HK_BOR] = verb##_##word##_bor,                                                                                   \
     [HK_BXOR] = verb##_##word##_bxor,                                                                                 \
     [HK_UPDATE_REPLACE] = verb##_##word##_replace,                                                                    \
     [HK_UPDATE_NO_OP] = verb##_##word##_no_op,                                                                        \
     [HK_UPDATE_INC] = verb##_##word##_inc}
#define ATOMIC_DO(word) ATOMIC_UPDATES(do, word)
#define ATOMIC_GET(word) ATOMIC_UPDATES(get, word)
#define ATOMIC_COMPARE(word) {[HK_UPDATE_REPLACE] = word##_swap}
#define ATOMIC_ROWS(ROW)                                                                                               \
    {[HK_UINT32] = ROW(uint32), [HK_INT32] = ROW(int32), [HK_UINT64] = ROW(uint64), [HK_INT64] = ROW(int64)}

/* NULL: there is none. */
static start_t start_of(const hk_atomic_t *atomic)
{
    static const start_t starts[HK_ATOMICS][HK_TYPES][HK_UPDATES] = {
        ATOMIC_ROWS(ATOMIC_DO), ATOMIC_ROWS(ATOMIC_GET), ATOMIC_ROWS(ATOMIC_GET), ATOMIC_ROWS(ATOMIC_COMPARE)};
    return starts[atomic->kind][atomic->type][atomic->update];
}

bool hk_channel_has_atomic(const hk_transport_t *tp, const hk_atomic_t *atomic, char *why, size_t len)
{
    (void)tp;
    (void)snprintf(why, len, "such %s of %s: it has those of integers of 4 and 8 bytes, but no products",
                   hk_atomic_names[atomic->kind], hk_type_names[atomic->type]);
    return start_of(atomic) != NULL;
}

hk_status_t hk_channel_make_atomic(hk_ctx_t *ctx, hk_atomic_t *atomic)
{
    (void)ctx;
    atomic->start = start_of(atomic);
    return HK_OK;
}
