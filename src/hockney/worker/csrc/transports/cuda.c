/* Messages between device memories (device.h): the receiver's device copies from the sender's buffer. Between
 * processes it opens that memory by a handle, between threads it has the address. Rank r uses device r modulo their
 * number.
 *
 * Ranks share a mapping on the host with a ring of posted messages for each ordered pair. A send posts the place of its
 * buffer, and ends when the receiver has taken the message, which is when its copy is done. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../cacheline.h"
#include "../control.h"
#include "../device.h"
#include "../transport.h"

enum {
    CUDA_SLOTS = 1024, /* messages under way between two ranks; no pattern has more */
    CUDA_REGIONS_MAX = 16,
    CUDA_POLLS = 4096, /* before a wait yields the CPU */
};

typedef struct cuda_message {
    uint64_t region, offset, size_bytes;
} cuda_message_t;

/* `posted` and `taken` count messages: one writer each. */
typedef struct cuda_ring {
    _Alignas(HK_SEPARATE_BYTES) _Atomic uint64_t posted;
    _Alignas(HK_SEPARATE_BYTES) _Atomic uint64_t taken;
    _Alignas(HK_SEPARATE_BYTES) cuda_message_t message[CUDA_SLOTS];
} cuda_ring_t;

typedef struct cuda_shared {
    size_t size_bytes;
    _Alignas(HK_SEPARATE_BYTES) _Atomic uint64_t arrived; /* at barriers, over all of them */
    cuda_ring_t ring[];                                   /* from * size + to */
} cuda_shared_t;

/* One allocation, of all ranks. */
typedef struct cuda_region {
    unsigned char *memory;
    size_t size_bytes;
    unsigned char **of; /* [size]: each rank's, as this one reaches it; NULL: not at all */
} cuda_region_t;

typedef struct cuda_peer {
    cuda_ring_t *out, *in;
    uint64_t posted, started, received; /* messages to it; receives that were started; copies that were */
} cuda_peer_t;

typedef struct cuda_rank {
    hk_ctx_t base;
    hk_device_t *device;
    hk_control_t *control;
    cuda_shared_t *shared;
    cuda_peer_t *peer;
    uint64_t barriers;
    uint64_t patience; /* polls before a wait yields */
    size_t regions;
    cuda_region_t region[CUDA_REGIONS_MAX];
    char library[192];
} cuda_rank_t;

typedef struct cuda_req {
    void *buf;
    size_t size_bytes;
    uint64_t number; /* of the message, between these ranks */
    int peer;
    bool receives, is_done;
} cuda_req_t;

_Static_assert(sizeof(cuda_req_t) <= sizeof(hk_req_t), "cuda: a request does not fit hk_req_t");

static cuda_rank_t *cuda_of(hk_ctx_t *ctx)
{
    return (cuda_rank_t *)ctx;
}

static inline void cuda_rest(const cuda_rank_t *cuda, uint64_t *polls_p)
{
    hk_pause();
    if (HK_UNLIKELY(++*polls_p >= cuda->patience)) {
        (void)sched_yield();
    }
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static bool cuda_is_here(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    (void)tp;
    return hk_driver_cuda.count(why, len, how_p) > 0;
}

static hk_status_t cuda_prepare(const hk_transport_t *tp, int size, void **shared_p)
{
    const size_t bytes = sizeof(cuda_shared_t) + (size_t)size * (size_t)size * sizeof(cuda_ring_t);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return hk_fail(HK_ERR_MEMORY, -1, "%s: cannot map %zu MiB for %d ranks", tp->name, bytes >> 20, size);
    }
    ((cuda_shared_t *)memory)->size_bytes = bytes;
    *shared_p = memory;
    return HK_OK;
}

static void cuda_release(void *shared)
{
    (void)munmap(shared, ((cuda_shared_t *)shared)->size_bytes);
}

/* Threads reach each other's devices; a process does when it opens their memory. */
static hk_status_t cuda_join(cuda_rank_t *cuda, int devices)
{
    const int rank = cuda->base.rank, size = cuda->base.size;
    char device[128];
    /* All have opened theirs: what one reaches must stay. */
    HK_TRY(hk_control_agree(cuda->control, hk_device_get(&cuda->base, rank % devices, &cuda->device)));
    const bool are_threads = (cuda->base.tp->caps & HK_CAP_THREADS) != 0;
    for (int other = 0; are_threads && other < devices && other < size; other++) {
        HK_TRY(other == rank % devices ? HK_OK : cuda->device->driver->reach(cuda->device, other));
    }
    cuda->device->driver->describe(cuda->device, device, sizeof device);
    (void)snprintf(cuda->library, sizeof cuda->library, "%s%s", device,
                   size <= devices ? ""
                   : are_threads   ? ", same device"
                                   : ", same device: times are of its turns between processes");
    return HK_OK;
}

static hk_status_t cuda_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    char why[HK_DEVICE_WHY_MAX] = "";
    const char *how = "";
    const int devices = hk_driver_cuda.count(why, sizeof why, &how);
    if (devices == 0) {
        return hk_fail(HK_ERR_UNSUPPORTED, job->rank, "%s: %s; %s", tp->name, why, how);
    }
    cuda_rank_t *cuda = calloc(1, sizeof *cuda);
    cuda_peer_t *peer = calloc((size_t)job->size, sizeof *peer);
    if (cuda == NULL || peer == NULL) {
        free(cuda);
        free(peer);
        return hk_fail(HK_ERR_MEMORY, job->rank, "%s: no memory for %d peers", tp->name, job->size);
    }
    *cuda = (cuda_rank_t){.base = {.tp = tp, .rank = job->rank, .size = job->size},
                          .control = job->control,
                          .shared = job->shared,
                          .peer = peer,
                          .patience = job->oversubscribed != 0 ? 1 : CUDA_POLLS};
    for (int other = 0; other < job->size; other++) {
        peer[other].out = &cuda->shared->ring[job->rank * job->size + other];
        peer[other].in = &cuda->shared->ring[other * job->size + job->rank];
    }
    const hk_status_t status = cuda_join(cuda, devices);
    if (status != HK_OK) {
        hk_devices_close(&cuda->base);
        free(peer);
        free(cuda);
        return status;
    }
    *ctx_p = &cuda->base;
    return HK_OK;
}

static void cuda_leave(hk_ctx_t *ctx)
{
    free(cuda_of(ctx)->peer);
    free(ctx);
}

static const char *cuda_library(const hk_ctx_t *ctx)
{
    return ((const cuda_rank_t *)ctx)->library;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What a rank tells the others about its memory. */
typedef struct cuda_told {
    unsigned char handle[HK_HANDLE_BYTES];
    unsigned char *memory;
} cuda_told_t;

/* No rank frees what another one has open. */
static void cuda_drop(cuda_rank_t *cuda, cuda_region_t *region)
{
    const bool are_threads = (cuda->base.tp->caps & HK_CAP_THREADS) != 0;
    for (int other = 0; region->of != NULL && other < cuda->base.size; other++) {
        if (!are_threads && other != cuda->base.rank && region->of[other] != NULL) {
            cuda->device->driver->close_shared(cuda->device, region->of[other]);
        }
    }
    (void)hk_control_barrier(cuda->control);
    if (region->memory != NULL) {
        cuda->device->driver->free(cuda->device, HK_MEM_DEVICE, region->memory);
    }
    free(region->of);
    *region = (cuda_region_t){0};
}

static hk_status_t cuda_open_all(cuda_rank_t *cuda, cuda_region_t *region, const cuda_told_t *all)
{
    const bool are_threads = (cuda->base.tp->caps & HK_CAP_THREADS) != 0;
    for (int other = 0; other < cuda->base.size; other++) {
        void *memory = all[other].memory;
        if (!are_threads && other != cuda->base.rank) {
            HK_TRY(cuda->device->driver->open_shared(cuda->device, all[other].handle, &memory));
        }
        region->of[other] = memory;
    }
    return HK_OK;
}

/* Fails on all ranks, or on none. */
static hk_status_t cuda_make(cuda_rank_t *cuda, cuda_region_t *region)
{
    const size_t size = (size_t)cuda->base.size;
    const hk_driver_t *driver = cuda->device->driver;
    cuda_told_t mine = {.memory = NULL};
    void *memory = NULL;
    cuda_told_t *all = calloc(size, sizeof *all);
    region->of = calloc(size, sizeof *region->of);
    hk_status_t status = all == NULL || region->of == NULL ? HK_ERR_MEMORY : driver->use(cuda->device);
    status = status == HK_OK ? driver->alloc(cuda->device, HK_MEM_DEVICE, region->size_bytes, &memory) : status;
    region->memory = mine.memory = memory;
    if (status == HK_OK && size > 1 && (cuda->base.tp->caps & HK_CAP_THREADS) == 0) {
        status = driver->share(cuda->device, memory, mine.handle);
    }
    status = hk_control_agree(cuda->control, status);
    if (status == HK_OK && all != NULL && region->of != NULL) {
        status = hk_control_allgather(cuda->control, &mine, sizeof mine, all);
        status = status == HK_OK ? hk_control_agree(cuda->control, cuda_open_all(cuda, region, all)) : status;
    }
    free(all);
    return status;
}

static void *cuda_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    if (cuda->regions == CUDA_REGIONS_MAX) {
        hk_log(ctx->rank, "%s: no room for more than %d regions of memory", ctx->tp->name, CUDA_REGIONS_MAX);
        return NULL;
    }
    cuda_region_t *region = &cuda->region[cuda->regions];
    region->size_bytes = size_bytes;
    if (cuda_make(cuda, region) != HK_OK) {
        cuda_drop(cuda, region);
        return NULL;
    }
    cuda->regions++;
    return region->memory;
}

static void cuda_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    (void)memory;
    (void)size_bytes;
    cuda_drop(cuda, &cuda->region[--cuda->regions]);
}

static hk_status_t cuda_move(hk_ctx_t *ctx, void *to, const void *from, size_t size_bytes)
{
    return hk_device_move(cuda_of(ctx)->device, to, from, size_bytes);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A message of 0 bytes has no place. */
static hk_status_t cuda_post(cuda_rank_t *cuda, int to, const void *buf, size_t size_bytes)
{
    cuda_peer_t *peer = &cuda->peer[to];
    cuda_message_t message = {.size_bytes = size_bytes};
    uint64_t polls = 0;
    for (; size_bytes > 0; message.region++) {
        if (message.region == cuda->regions) {
            return hk_fail(HK_ERR_ARGUMENT, cuda->base.rank, "%s: a buffer is not from alloc", cuda->base.tp->name);
        }
        message.offset = (uintptr_t)buf - (uintptr_t)cuda->region[message.region].memory;
        if (message.offset < cuda->region[message.region].size_bytes) {
            break;
        }
    }
    while (peer->posted - atomic_load_explicit(&peer->out->taken, memory_order_acquire) >= CUDA_SLOTS) {
        cuda_rest(cuda, &polls);
    }
    peer->out->message[peer->posted % CUDA_SLOTS] = message;
    atomic_store_explicit(&peer->out->posted, ++peer->posted, memory_order_release);
    return HK_OK;
}

/* Start the copy of the next message from a peer, which has been posted. */
static hk_status_t cuda_start_copy(cuda_rank_t *cuda, int from, void *buf, size_t size_bytes)
{
    cuda_peer_t *peer = &cuda->peer[from];
    const cuda_message_t message = peer->in->message[peer->received++ % CUDA_SLOTS];
    if (message.size_bytes != size_bytes) {
        return hk_fail(HK_ERR_CORRUPT, cuda->base.rank, "%s: rank %d sent %llu bytes where %zu were expected",
                       cuda->base.tp->name, from, (unsigned long long)message.size_bytes, size_bytes);
    }
    return size_bytes == 0
               ? HK_OK
               : cuda->device->driver->copy(cuda->device, 0, buf,
                                            cuda->region[message.region].of[from] + message.offset, size_bytes);
}

static inline bool cuda_is_posted(const cuda_peer_t *peer, uint64_t number)
{
    return atomic_load_explicit(&peer->in->posted, memory_order_acquire) >= number;
}

static inline bool cuda_is_taken(const cuda_peer_t *peer, uint64_t number)
{
    return atomic_load_explicit(&peer->out->taken, memory_order_acquire) >= number;
}

static hk_status_t cuda_send(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    const cuda_peer_t *peer = &cuda->peer[to];
    uint64_t polls = 0;
    HK_TRY(cuda_post(cuda, to, buf, size_bytes));
    while (!cuda_is_taken(peer, peer->posted)) {
        cuda_rest(cuda, &polls);
    }
    return HK_OK;
}

static hk_status_t cuda_recv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    cuda_peer_t *peer = &cuda->peer[from];
    const uint64_t number = ++peer->started;
    uint64_t polls = 0;
    while (!cuda_is_posted(peer, number)) {
        cuda_rest(cuda, &polls);
    }
    HK_TRY(cuda_start_copy(cuda, from, buf, size_bytes));
    HK_TRY(size_bytes == 0 ? HK_OK : cuda->device->driver->wait(cuda->device, 0));
    atomic_store_explicit(&peer->in->taken, number, memory_order_release);
    return HK_OK;
}

static hk_status_t cuda_isend(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes, hk_req_t *req)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    HK_TRY(cuda_post(cuda, to, buf, size_bytes));
    *(cuda_req_t *)(void *)req = (cuda_req_t){.number = cuda->peer[to].posted, .peer = to};
    return HK_OK;
}

static hk_status_t cuda_irecv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes, hk_req_t *req)
{
    *(cuda_req_t *)(void *)req = (cuda_req_t){.buf = buf,
                                              .size_bytes = size_bytes,
                                              .number = ++cuda_of(ctx)->peer[from].started,
                                              .peer = from,
                                              .receives = true};
    return HK_OK;
}

/* Start the copies of all messages that are here, wait for them, and say so to their senders. */
static hk_status_t cuda_receive_some(cuda_rank_t *cuda, hk_req_t *reqs, size_t count, size_t *left_p)
{
    size_t copies = 0;
    for (size_t i = 0; i < count; i++) {
        cuda_req_t *req = (cuda_req_t *)(void *)&reqs[i];
        const cuda_peer_t *peer = &cuda->peer[req->peer];
        if (req->receives && !req->is_done && req->number == peer->received + 1 && cuda_is_posted(peer, req->number)) {
            HK_TRY(cuda_start_copy(cuda, req->peer, req->buf, req->size_bytes));
            req->is_done = true;
            copies++;
        }
    }
    if (copies == 0) {
        return HK_OK;
    }
    *left_p -= copies;
    HK_TRY(cuda->device->driver->wait(cuda->device, 0));
    for (int other = 0; other < cuda->base.size; other++) {
        cuda_peer_t *peer = &cuda->peer[other];
        atomic_store_explicit(&peer->in->taken, peer->received, memory_order_release);
    }
    return HK_OK;
}

static hk_status_t cuda_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    uint64_t polls = 0;
    for (size_t left = count; left > 0;) {
        HK_TRY(cuda_receive_some(cuda, reqs, count, &left));
        for (size_t i = 0; i < count; i++) {
            cuda_req_t *req = (cuda_req_t *)(void *)&reqs[i];
            if (!req->receives && !req->is_done && cuda_is_taken(&cuda->peer[req->peer], req->number)) {
                req->is_done = true;
                left--;
            }
        }
        cuda_rest(cuda, &polls);
    }
    return HK_OK;
}

static hk_status_t cuda_barrier(hk_ctx_t *ctx)
{
    cuda_rank_t *cuda = cuda_of(ctx);
    const uint64_t wanted = ++cuda->barriers * (uint64_t)ctx->size;
    uint64_t polls = 0;
    (void)atomic_fetch_add_explicit(&cuda->shared->arrived, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&cuda->shared->arrived, memory_order_acquire) < wanted) {
        cuda_rest(cuda, &polls);
    }
    return HK_OK;
}

#define CUDA_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_SYNCHRONOUS)
#define CUDA_HOOKS                                                                                                     \
    .carrier = HK_CARRIER_LIBRARY, .is_here = cuda_is_here, .prepare = cuda_prepare, .release = cuda_release,          \
    .open = cuda_open, .close = cuda_leave, .library = cuda_library, .alloc = cuda_alloc, .free = cuda_free,           \
    .move = cuda_move, .send = cuda_send, .recv = cuda_recv, .isend = cuda_isend, .irecv = cuda_irecv,                 \
    .wait_all = cuda_wait_all, .barrier = cuda_barrier, .now_ns = hk_real_now_ns, .compute = hk_real_compute

const hk_transport_t hk_transport_cuda = {
    CUDA_HOOKS,
    .caps = CUDA_CAPS,
    .name = "cuda",
    .summary = "processes, memory of NVIDIA devices (verified on a stand-in only)",
};

const hk_transport_t hk_transport_cuda_threads = {
    CUDA_HOOKS,
    .caps = CUDA_CAPS | HK_CAP_THREADS,
    .name = "cuda:threads",
    .summary = "cuda between threads of one process (verified on a stand-in only)",
    .below = "cuda",
};
