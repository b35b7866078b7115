/* OpenSHMEM: put, get and a wait for a word in symmetric memory, and the library's barrier, broadcast, all-to-all and
 * allreduce.
 *
 * OpenSHMEM has no send and receive. hockney does not emulate them, because a measurement would show hockney's
 * protocol. Broadcast and all-to-all count words of 4 or 8 bytes; here always 4, to avoid a choice in a timed loop.
 * Their sync array can be reused once all ranks have left the previous call. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../transport.h"

enum {
    LIBRARY_MAX = 96,
    STATIC_MAX_BYTES = 1 << 20,
    STATIC_BYTES = 5 * STATIC_MAX_BYTES, /* an allreduce uses out, twice in, work, and page ends */
    STATIC_PAGE_BYTES = 4096,
    WORD_BYTES = 4,
    BROADCAST_SYNCS = 64,
    ALLTOALL_SYNCS = 2,
    REDUCE_SYNCS = 2,
    ALLTOALL_FIRST = BROADCAST_SYNCS * SHMEM_BCAST_SYNC_SIZE,
    REDUCE_FIRST = ALLTOALL_FIRST + ALLTOALL_SYNCS * SHMEM_ALLTOALL_SYNC_SIZE,
    SYNC_WORDS = REDUCE_FIRST + REDUCE_SYNCS * SHMEM_REDUCE_SYNC_SIZE,
};

/* The contract's work memory has room for both work arrays of an allreduce. */
_Static_assert(REDUCE_SYNCS *(SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1) * sizeof(long long) <= HK_WORK_BYTES, "work arrays");
_Static_assert(sizeof(long long) == sizeof(uint64_t), "a word is a long long");

typedef struct rank_ctx {
    hk_ctx_t base;
    char library[LIBRARY_MAX];
    size_t static_used_bytes; /* used by shmem:static */
    long *sync;               /* symmetric: for broadcasts, all-to-alls and allreduces, in this order */
    size_t broadcasts, alltoalls, allreduces;
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
    ctx->sync = shmem_malloc(SYNC_WORDS * sizeof *ctx->sync);
    if (ctx->sync == NULL) {
        hk_log(job->rank, "%s: no symmetric memory for its collectives", tp->name);
        free(ctx);
        return HK_ERR_MEMORY;
    }
    for (size_t i = 0; i < SYNC_WORDS; i++) {
        ctx->sync[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all(); /* before any rank's first collective */
    *ctx_p = &ctx->base;
    return HK_OK;
}

static void close_any(hk_ctx_t *ctx)
{
    shmem_free(((rank_ctx_t *)ctx)->sync);
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

/* The root may run many broadcasts ahead. A barrier after each round through the sync arrays frees them. */
static hk_status_t broadcast(hk_ctx_t *ctx, int root, const void *out, void *in, size_t size_bytes)
{
    rank_ctx_t *mine = (rank_ctx_t *)ctx;
    long *sync = mine->sync + mine->broadcasts % BROADCAST_SYNCS * SHMEM_BCAST_SYNC_SIZE;
    shmem_broadcast32(in, out, size_bytes / WORD_BYTES, root, 0, 0, ctx->size, sync);
    if (++mine->broadcasts % BROADCAST_SYNCS == 0) {
        shmem_barrier_all();
    }
    return HK_OK;
}

/* Two sync arrays are enough: a rank that has left an all-to-all has received from all others, so all have left the
 * previous one. */
static hk_status_t alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t size_bytes)
{
    rank_ctx_t *mine = (rank_ctx_t *)ctx;
    long *sync = mine->sync + ALLTOALL_FIRST + mine->alltoalls++ % ALLTOALL_SYNCS * SHMEM_ALLTOALL_SYNC_SIZE;
    shmem_alltoall32(in, out, size_bytes / WORD_BYTES, 0, 0, ctx->size, sync);
    return HK_OK;
}

/* Two sync and work arrays are enough, as for all-to-all. The library adds signed words, which gives the same bits. */
static hk_status_t allreduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    rank_ctx_t *mine = (rank_ctx_t *)ctx;
    const size_t words = size_bytes / sizeof(long long);
    const size_t needed = words / 2 + 1; /* required by the standard */
    const size_t room = needed > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? needed : SHMEM_REDUCE_MIN_WRKDATA_SIZE;
    const size_t turn = mine->allreduces++ % REDUCE_SYNCS;
    long *sync = mine->sync + REDUCE_FIRST + turn * SHMEM_REDUCE_SYNC_SIZE;
    shmem_longlong_sum_to_all(in, out, (int)words, 0, 0, ctx->size, (long long *)work + turn * room, sync);
    return HK_OK;
}

#define SHARED                                                                                                         \
    .caps = HK_CAP_ONE_SIDED | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS, .grain_bytes = WORD_BYTES,                \
    .carrier = HK_CARRIER_LIBRARY, .open = shmem_open, .close = close_any, .library = library, .put = put, .get = get, \
    .quiet = quiet, .wait_word = wait_word, .barrier = barrier, .broadcast = broadcast, .alltoall = alltoall,          \
    .allreduce = allreduce, .now_ns = hk_real_now_ns, .compute = hk_real_compute

const hk_transport_t hk_transport_shmem = {
    SHARED,
    .name = "shmem",
    .summary = "put, get and wait on memory from the symmetric heap",
    .below = "shm",
    .below_remote = "tcp",
    .alloc = heap_alloc,
    .free = heap_free,
};

const hk_transport_t hk_transport_shmem_static = {
    SHARED,
    .name = "shmem:static",
    .summary = "put, get and wait on static data",
    .max_bytes = STATIC_MAX_BYTES,
    .alloc = static_alloc,
    .free = static_free,
};
