/* OpenSHMEM's started puts and gets, puts with a signal, and atomic operations on one element. */
#include "shmem_hooks.h"

#include <shmem.h>
#include <stdio.h>

#include "../onesided.h"

hk_status_t hk_shmem_put_start(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    (void)ctx;
    shmem_putmem_nbi(remote, local, size_bytes, peer);
    return HK_OK;
}

hk_status_t hk_shmem_get_start(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    (void)ctx;
    shmem_getmem_nbi(local, remote, size_bytes, peer);
    return HK_OK;
}

#if HK_SHMEM_HAS_SIGNAL
hk_status_t hk_shmem_put_signal(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                                uint64_t *signal, uint64_t value)
{
    (void)ctx;
    shmem_putmem_signal_nbi(remote, local, size_bytes, signal, value, SHMEM_SIGNAL_SET, peer);
    return HK_OK;
}
#endif

/* ---- atomic operations ------------------------------------------------------------------------------------------- */

// NOLINTBEGIN(bugprone-macro-parentheses): types cannot be in parentheses
/* `there` is the element, `operand` the number that it is combined with. */
#define SHMEM_ATOMIC(name, type, statement)                                                                            \
    static hk_status_t name(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote, const void *local,       \
                            const void *compare, void *fetched)                                                        \
    {                                                                                                                  \
        type *there = remote;                                                                                          \
        const type operand = *(const type *)local;                                                                     \
        (void)ctx, (void)atomic, (void)operand, (void)compare, (void)fetched;                                          \
        statement;                                                                                                     \
        return HK_OK;                                                                                                  \
    }
#define SHMEM_FETCH(name, type, call) SHMEM_ATOMIC(name, type, *(type *)fetched = call)
// NOLINTEND(bugprone-macro-parentheses)

#define SHMEM_TYPE(word, type)                                                                                         \
    SHMEM_ATOMIC(shmem_##word##_do_sum, type, shmem_##word##_atomic_add(there, operand, peer))                         \
    SHMEM_ATOMIC(shmem_##word##_do_inc, type, shmem_##word##_atomic_inc(there, peer))                                  \
    SHMEM_ATOMIC(shmem_##word##_do_replace, type, shmem_##word##_atomic_set(there, operand, peer))                     \
    SHMEM_ATOMIC(shmem_##word##_do_band, type, shmem_##word##_atomic_and(there, operand, peer))                        \
    SHMEM_ATOMIC(shmem_##word##_do_bor, type, shmem_##word##_atomic_or(there, operand, peer))                          \
    SHMEM_ATOMIC(shmem_##word##_do_bxor, type, shmem_##word##_atomic_xor(there, operand, peer))                        \
    SHMEM_FETCH(shmem_##word##_get_sum, type, shmem_##word##_atomic_fetch_add(there, operand, peer))                   \
    SHMEM_FETCH(shmem_##word##_get_inc, type, shmem_##word##_atomic_fetch_inc(there, peer))                            \
    SHMEM_FETCH(shmem_##word##_get_replace, type, shmem_##word##_atomic_swap(there, operand, peer))                    \
    SHMEM_FETCH(shmem_##word##_get_no_op, type, shmem_##word##_atomic_fetch(there, peer))                              \
    SHMEM_FETCH(shmem_##word##_get_band, type, shmem_##word##_atomic_fetch_and(there, operand, peer))                  \
    SHMEM_FETCH(shmem_##word##_get_bor, type, shmem_##word##_atomic_fetch_or(there, operand, peer))                    \
    SHMEM_FETCH(shmem_##word##_get_bxor, type, shmem_##word##_atomic_fetch_xor(there, operand, peer))                  \
    SHMEM_FETCH(shmem_##word##_do_swap, type,                                                                          \
                shmem_##word##_atomic_compare_swap(there, *(const type *)compare, operand, peer))

/* Open MPI lacks those of uint32_t and its kin; types of these sizes have the others' names on all systems. */
_Static_assert(sizeof(int) == 4 && sizeof(long long) == 8, "shmem: other sizes of integers");
SHMEM_TYPE(uint, unsigned)
SHMEM_TYPE(int, int)
SHMEM_TYPE(ulonglong, unsigned long long)
SHMEM_TYPE(longlong, long long)

typedef hk_status_t (*shmem_start_t)(hk_ctx_t *, const hk_atomic_t *, int, void *, const void *, const void *, void *);

#define SHMEM_UPDATES(verb, word)                                                                                      \
    [HK_SUM] = shmem_##word##_##verb##_sum, [HK_BAND] = shmem_##word##_##verb##_band,                                  \
    [HK_BOR] = shmem_##word##_##verb##_bor, [HK_BXOR] = shmem_##word##_##verb##_bxor,                                  \
    [HK_UPDATE_REPLACE] = shmem_##word##_##verb##_replace, [HK_UPDATE_INC] = shmem_##word##_##verb##_inc
#define SHMEM_DO(word) {SHMEM_UPDATES(do, word)}
#define SHMEM_GET(word) {SHMEM_UPDATES(get, word), [HK_UPDATE_NO_OP] = shmem_##word##_get_no_op}
#define SHMEM_SWAP(word) {[HK_UPDATE_REPLACE] = shmem_##word##_do_swap}
#define SHMEM_ROWS(ROW)                                                                                                \
    {[HK_UINT32] = ROW(uint), [HK_INT32] = ROW(int), [HK_UINT64] = ROW(ulonglong), [HK_INT64] = ROW(longlong)}

/* NULL: there is none. */
static shmem_start_t shmem_start_of(const hk_atomic_t *atomic)
{
    static const shmem_start_t starts[HK_ATOMICS][HK_TYPES][HK_UPDATES] = {
        [HK_ATOMIC_ACCUMULATE] = SHMEM_ROWS(SHMEM_DO),
        [HK_ATOMIC_FETCH_AND_OP] = SHMEM_ROWS(SHMEM_GET),
        [HK_ATOMIC_COMPARE_AND_SWAP] = SHMEM_ROWS(SHMEM_SWAP),
    };
    return starts[atomic->kind][atomic->type][atomic->update];
}

/* https://github.com/open-mpi/ompi/issues/11257: the library writes 8 bytes where 4 are, and the rank dies, in
 * osu_oshm_atomics, too; 4.1.5 is right. */
static bool shmem_swaps_crash(const hk_atomic_t *atomic)
{
#if defined(OSHMEM_MAJOR_VERSION) &&                                                                                   \
    OSHMEM_MAJOR_VERSION * 10000 + OSHMEM_MINOR_VERSION * 100 + OSHMEM_RELEASE_VERSION < 40105
    return atomic->kind == HK_ATOMIC_COMPARE_AND_SWAP && hk_type_bytes[atomic->type] == 4;
#else
    (void)atomic;
    return false;
#endif
}

bool hk_shmem_has_atomic(const hk_transport_t *tp, const hk_atomic_t *atomic, char *why, size_t len)
{
    (void)tp;
    if (atomic->kind == HK_ATOMIC_GET_ACCUMULATE || atomic->size_bytes != hk_type_bytes[atomic->type]) {
        (void)snprintf(why, len,
                       "atomic operations on vectors: use fetch_and_op, or accumulate with the size of dtype");
        return false;
    }
    if (shmem_swaps_crash(atomic)) {
        (void)snprintf(why, len,
                       "safe compare_and_swap of 4 bytes before Open MPI 4.1.5 (its issue 11257); int64 works");
        return false;
    }
    (void)snprintf(why, len, "such %s of %s: it has no min, max and prod, and integers of 4 and 8 bytes only",
                   hk_atomic_names[atomic->kind], hk_type_names[atomic->type]);
    return shmem_start_of(atomic) != NULL;
}

hk_status_t hk_shmem_make_atomic(hk_ctx_t *ctx, hk_atomic_t *atomic)
{
    (void)ctx;
    atomic->start = shmem_start_of(atomic);
    return HK_OK;
}

/* ---- symmetric memory that comes and goes ------------------------------------------------------------------------ */

hk_status_t hk_shmem_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used)
{
    unsigned char *there = shmem_malloc(size_bytes > 0 ? size_bytes : 1);
    if (there == NULL) {
        return hk_fail(HK_ERR_MEMORY, ctx->rank, "shmem_malloc has no %zu bytes in the symmetric heap", size_bytes);
    }
    if (is_used) {
        shmem_barrier_all();
        shmem_putmem(there, local, size_bytes > 0 ? 1 : 0, ctx->rank);
        shmem_barrier_all();
        *(unsigned char *)memory = size_bytes > 0 ? *there : 0;
    }
    shmem_free(there);
    return HK_OK;
}
