/* cold */
/* The mapping, the ranks' places in it, and memory for messages. */
#include "channel_sleep.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

enum {
    PAGE_MIN_BYTES = 4096,
    SLICE_GRAIN_BYTES = 2 << 20, /* a huge page, so that ranks never share one */
    SLICE_MIN_BYTES = 64 << 20,
    PATIENCE = 4096,              /* ~0.1 ms: longer than any message under way needs */
    PATIENCE_OVERSUBSCRIBED = 64, /* the peer probably waits for a CPU */
    YIELD_AFTER = 1 << 21,        /* ~50 ms: longer than any wait for a message alone */
};

#define SEE "docs/transports.md, section Shared memory", "docs/transports.md#shared-memory"
const hk_limit_t hk_channel_limits[] = {
    {"hockney's inline word", sizeof(uint64_t), NULL,
     "larger messages do not fit the word next to their number: they are copied to a ring", SEE},
    {"hockney's first cache line", HK_INLINE_BYTES, NULL, "larger messages do not fit the cache line of their number",
     SEE},
    {"hockney's single-copy threshold", HK_EAGER_BYTES, NULL, "larger messages are copied once, while the sender waits",
     SEE},
    {0},
};

static size_t round_up(size_t value, size_t grain)
{
    return (value + grain - 1) / grain * grain;
}

static size_t page_bytes(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    return page > PAGE_MIN_BYTES ? (size_t)page : PAGE_MIN_BYTES;
}

/* Half of the machine's memory for all ranks: untouched pages cost nothing. */
static size_t slice_bytes_for(int size)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const uint64_t memory = (pages > 0 ? (uint64_t)pages : UINT64_C(1) << 18) * page_bytes();
    const uint64_t slice = memory / 2 / (uint64_t)size / SLICE_GRAIN_BYTES * SLICE_GRAIN_BYTES;
    if (slice < SLICE_MIN_BYTES) {
        return SLICE_MIN_BYTES;
    }
    return slice < SIZE_MAX / 4 / (size_t)size ? (size_t)slice : SIZE_MAX / 4 / (size_t)size;
}

static int rounds_for(int size)
{
    int rounds = 0;
    while ((INT64_C(1) << rounds) < size) {
        rounds++;
    }
    return rounds;
}

hk_status_t hk_channel_prepare(const hk_transport_t *tp, int size, void **shared_p)
{
    (void)tp;
    const size_t ranks = (size_t)size, page = page_bytes();
    const int rounds = rounds_for(size);
    const size_t flags_at = page;
    const size_t rings_at = round_up(flags_at + ranks * ((size_t)rounds + 1) * HK_SEPARATE_BYTES, page);
    const size_t arena_at = round_up(rings_at + ranks * ranks * sizeof(hk_ring_t), SLICE_GRAIN_BYTES);

    /* A limit on address space, or strict overcommit, may refuse memory that is never used: then request less. */
    size_t slice_bytes = slice_bytes_for(size), size_bytes = 0;
    void *memory = MAP_FAILED;
    for (; slice_bytes >= SLICE_MIN_BYTES; slice_bytes = slice_bytes / 2 / SLICE_GRAIN_BYTES * SLICE_GRAIN_BYTES) {
        size_bytes = arena_at + ranks * slice_bytes;
        memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED) {
            break;
        }
    }
    if (memory == MAP_FAILED) {
        return hk_fail(HK_ERR_MEMORY, -1, "shared memory: cannot map %zu MiB for %d ranks", size_bytes >> 20, size);
    }
#if defined(MADV_HUGEPAGE)
    /* Optional: most systems refuse it for shared memory. */
    (void)madvise((unsigned char *)memory + arena_at, ranks * slice_bytes, MADV_HUGEPAGE);
#endif
    *(hk_mapping_t *)memory = (hk_mapping_t){
        .size_bytes = size_bytes,
        .size = size,
        .rounds = rounds,
        .flags_at = flags_at,
        .rings_at = rings_at,
        .arena_at = arena_at,
        .slice_bytes = slice_bytes,
    };
    *shared_p = memory;
    return HK_OK;
}

void hk_channel_release(void *shared)
{
    (void)munmap(shared, ((hk_mapping_t *)shared)->size_bytes);
}

static hk_ring_t *ring_of(hk_mapping_t *mapping, int from, int to)
{
    hk_ring_t *rings = (hk_ring_t *)(void *)((unsigned char *)mapping + mapping->rings_at);
    return &rings[(size_t)from * (size_t)mapping->size + (size_t)to];
}

static unsigned char *slice_of(hk_mapping_t *mapping, int rank)
{
    return (unsigned char *)mapping + mapping->arena_at + (size_t)rank * mapping->slice_bytes;
}

/* Contexts of threads share a heap: no cache line holds data of two ranks. */
static void *zeroed_lines(size_t size_bytes)
{
    const size_t whole = round_up(size_bytes, HK_SEPARATE_BYTES);
    void *memory = aligned_alloc(HK_SEPARATE_BYTES, whole);
    if (memory != NULL) {
        memset(memory, 0, whole);
    }
    return memory;
}

static void rest_yielding(hk_channel_t *channel, bool has_moved)
{
    (void)channel;
    (void)has_moved;
    (void)sched_yield();
}

/* A rank whose table does not spin sleeps at once. */
static void choose_rest(hk_channel_t *channel, bool oversubscribed)
{
    const bool sleeps = (channel->base.tp->caps & HK_CAP_SPINS) == 0;
    channel->patience = sleeps ? 1 : oversubscribed ? PATIENCE_OVERSUBSCRIBED : PATIENCE;
    channel->rest_after = sleeps ? 1 : oversubscribed ? PATIENCE_OVERSUBSCRIBED : YIELD_AFTER;
    channel->rest = sleeps ? hk_channel_sleep : rest_yielding;
}

hk_status_t hk_channel_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    if (!hk_lane_usable()) {
        return hk_fail(HK_ERR_UNSUPPORTED, job->rank,
                       "%s: this CPU has no atomic 16-byte stores; build with -DHK_LANE_PORTABLE", tp->name);
    }
    const size_t ranks = (size_t)job->size;
    hk_channel_t *channel = zeroed_lines(sizeof *channel);
    hk_peer_t *peers = zeroed_lines(ranks * sizeof *peers);
    hk_peer_t **active = zeroed_lines(ranks * sizeof(hk_peer_t *));
    struct hk_rung *rung = zeroed_lines(ranks * sizeof *rung);
    if (channel == NULL || peers == NULL || active == NULL || rung == NULL) {
        free(rung);
        free(active);
        free(peers);
        free(channel);
        return hk_fail(HK_ERR_MEMORY, job->rank, "%s: no memory for %d peers", tp->name, job->size);
    }
    hk_mapping_t *mapping = job->shared;
    const bool is_synchronous = (tp->caps & HK_CAP_SYNCHRONOUS) != 0;
    for (int r = 0; r < job->size; r++) {
        peers[r].out = ring_of(mapping, job->rank, r);
        peers[r].in = ring_of(mapping, r, job->rank);
        peers[r].may = HK_RING_SLOTS;
        peers[r].await_from_bytes = is_synchronous ? 0 : HK_EAGER_BYTES + 1;
        peers[r].slice = slice_of(mapping, r);
    }
    channel->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    channel->mapping = mapping;
    channel->peer = peers;
    channel->active = active;
    channel->rung = rung;
    choose_rest(channel, job->oversubscribed != 0);
    channel->slice = slice_of(mapping, job->rank);
    (void)snprintf(channel->library, sizeof channel->library, "shared mapping, %s, single copy above %d bytes",
                   HK_LANE_KIND, HK_EAGER_BYTES);
    *ctx_p = &channel->base;
    return HK_OK;
}

void hk_channel_close(hk_ctx_t *ctx)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    free(channel->rung);
    free(channel->active);
    free(channel->peer);
    free(channel);
}

const char *hk_channel_library(const hk_ctx_t *ctx)
{
    return ((const hk_channel_t *)ctx)->library;
}

void *hk_channel_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    const size_t room = channel->mapping->slice_bytes - channel->slice_used;
    /* Larger sizes are not rounded up, so this cannot overflow. */
    const size_t whole = size_bytes <= room ? round_up(size_bytes, page_bytes()) : SIZE_MAX;
    if (whole > room) {
        hk_log(ctx->rank, "%s: no room for a buffer of %zu bytes in this rank's %zu MiB", ctx->tp->name, size_bytes,
               channel->mapping->slice_bytes >> 20);
        return NULL;
    }
    unsigned char *memory = channel->slice + channel->slice_used;
    channel->slice_used += whole;
    return memory;
}

void hk_channel_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)size_bytes;
    hk_channel_t *channel = hk_channel_of(ctx);
    channel->slice_used = (size_t)((unsigned char *)memory - channel->slice);
}
