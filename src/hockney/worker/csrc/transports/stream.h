/* The engine of transports over byte streams: pipe, unix, tcp.
 *
 * A message has no header: both ranks know its size. A message of 0 bytes travels as one byte, because a stream
 * cannot carry less. A plain send or receive makes the same system calls as a bare loop. Requests wait in one queue
 * per peer and direction, which keeps the order. All queues move while this rank waits. */
#ifndef HK_STREAM_H
#define HK_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "../transport.h"

/* The variants: how a rank waits while no byte can move. */
enum {
    HK_STREAM_BLOCK,    /* blocking descriptors: the kernel waits inside the call */
    HK_STREAM_NONBLOCK, /* non-blocking descriptors: poll(2) when a call would block */
    HK_STREAM_SPIN,     /* non-blocking descriptors: retry at once (after sched_yield if oversubscribed) */
    HK_STREAM_RING,     /* blocking descriptors, whose calls another engine makes: tcp_uring.c */
    HK_STREAM_RING_POLL,
};

typedef struct hk_stream_family {
    const char *carrier; /* for `library`: "pipes of the kernel" */

    /* One attempt to move bytes, with the results of write(2) and read(2); waits if the descriptor blocks. */
    ssize_t (*put)(int fd, const void *buf, size_t size_bytes);
    ssize_t (*get)(int fd, void *buf, size_t size_bytes);

    /* The same without waiting, even if the descriptor blocks. NULL: the family has no such call, so the engine sets
     * O_NONBLOCK before a request's first attempt and clears it before the next plain call. */
    ssize_t (*put_now)(int fd, const void *buf, size_t size_bytes);
    ssize_t (*get_now)(int fd, void *buf, size_t size_bytes);

    /* Creates fds[0] to read and fds[1] to write, for an ordered pair of ranks. For a duplex family both work in
     * both directions, so one call serves a pair. NULL: the family opens its descriptors itself. */
    int (*make)(int fds[2]);
    bool duplex;

    int protocol; /* of sockets that the family opens itself; 0: TCP */
} hk_stream_family_t;

/* The calls of socket families. */
ssize_t hk_stream_socket_put(int fd, const void *buf, size_t size_bytes);
ssize_t hk_stream_socket_get(int fd, void *buf, size_t size_bytes);
ssize_t hk_stream_socket_put_now(int fd, const void *buf, size_t size_bytes);
ssize_t hk_stream_socket_get_now(int fd, void *buf, size_t size_bytes);

struct hk_stream_req;

/* One direction of the connection with a peer. */
typedef struct hk_stream_end {
    int fd; /* -1: for this rank itself */
    int peer;
    short events;     /* POLLOUT or POLLIN: the direction */
    bool is_ready;    /* the next attempt may succeed */
    bool is_switched; /* O_NONBLOCK is on, although plain calls need it off */
    struct hk_stream_req *head, *tail;
} hk_stream_end_t;

typedef struct hk_stream {
    hk_ctx_t base;
    const hk_stream_family_t *family;
    void (*rest)(struct pollfd *ready, nfds_t count); /* waits as the variant does while no byte can move */
    ssize_t (*put_now)(int fd, const void *buf, size_t size_bytes);
    ssize_t (*get_now)(int fd, void *buf, size_t size_bytes);
    bool switches;             /* put_now and get_now need O_NONBLOCK switched on */
    bool is_lost;              /* an error has been logged; later ones are its consequences */
    unsigned char pad;         /* transferred for a message of 0 bytes */
    hk_stream_end_t *out, *in; /* [size] */
    hk_stream_end_t **active;  /* [2 * size], active_count used: ends with requests */
    struct pollfd *ready;      /* [2 * size], for rest */
    size_t active_count;
    uint64_t would_block_count; /* attempts that would have blocked; tests read it */
    char library[192];
} hk_stream_t;

/* The descriptors of a job on one host, created before the ranks are forked. */
typedef struct hk_stream_fds {
    int size;
    int *out, *in; /* [rank * size + peer]; the same array for duplex descriptors */
} hk_stream_fds_t;

/* For families with make. prepare: HK_ERR_UNSUPPORTED if the system allows too few descriptors. open: takes this
 * rank's descriptors from job->shared and frees it. */
hk_status_t hk_stream_prepare(const hk_transport_t *tp, int size, void **shared_p);
void hk_stream_release(void *shared);
hk_status_t hk_stream_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

/* For families without make: create a context without descriptors; once it has them, start selects the variant.
 * After an error of start the caller closes. */
hk_status_t hk_stream_create(const hk_transport_t *tp, const hk_job_t *job, hk_stream_t **stream_p);
hk_status_t hk_stream_start(hk_stream_t *stream, bool oversubscribed);

/* Log that a peer is lost, once: reason is errno, 0 at the end of its stream. */
hk_status_t hk_stream_lose(hk_stream_t *stream, int peer, int reason);

void hk_stream_close(hk_ctx_t *ctx);
const char *hk_stream_library(const hk_ctx_t *ctx);
hk_status_t hk_stream_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_stream_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_stream_probe(hk_ctx_t *ctx, int peer, bool *is_there_p);
hk_status_t hk_stream_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_stream_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_stream_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);
hk_status_t hk_stream_write_some(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p);
hk_status_t hk_stream_read_some(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p);
hk_status_t hk_stream_write_now(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p);
hk_status_t hk_stream_read_now(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p);
hk_status_t hk_stream_mode(hk_ctx_t *ctx, int peer, bool write_now, bool read_now);

/* How the variant waits, for `library`. */
const char *hk_stream_wait_name(const hk_transport_t *tp);

enum { HK_STREAM_CAPS = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SYSCALLS | HK_CAP_PROBE };

/* The hooks that all tables of these families share. */
#define HK_STREAM_HOOKS                                                                                                \
    .carrier = HK_CARRIER_KERNEL, .close = hk_stream_close, .library = hk_stream_library, .alloc = hk_private_alloc,   \
    .free = hk_private_free, .send = hk_stream_send, .recv = hk_stream_recv, .probe = hk_stream_probe,                 \
    .isend = hk_stream_isend, .irecv = hk_stream_irecv, .wait_all = hk_stream_wait_all, .now_ns = hk_real_now_ns,      \
    .compute = hk_real_compute

#define HK_STREAM_PREPARED .prepare = hk_stream_prepare, .release = hk_stream_release, .open = hk_stream_open

/* The three tables of a family: `id`, `id:nonblock` and `id:spin`. Only the plain one supports byte streams: their
 * pattern selects how to wait. `sleeps_in` are the calls in which a plain rank waits, `stands_on` is its `below`;
 * the other arguments are members of all three. */
#define HK_STREAM_TABLES(id, what, sleeps_in, stands_on, more_caps, ...)                                               \
    const hk_transport_t hk_transport_##id = {                                                                         \
        HK_STREAM_HOOKS,                                                                                               \
        .name = #id,                                                                                                   \
        .summary = what " between processes; a rank that waits sleeps in " sleeps_in,                                  \
        .caps = HK_STREAM_CAPS | HK_CAP_STREAM | (more_caps),                                                          \
        .variant = HK_STREAM_BLOCK,                                                                                    \
        .below = (stands_on),                                                                                          \
        .write_some = hk_stream_write_some,                                                                            \
        .read_some = hk_stream_read_some,                                                                              \
        .write_now = hk_stream_write_now,                                                                              \
        .read_now = hk_stream_read_now,                                                                                \
        .stream_mode = hk_stream_mode,                                                                                 \
        __VA_ARGS__,                                                                                                   \
    };                                                                                                                 \
    const hk_transport_t hk_transport_##id##_nonblock = {                                                              \
        HK_STREAM_HOOKS,                                                                                               \
        .name = #id ":nonblock",                                                                                       \
        .summary = what " between processes, O_NONBLOCK; a rank that waits sleeps in poll",                            \
        .caps = HK_STREAM_CAPS | (more_caps),                                                                          \
        .variant = HK_STREAM_NONBLOCK,                                                                                 \
        __VA_ARGS__,                                                                                                   \
    };                                                                                                                 \
    const hk_transport_t hk_transport_##id##_spin = {                                                                  \
        HK_STREAM_HOOKS,                                                                                               \
        .name = #id ":spin",                                                                                           \
        .summary = what " between processes, O_NONBLOCK; a rank that waits retries at once",                           \
        .caps = HK_STREAM_CAPS | HK_CAP_SPINS | (more_caps),                                                           \
        .variant = HK_STREAM_SPIN,                                                                                     \
        __VA_ARGS__,                                                                                                   \
    }

#endif
