/* UDP: the timed part. udp.h describes how it detects losses; udp_open.c opens the sockets. */
#include "udp.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>

typedef struct __attribute__((may_alias)) hk_udp_req {
    struct hk_udp_req *next;
    void *buf;
    size_t size_bytes;
    int peer;
    bool is_done;
} hk_udp_req_t;

_Static_assert(sizeof(hk_udp_req_t) <= sizeof(hk_req_t), "udp: a request does not fit hk_req_t");
_Static_assert(_Alignof(hk_udp_req_t) <= _Alignof(hk_req_t), "udp: a request is not aligned in hk_req_t");

static hk_udp_t *udp_of(hk_ctx_t *ctx)
{
    return (hk_udp_t *)ctx;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* The socket has a time limit (SO_RCVTIMEO). */
ssize_t hk_udp_get_blocking(int fd, struct msghdr *message)
{
    return recvmsg(fd, message, 0);
}

/* tries: attempts between two reads of the clock. tries and yields are constants in each call. */
static inline ssize_t get_trying(int fd, struct msghdr *message, const unsigned tries, const bool yields)
{
    uint64_t until_ns = 0;
    for (unsigned i = 1;; i++) {
        const ssize_t count = recvmsg(fd, message, MSG_DONTWAIT);
        if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            return count;
        }
        if (yields) {
            (void)sched_yield();
        }
        if (i % tries == 0) {
            const uint64_t now_ns = hk_real_now_ns(NULL);
            until_ns = until_ns == 0 ? now_ns + HK_UDP_ASK_MS * UINT64_C(1000000) : until_ns;
            if (now_ns >= until_ns) {
                errno = EAGAIN;
                return -1;
            }
        }
    }
}

ssize_t hk_udp_get_spinning(int fd, struct msghdr *message)
{
    return get_trying(fd, message, 64, false);
}

ssize_t hk_udp_get_yielding(int fd, struct msghdr *message)
{
    return get_trying(fd, message, 1, true);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* After an error the caller may reuse the memory of its requests. */
__attribute__((cold, noinline)) static hk_status_t give_up(hk_udp_t *udp, int peer, int reason)
{
    const bool is_gone = reason == ECONNREFUSED;
    if (!udp->is_gone && is_gone) {
        hk_log(udp->base.rank, "%s: rank %d is gone", udp->base.tp->name, peer);
    } else if (!udp->is_gone) {
        hk_log(udp->base.rank, "%s: rank %d can't be reached: %s", udp->base.tp->name, peer, strerror(reason));
    }
    udp->is_gone = true;
    udp->head = udp->tail = NULL;
    return is_gone ? HK_ERR_PEER : HK_ERR_SYSTEM;
}

__attribute__((cold, noinline)) static hk_status_t refuse_length(hk_udp_t *udp, int peer, size_t came, size_t awaited)
{
    hk_log(udp->base.rank, "%s: rank %d sent %zu B where %zu B were awaited", udp->base.tp->name, peer, came, awaited);
    udp->head = udp->tail = NULL;
    return HK_ERR_SYSTEM;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* A filter on this host or a full queue drops the message before it leaves. It is lost, and the receiver counts it
 * like every loss. */
static bool was_dropped(int reason)
{
    return reason == EPERM || reason == ENOBUFS || reason == ENOMEM;
}

static hk_status_t udp_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    hk_udp_t *udp = udp_of(ctx);
    hk_udp_peer_t *to = &udp->peer[peer];
    const uint64_t seq = atomic_load_explicit(&to->sent, memory_order_relaxed);
    hk_udp_head_t head = {udp->key, htobe64(seq)};
    union {
        const void *out;
        void *base;
    } payload = {.out = buf}; /* sendmsg does not write it */
    struct iovec parts[] = {{&head, sizeof head}, {payload.base, size_bytes}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t count;
    do {
        count = sendmsg(to->fd, &message, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && !was_dropped(errno)) {
        return give_up(udp, peer, errno);
    }
    atomic_store_explicit(&to->sent, seq + 1, memory_order_release);
    return HK_OK;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* The message is known to be sent: it arrived early, or it is lost. */
__attribute__((noinline)) static hk_status_t settle(hk_udp_t *udp, int peer, uint64_t awaited, void *buf,
                                                    size_t size_bytes)
{
    hk_udp_peer_t *from = &udp->peer[peer];
    if (from->is_held && awaited + 1 == from->known) {
        from->is_held = false;
        if (from->held_bytes != size_bytes) {
            return refuse_length(udp, peer, from->held_bytes, size_bytes);
        }
        if (size_bytes > 0) {
            memcpy(buf, from->held, size_bytes);
        }
        return HK_OK;
    }
    udp->lost++;
    if (size_bytes > 0) {
        memset(buf, 0, size_bytes);
    }
    return HK_OK;
}

/* Handle a datagram other than the awaited one. True: the awaited one is now known to be sent. */
__attribute__((noinline)) static bool take_other(hk_udp_t *udp, hk_udp_peer_t *from, uint64_t awaited, uint64_t seq,
                                                 size_t came_bytes, const void *buf, size_t size_bytes)
{
    if ((seq & HK_UDP_MARK) != 0) {
        const uint64_t sent = seq & ~HK_UDP_MARK;
        from->known = sent > from->known ? sent : from->known;
        return awaited < from->known;
    }
    if (seq < awaited) {
        udp->late++;
        return false;
    }
    /* A datagram larger than the buffer has its end already in place, after size_bytes. */
    if (came_bytes > 0 && size_bytes > 0) {
        memcpy(from->held, buf, came_bytes < size_bytes ? came_bytes : size_bytes);
    }
    from->held_bytes = came_bytes;
    from->is_held = true;
    from->known = seq + 1;
    return true;
}

/* Nothing arrived: ask whether the message was sent. A lost question is repeated. */
__attribute__((noinline)) static hk_status_t ask(hk_udp_t *udp, int peer, uint64_t awaited, int reason)
{
    const hk_udp_peer_t *from = &udp->peer[peer];
    if (reason == EINTR) {
        return HK_OK;
    }
    if (reason != EAGAIN && reason != EWOULDBLOCK) {
        return give_up(udp, peer, reason);
    }
    const hk_udp_ask_t question = {udp->key, htobe64(awaited), htobe64((uint64_t)udp->base.rank)};
    const ssize_t count = sendto(udp->clerk_fd, &question, sizeof question, MSG_NOSIGNAL | MSG_DONTWAIT,
                                 (const struct sockaddr *)&from->clerk, from->clerk_len);
    (void)count;
    return HK_OK;
}

static hk_status_t take(hk_udp_t *udp, int peer, void *buf, size_t size_bytes)
{
    hk_udp_peer_t *from = &udp->peer[peer];
    const uint64_t awaited = from->taken++;
    if (awaited < from->known) {
        return settle(udp, peer, awaited, buf, size_bytes);
    }
    hk_udp_head_t head;
    struct iovec parts[] = {
        {&head, sizeof head}, {buf, size_bytes}, {from->held + size_bytes, HK_UDP_MAX_BYTES - size_bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    for (;;) {
        const ssize_t count = udp->get(from->fd, &message);
        if (count < 0) {
            HK_TRY(ask(udp, peer, awaited, errno));
        } else if (count >= (ssize_t)sizeof head && head.key == udp->key) {
            const size_t came_bytes = (size_t)count - sizeof head;
            const uint64_t seq = be64toh(head.seq);
            if (seq == awaited) {
                return came_bytes == size_bytes ? HK_OK : refuse_length(udp, peer, came_bytes, size_bytes);
            }
            if (take_other(udp, from, awaited, seq, came_bytes, buf, size_bytes)) {
                return settle(udp, peer, awaited, buf, size_bytes);
            }
        }
    }
}

static hk_status_t udp_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    hk_udp_t *udp = udp_of(ctx);
    for (hk_udp_req_t *req = udp->head; req != NULL; req = req->next) {
        if (req->peer == peer && !req->is_done) {
            req->is_done = true;
            HK_TRY(take(udp, peer, req->buf, req->size_bytes));
        }
    }
    return take(udp, peer, buf, size_bytes);
}

/* A datagram leaves at once, without waiting for the receiver. */
static hk_status_t udp_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *room)
{
    (void)room;
    return udp_send(ctx, peer, buf, size_bytes);
}

static hk_status_t udp_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *room)
{
    hk_udp_t *udp = udp_of(ctx);
    hk_udp_req_t *req = (hk_udp_req_t *)room;
    *req = (hk_udp_req_t){.buf = buf, .size_bytes = size_bytes, .peer = peer};
    if (udp->head == NULL) {
        udp->head = req;
    } else {
        udp->tail->next = req;
    }
    udp->tail = req;
    return HK_OK;
}

/* Receives complete in the order of their start. Datagrams from other peers wait in the sockets' buffers meanwhile,
 * or are lost if these are full. */
static hk_status_t udp_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs; /* the list holds all open requests of the array */
    (void)count;
    hk_udp_t *udp = udp_of(ctx);
    for (hk_udp_req_t *req = udp->head; req != NULL; req = req->next) {
        if (!req->is_done) {
            HK_TRY(take(udp, req->peer, req->buf, req->size_bytes));
        }
    }
    udp->head = udp->tail = NULL;
    return HK_OK;
}

/* ---- counters and description ------------------------------------------------------------------------------------ */

static bool udp_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    const hk_udp_t *udp = (const hk_udp_t *)ctx;
    const hk_counter_t all[] = {{"lost", (double)udp->lost}, {"late", (double)udp->late}};
    if (i >= sizeof all / sizeof all[0]) {
        return false;
    }
    *counter_p = all[i];
    return true;
}

static const char *udp_library(const hk_ctx_t *ctx)
{
    return ((const hk_udp_t *)ctx)->library;
}

enum { CAPS = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SYSCALLS | HK_CAP_LOSSY | HK_CAP_HOSTS };

#define HOOKS                                                                                                          \
    .carrier = HK_CARRIER_KERNEL, .max_bytes = HK_UDP_MAX_BYTES, .open = hk_udp_open, .close = hk_udp_close,           \
    .library = udp_library, .counter = udp_counter, .alloc = hk_private_alloc, .free = hk_private_free,                \
    .send = udp_send, .recv = udp_recv, .isend = udp_isend, .irecv = udp_irecv, .wait_all = udp_wait_all,              \
    .now_ns = hk_real_now_ns, .compute = hk_real_compute

const hk_transport_t hk_transport_udp = {
    .name = "udp",
    .summary = "UDP datagrams between processes, losses counted; a rank that waits sleeps in recvmsg",
    .caps = CAPS,
    HOOKS,
};

const hk_transport_t hk_transport_udp_spin = {
    .name = "udp:spin",
    .summary = "UDP datagrams between processes, losses counted; a rank that waits retries at once",
    .caps = CAPS | HK_CAP_SPINS,
    .variant = HK_UDP_SPIN,
    HOOKS,
};
