/* OpenSHMEM: put, get and a wait for a word in symmetric memory; shmem_collectives.c has the collective operations.
 *
 * OpenSHMEM has no send and receive. hockney does not emulate them, because a measurement would show hockney's
 * protocol. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shmem_hooks.h"

enum {
    LIBRARY_MAX = 96,
    STATIC_MAX_BYTES = 1 << 20,
    STATIC_BYTES = 5 * STATIC_MAX_BYTES, /* a collective uses out, twice in, and page ends */
    STATIC_PAGE_BYTES = 4096,
};

typedef struct rank_ctx {
    hk_ctx_t base;
    char library[LIBRARY_MAX];
    size_t static_used_bytes; /* used by shmem:static */
} rank_ctx_t;

/* Open MPI uses another name and ignores the standard's. */
#if defined(OSHMEM_MAJOR_VERSION)
#define HEAP_VARIABLE "SHMEM_SYMMETRIC_HEAP_SIZE"
#else
#define HEAP_VARIABLE "SHMEM_SYMMETRIC_SIZE"
#endif

/* Global, because static symmetric memory is what shmem:static measures. */
static _Alignas(STATIC_PAGE_BYTES) unsigned char static_memory[STATIC_BYTES];

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static hk_status_t shmem_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    int major = 0;
    int minor = 0;
    rank_ctx_t *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        return hk_fail(HK_ERR_MEMORY, job->rank, "%s: no memory for a context", tp->name);
    }
    ctx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    shmem_info_get_version(&major, &minor);
#if defined(OSHMEM_MAJOR_VERSION)
    (void)snprintf(ctx->library, sizeof ctx->library, "Open MPI %d.%d.%d, OpenSHMEM %d.%d", OSHMEM_MAJOR_VERSION,
                   OSHMEM_MINOR_VERSION, OSHMEM_RELEASE_VERSION, major, minor);
#else
    char name[SHMEM_MAX_NAME_LEN] = "";
    shmem_info_get_name(name);
    (void)snprintf(ctx->library, sizeof ctx->library, "%.60s, OpenSHMEM %d.%d", name, major, minor);
#endif
    *ctx_p = &ctx->base;
    return HK_OK;
}

static void close_any(hk_ctx_t *ctx)
{
    free(ctx);
}

static const char *library(const hk_ctx_t *ctx)
{
    return ((const rank_ctx_t *)ctx)->library;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *heap_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    const long page = sysconf(_SC_PAGESIZE);
    void *memory = shmem_align(page > 0 ? (size_t)page : STATIC_PAGE_BYTES, size_bytes);
    if (memory == NULL) {
        hk_log(ctx->rank,
               "shmem: no room for a buffer of %zu bytes in the symmetric heap; increase it with " HEAP_VARIABLE,
               size_bytes);
    }
    return memory;
}

static void heap_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)ctx;
    (void)size_bytes;
    shmem_free(memory);
}

static void *static_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    rank_ctx_t *mine = (rank_ctx_t *)ctx;
    const size_t room_bytes = STATIC_BYTES - mine->static_used_bytes;
    if (size_bytes > room_bytes) {
        hk_log(ctx->rank, "shmem:static: no room for a buffer of %zu bytes in the %d MiB of static data", size_bytes,
               STATIC_BYTES >> 20);
        return NULL;
    }
    unsigned char *memory = static_memory + mine->static_used_bytes;
    mine->static_used_bytes += (size_bytes + STATIC_PAGE_BYTES - 1) / STATIC_PAGE_BYTES * STATIC_PAGE_BYTES;
    return memory;
}

static void static_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)size_bytes;
    ((rank_ctx_t *)ctx)->static_used_bytes = (size_t)((unsigned char *)memory - static_memory);
}

/* ---- the timed hooks --------------------------------------------------------------------------------------------- */

static inline bool is_word(const void *one, const void *other, size_t size_bytes)
{
    return size_bytes == 8 && (((uintptr_t)one | (uintptr_t)other) & 7) == 0;
}

/* An aligned word uses a single-word put: a waiting peer must see a whole value. */
static hk_status_t put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    (void)ctx;
    if (is_word(remote, local, size_bytes)) {
        shmem_uint64_p(remote, *(const uint64_t *)local, peer);
    } else {
        shmem_putmem(remote, local, size_bytes, peer);
    }
    return HK_OK;
}

static hk_status_t get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    (void)ctx;
    shmem_getmem(local, remote, size_bytes, peer);
    return HK_OK;
}

static hk_status_t quiet(hk_ctx_t *ctx)
{
    (void)ctx;
    shmem_quiet();
    return HK_OK;
}

static hk_status_t wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    (void)ctx;
    shmem_uint64_wait_until((uint64_t *)(uintptr_t)word, SHMEM_CMP_EQ, value);
    return HK_OK;
}

static hk_status_t barrier(hk_ctx_t *ctx)
{
    (void)ctx;
    shmem_barrier_all();
    return HK_OK;
}

#if HK_SHMEM_HAS_SIGNAL
#define SIGNAL_CAP HK_CAP_SIGNAL
#define SIGNAL_HOOK .put_signal = hk_shmem_put_signal,
#else
#define SIGNAL_CAP HK_CAP_NONE
#define SIGNAL_HOOK
#endif

#define SHARED_CAPS                                                                                                    \
    (HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_ATOMICS | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS |              \
     HK_CAP_STARTUP | SIGNAL_CAP)
#define SHARED                                                                                                         \
    SIGNAL_HOOK.carrier = HK_CARRIER_LIBRARY, .writes_early = true, .open = shmem_open, .close = close_any,            \
    .library = library, .put = put, .get = get, .put_start = hk_shmem_put_start, .get_start = hk_shmem_get_start,      \
    .quiet = quiet, .wait_word = wait_word, .has_atomic = hk_shmem_has_atomic, .make_atomic = hk_shmem_make_atomic,    \
    .barrier = barrier, .has_call = hk_shmem_has_call, .call_bytes = hk_shmem_call_bytes,                              \
    .make_call = hk_shmem_make_call, .drop_call = hk_shmem_drop_call, .now_ns = hk_real_now_ns,                        \
    .compute = hk_real_compute

const hk_transport_t hk_transport_shmem = {
    SHARED,
    .caps = SHARED_CAPS | HK_CAP_WINDOWS,
    .name = "shmem",
    .summary = "put, get and wait on memory from the symmetric heap",
    .below = "shm",
    .below_remote = "tcp",
    .alloc = heap_alloc,
    .free = heap_free,
    .use_window = hk_shmem_use_window,
};

const hk_transport_t hk_transport_shmem_static = {
    SHARED,
    .caps = SHARED_CAPS,
    .name = "shmem:static",
    .summary = "put, get and wait on static data",
    .max_bytes = STATIC_MAX_BYTES,
    .alloc = static_alloc,
    .free = static_free,
};
