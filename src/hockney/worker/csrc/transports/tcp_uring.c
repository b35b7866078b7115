/* tcp:uring: the connections of tcp, where each send and receive is an operation of io_uring, by system calls alone.
 *
 * For each direction of a connection one operation is under way, which keeps the order. tcp:uring-sqpoll: a thread of
 * the kernel takes operations from the ring. So a rank submits without a system call, and that thread burns a CPU. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../control.h"
#include "tcp.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif
#endif

#ifdef IORING_FEAT_FAST_POLL /* headers before Linux 5.7 lack what this needs */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    URING_IDLE_MS = 10,         /* until the kernel's thread sleeps: far longer than a message takes */
    URING_PART_BYTES = 1 << 30, /* of one operation, whose length has 32 bits */
    URING_COOPERATES = 3 << 12, /* one task submits, and the kernel's work is done when it waits: Linux 6.1 */
    URING_FEATURES = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_FAST_POLL | 1 << 7, /* IORING_FEAT_SQPOLL_NONFIXED: 5.11 */
};

/* A request in the caller's memory. */
typedef struct __attribute__((may_alias)) uring_req {
    struct uring_req *next;
    unsigned char *at;
    size_t left_bytes;
} uring_req_t;

_Static_assert(sizeof(uring_req_t) <= sizeof(hk_req_t), "tcp:uring: a request does not fit hk_req_t");
_Static_assert(_Alignof(uring_req_t) <= _Alignof(hk_req_t), "tcp:uring: a request is not aligned in hk_req_t");

/* One direction of a connection; its oldest request is under way. */
typedef struct uring_end {
    int fd, peer;
    uint8_t operation;
    uring_req_t *head, *tail;
} uring_end_t;

typedef struct uring {
    hk_ctx_t base;
    hk_status_t (*enter)(struct uring *ring, unsigned wanted); /* uring_enter, or uring_wake if the thread submits */
    hk_stream_t *stream;                                       /* the connections */
    uring_end_t *out, *in;
    size_t active_count; /* ends with requests */
    unsigned char pad;   /* transferred for a message of 0 bytes */
    int fd;
    unsigned pushed; /* operations that the kernel has not taken yet */
    unsigned char *rings;
    size_t rings_bytes, sqes_bytes;
    struct io_uring_sqe *sqes;
    const struct io_uring_cqe *cqes;
    unsigned sq_mask, cq_mask;
    _Atomic unsigned *sq_tail, *sq_flags, *cq_head, *cq_tail;
} uring_t;

/* ---- operations -------------------------------------------------------------------------------------------------- */

static inline void uring_push(uring_t *ring, uring_end_t *end)
{
    const unsigned tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    const size_t left_bytes = end->head->left_bytes;
    ring->sqes[tail & ring->sq_mask] = (struct io_uring_sqe){
        .opcode = end->operation,
        .fd = end->fd,
        .addr = (uintptr_t)end->head->at,
        .len = left_bytes < URING_PART_BYTES ? (uint32_t)left_bytes : URING_PART_BYTES,
        .msg_flags = MSG_NOSIGNAL | MSG_WAITALL,
        .user_data = (uintptr_t)end,
    };
    atomic_store_explicit(ring->sq_tail, tail + 1, memory_order_release);
    ring->pushed++;
}

/* What a call has failed with: HK_OK if it should be repeated. */
__attribute__((cold, noinline)) static hk_status_t uring_failed(const uring_t *ring)
{
    return errno == EINTR || errno == EAGAIN || errno == EBUSY
               ? HK_OK
               : hk_fail(HK_ERR_PEER, ring->base.rank, "%s: io_uring_enter failed: %s", ring->base.tp->name,
                         strerror(errno));
}

/* Pass on what was pushed, and wait until `wanted` operations are done: 0 or 1. */
static hk_status_t uring_enter(uring_t *ring, unsigned wanted)
{
    const long taken = syscall(SYS_io_uring_enter, ring->fd, ring->pushed, wanted, IORING_ENTER_GETEVENTS, NULL, 0);
    ring->pushed -= taken > 0 ? (unsigned)taken : 0;
    return taken < 0 ? uring_failed(ring) : HK_OK;
}

/* The same where the kernel's thread takes what was pushed: wake it if it sleeps. */
static hk_status_t uring_wake(uring_t *ring, unsigned wanted)
{
    /* The thread looks at the tail once more after it has set the flag. */
    atomic_thread_fence(memory_order_seq_cst);
    const bool is_idle = (atomic_load_explicit(ring->sq_flags, memory_order_relaxed) & IORING_SQ_NEED_WAKEUP) != 0;
    if (!is_idle && wanted == 0) {
        return HK_OK;
    }
    const unsigned flags = IORING_ENTER_GETEVENTS | (is_idle ? IORING_ENTER_SQ_WAKEUP : 0);
    return syscall(SYS_io_uring_enter, ring->fd, 0, wanted, flags, NULL, 0) < 0 ? uring_failed(ring) : HK_OK;
}

/* The next operation that is done, or NULL; *count_p: the bytes that it has moved, or -errno. */
static inline uring_end_t *uring_next(uring_t *ring, int *count_p)
{
    const unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    if (head == atomic_load_explicit(ring->cq_tail, memory_order_acquire)) {
        return NULL;
    }
    const struct io_uring_cqe *done = &ring->cqes[head & ring->cq_mask];
    uring_end_t *end = (uring_end_t *)(uintptr_t)done->user_data;
    *count_p = done->res;
    atomic_store_explicit(ring->cq_head, head + 1, memory_order_release);
    return end;
}

/* After an error the caller may reuse its memory: all connections end, and with them the operations of the kernel. */
__attribute__((cold, noinline)) static hk_status_t uring_lose(uring_t *ring, const uring_end_t *end, int reason)
{
    (void)hk_stream_lose(ring->stream, end->peer, reason);
    for (int peer = 0; peer < ring->base.size; peer++) {
        if (ring->out[peer].fd >= 0) {
            (void)shutdown(ring->out[peer].fd, SHUT_RDWR);
        }
        ring->out[peer].head = ring->in[peer].head = NULL;
    }
    int count = 0;
    for (ring->active_count--; ring->active_count > 0 && ring->enter(ring, 1) == HK_OK;) {
        while (uring_next(ring, &count) != NULL) {
            ring->active_count--;
        }
    }
    return HK_ERR_PEER;
}

/* An operation has moved count bytes, or -errno; starts the next one of its end. */
static inline hk_status_t uring_advance(uring_t *ring, uring_end_t *end, int count)
{
    uring_req_t *req = end->head;
    if (count > 0) {
        req->at += count;
        req->left_bytes -= (size_t)count;
        end->head = req->left_bytes == 0 ? req->next : req;
    } else if (count != -EINTR && count != -EAGAIN) {
        return uring_lose(ring, end, -count);
    }
    if (end->head != NULL) {
        uring_push(ring, end);
    } else {
        ring->active_count--;
    }
    return HK_OK;
}

static inline hk_status_t uring_reap(uring_t *ring)
{
    uring_end_t *end;
    int count = 0;
    while ((end = uring_next(ring, &count)) != NULL) {
        HK_TRY(uring_advance(ring, end, count));
    }
    return HK_OK;
}

/* Until all requests are done, or until *left_bytes is 0. */
static inline hk_status_t uring_await(uring_t *ring, const size_t *left_bytes)
{
    for (;;) {
        HK_TRY(uring_reap(ring));
        if (ring->active_count == 0 || (left_bytes != NULL && *left_bytes == 0)) {
            return HK_OK;
        }
        HK_TRY(ring->enter(ring, 1));
    }
}

static inline void uring_start(uring_t *ring, uring_end_t *end, unsigned char *buf, size_t size_bytes, uring_req_t *req)
{
    *req = (uring_req_t){.at = size_bytes == 0 ? &ring->pad : buf, .left_bytes = size_bytes == 0 ? 1 : size_bytes};
    if (end->head == NULL) {
        end->head = req;
        ring->active_count++;
        uring_push(ring, end);
    } else {
        end->tail->next = req;
    }
    end->tail = req;
}

static hk_status_t uring_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    uring_t *ring = (uring_t *)ctx;
    uring_req_t req;
    uring_start(ring, &ring->out[peer], (unsigned char *)(uintptr_t)buf, size_bytes, &req);
    return uring_await(ring, &req.left_bytes);
}

static hk_status_t uring_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    uring_t *ring = (uring_t *)ctx;
    uring_req_t req;
    uring_start(ring, &ring->in[peer], buf, size_bytes, &req);
    return uring_await(ring, &req.left_bytes);
}

/* Submitted at once: the peer need not wait until this rank waits. */
static hk_status_t uring_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    uring_t *ring = (uring_t *)ctx;
    uring_start(ring, &ring->out[peer], (unsigned char *)(uintptr_t)buf, size_bytes, (uring_req_t *)req);
    HK_TRY(ring->enter(ring, 0));
    return uring_reap(ring);
}

static hk_status_t uring_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    uring_t *ring = (uring_t *)ctx;
    uring_start(ring, &ring->in[peer], buf, size_bytes, (uring_req_t *)req);
    return HK_OK;
}

static hk_status_t uring_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs; /* the queues hold all open requests of the array */
    (void)count;
    return uring_await((uring_t *)ctx, NULL);
}

static hk_status_t uring_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    uring_t *ring = (uring_t *)ctx;
    if (ring->active_count > 0) {
        HK_TRY(ring->enter(ring, 0));
        HK_TRY(uring_reap(ring));
    }
    return hk_stream_probe(&ring->stream->base, peer, is_there_p);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* The descriptor of a ring, or -1 with errno. */
static int uring_set_up(unsigned entries, bool polls, struct io_uring_params *params_p)
{
    const unsigned wanted = polls ? IORING_SETUP_SQPOLL : URING_COOPERATES;
    struct io_uring_params params = {.flags = wanted, .sq_thread_idle = URING_IDLE_MS};
    int fd = (int)syscall(SYS_io_uring_setup, entries, &params);
    if (fd < 0 && errno == EINVAL && !polls) {
        params = (struct io_uring_params){.flags = 0};
        fd = (int)syscall(SYS_io_uring_setup, entries, &params);
    }
    if (fd >= 0 && (params.features & URING_FEATURES) != URING_FEATURES) {
        (void)close(fd);
        errno = ENOSYS;
        return -1;
    }
    *params_p = params;
    return fd;
}

static bool uring_is_here(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    struct io_uring_params params;
    const int fd = uring_set_up(2, tp->variant == HK_STREAM_RING_POLL, &params);
    if (fd >= 0) {
        (void)close(fd);
        return true;
    }
    *how_p = errno == EPERM ? "as root: sysctl kernel.io_uring_disabled=0; a container needs a profile that allows it"
             : errno == ENOMEM ? "allow more locked memory (ulimit -l unlimited), which Linux before 5.12 counts"
             : errno == EMFILE || errno == ENFILE ? "allow more open files (ulimit -n)"
                                                  : "it needs Linux 5.11 or newer";
    (void)snprintf(why, len, "the kernel gives this process no io_uring: %s", strerror(errno));
    return false;
}

static void uring_close(hk_ctx_t *ctx)
{
    uring_t *ring = (uring_t *)ctx;
    if (ring->sqes != NULL) {
        (void)munmap(ring->sqes, ring->sqes_bytes);
    }
    if (ring->rings != NULL) {
        (void)munmap(ring->rings, ring->rings_bytes);
    }
    if (ring->fd >= 0) {
        (void)close(ring->fd);
    }
    if (ring->stream != NULL) {
        hk_stream_close(&ring->stream->base);
    }
    free(ring->out);
    free(ring);
}

static void *uring_map(int fd, size_t size_bytes, off_t place)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, place);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Finds the parts of the ring; false with errno. */
static bool uring_map_all(uring_t *ring)
{
    struct io_uring_params params;
    const bool polls = ring->base.tp->variant == HK_STREAM_RING_POLL;
    ring->enter = polls ? uring_wake : uring_enter;
    ring->fd = uring_set_up(2 * (unsigned)ring->base.size, polls, &params);
    if (ring->fd < 0) {
        return false;
    }
    const size_t of_sq = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    const size_t of_cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    ring->rings_bytes = of_sq > of_cq ? of_sq : of_cq;
    ring->sqes_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
    ring->rings = uring_map(ring->fd, ring->rings_bytes, IORING_OFF_SQ_RING);
    ring->sqes = uring_map(ring->fd, ring->sqes_bytes, IORING_OFF_SQES);
    if (ring->rings == NULL || ring->sqes == NULL) {
        return false;
    }
    unsigned char *at = ring->rings;
    ring->sq_tail = (_Atomic unsigned *)(void *)(at + params.sq_off.tail);
    ring->sq_flags = (_Atomic unsigned *)(void *)(at + params.sq_off.flags);
    ring->cq_head = (_Atomic unsigned *)(void *)(at + params.cq_off.head);
    ring->cq_tail = (_Atomic unsigned *)(void *)(at + params.cq_off.tail);
    ring->cqes = (const struct io_uring_cqe *)(const void *)(at + params.cq_off.cqes);
    ring->sq_mask = params.sq_entries - 1;
    ring->cq_mask = params.cq_entries - 1;
    for (unsigned i = 0; i < params.sq_entries; i++) { /* entries are used in their order */
        ((unsigned *)(void *)(at + params.sq_off.array))[i] = i;
    }
    return true;
}

static hk_status_t uring_create(const hk_transport_t *tp, const hk_job_t *job, uring_t **ring_p)
{
    const size_t size = (size_t)job->size;
    uring_t *ring = calloc(1, sizeof *ring);
    uring_end_t *ends = calloc(2 * size, sizeof *ends);
    if (ring == NULL || ends == NULL) {
        free(ends);
        free(ring);
        return hk_fail(HK_ERR_MEMORY, job->rank, "%s: no memory for %d connections", tp->name, job->size);
    }
    ring->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    ring->out = ends;
    ring->in = ends + size;
    if (!uring_map_all(ring)) {
        const hk_status_t status =
            hk_fail(HK_ERR_UNSUPPORTED, job->rank, "%s: no io_uring: %s", tp->name, strerror(errno));
        uring_close(&ring->base);
        return status;
    }
    *ring_p = ring;
    return HK_OK;
}

static hk_status_t uring_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    uring_t *ring = NULL;
    hk_ctx_t *tcp = NULL;
    const hk_status_t mine = uring_create(tp, job, &ring);
    hk_status_t status = hk_control_agree(job->control, mine);
    if (mine == HK_OK && status == HK_OK) {
        status = hk_tcp_open(tp, job, &tcp);
    }
    if (status != HK_OK || ring == NULL) {
        if (ring != NULL) {
            uring_close(&ring->base);
        }
        return mine != HK_OK ? mine : status;
    }
    ring->stream = (hk_stream_t *)tcp;
    for (int peer = 0; peer < job->size; peer++) {
        const int fd = ring->stream->out[peer].fd;
        ring->out[peer] = (uring_end_t){.fd = fd, .peer = peer, .operation = IORING_OP_SEND};
        ring->in[peer] = (uring_end_t){.fd = fd, .peer = peer, .operation = IORING_OP_RECV};
    }
    *ctx_p = &ring->base;
    return HK_OK;
}

static const char *uring_library(const hk_ctx_t *ctx)
{
    return ((const uring_t *)ctx)->stream->library;
}

static bool uring_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    return hk_tcp_counter(&((const uring_t *)ctx)->stream->base, i, counter_p);
}

#define URING_HOOKS                                                                                                    \
    .open = uring_open, .close = uring_close, .library = uring_library, .counter = uring_counter, .send = uring_send,  \
    .recv = uring_recv, .probe = uring_probe, .isend = uring_isend, .irecv = uring_irecv, .wait_all = uring_wait_all
#else
static bool uring_is_here(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    (void)tp;
    *how_p = "use a Linux machine with a linux/io_uring.h of Linux 5.7 or newer (linux-libc-dev)";
    (void)snprintf(why, len, "hockney was built without io_uring");
    return false;
}

#define URING_HOOKS .open = hk_tcp_open, .close = hk_stream_close, .library = hk_stream_library
#endif

#define URING_TABLE                                                                                                    \
    URING_HOOKS, .is_here = uring_is_here, .carrier = HK_CARRIER_KERNEL, .own = &hk_tcp_family, .below = "tcp",        \
        .below_remote = "tcp", .alloc = hk_private_alloc, .free = hk_private_free, .now_ns = hk_real_now_ns,           \
        .compute = hk_real_compute

const hk_transport_t hk_transport_tcp_uring = {
    URING_TABLE,
    .name = "tcp:uring",
    .summary = "TCP connections by io_uring; a rank that waits sleeps in io_uring_enter",
    .caps = HK_STREAM_CAPS | HK_CAP_HOSTS,
    .variant = HK_STREAM_RING,
};

const hk_transport_t hk_transport_tcp_uring_sqpoll = {
    URING_TABLE,
    .name = "tcp:uring-sqpoll",
    .summary = "TCP connections by io_uring, submitted by a thread of the kernel for each rank, which uses a CPU",
    .caps = HK_STREAM_CAPS | HK_CAP_HOSTS | HK_CAP_SPINS,
    .variant = HK_STREAM_RING_POLL,
};
