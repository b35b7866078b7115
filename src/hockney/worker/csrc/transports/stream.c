#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

/* A request in the caller's memory. */
typedef struct __attribute__((may_alias)) hk_stream_req {
    struct hk_stream_req *next;
    union {
        const unsigned char *out;
        unsigned char *in;
    } at;
    size_t left_bytes;
} hk_stream_req_t;

_Static_assert(sizeof(hk_stream_req_t) <= sizeof(hk_req_t), "stream: a request does not fit hk_req_t");
_Static_assert(_Alignof(hk_stream_req_t) <= _Alignof(hk_req_t), "stream: a request is not aligned in hk_req_t");

static hk_stream_t *stream_of(hk_ctx_t *ctx)
{
    return (hk_stream_t *)ctx;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void rest_polling(struct pollfd *ready, nfds_t count)
{
    while (poll(ready, count, -1) < 0 && errno == EINTR) {
    }
}

static void rest_spinning(struct pollfd *ready, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++) {
        ready[i].revents = ready[i].events;
    }
}

/* If oversubscribed, the peer cannot move a byte while this rank keeps the CPU. */
static void rest_yielding(struct pollfd *ready, nfds_t count)
{
    (void)sched_yield();
    rest_spinning(ready, count);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* After an error the caller may reuse its memory, so no request may stay in a queue. */
static void forget_requests(hk_stream_t *stream)
{
    for (size_t i = 0; i < stream->active_count; i++) {
        stream->active[i]->head = stream->active[i]->tail = NULL;
    }
    stream->active_count = 0;
}

__attribute__((cold, noinline)) hk_status_t hk_stream_lose(hk_stream_t *stream, int peer, int reason)
{
    const bool is_gone = reason == 0 || reason == EPIPE || reason == ECONNRESET || reason == ETIMEDOUT;
    if (!stream->is_lost && is_gone) {
        hk_log(stream->base.rank, "%s: rank %d is gone", stream->base.tp->name, peer);
    } else if (!stream->is_lost) {
        hk_log(stream->base.rank, "%s: rank %d can't be reached: %s", stream->base.tp->name, peer, strerror(reason));
    }
    stream->is_lost = true;
    forget_requests(stream);
    return is_gone ? HK_ERR_PEER : HK_ERR_SYSTEM;
}

static hk_status_t set_nonblocking(hk_stream_t *stream, const hk_stream_end_t *end, bool on)
{
    const int flags = fcntl(end->fd, F_GETFL);
    if (flags < 0 || fcntl(end->fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) != 0) {
        return hk_stream_lose(stream, end->peer, errno);
    }
    return HK_OK;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* One attempt for the oldest request of an end; removes it when it is complete. */
static inline hk_status_t move(hk_stream_t *stream, hk_stream_end_t *end)
{
    hk_stream_req_t *req = end->head;
    const bool is_out = end->events == POLLOUT;
    const ssize_t count = is_out ? stream->put_now(end->fd, req->at.out, req->left_bytes)
                                 : stream->get_now(end->fd, req->at.in, req->left_bytes);
    if (count > 0) {
        req->at.out += count;
        req->left_bytes -= (size_t)count;
        if (req->left_bytes == 0) {
            end->head = req->next;
        }
        return HK_OK;
    }
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        end->is_ready = false;
        stream->would_block_count++;
        return HK_OK;
    }
    if (count < 0 && errno == EINTR) {
        return HK_OK;
    }
    return hk_stream_lose(stream, end->peer, count == 0 ? 0 : errno);
}

/* Nothing can move: wait. */
static void rest_all(hk_stream_t *stream)
{
    for (size_t i = 0; i < stream->active_count; i++) {
        stream->ready[i] = (struct pollfd){.fd = stream->active[i]->fd, .events = stream->active[i]->events};
    }
    stream->rest(stream->ready, (nfds_t)stream->active_count);
    for (size_t i = 0; i < stream->active_count; i++) {
        stream->active[i]->is_ready = stream->ready[i].revents != 0;
    }
}

/* Move all queues until they are empty, or until *left_bytes is 0. Every end gets its turn, so a peer that sends
 * continuously blocks no other. */
static hk_status_t move_all(hk_stream_t *stream, const size_t *left_bytes)
{
    while (stream->active_count > 0 && (left_bytes == NULL || *left_bytes > 0)) {
        bool can_move = false;
        for (size_t i = 0; i < stream->active_count;) {
            hk_stream_end_t *end = stream->active[i];
            if (end->is_ready) {
                HK_TRY(move(stream, end));
                can_move |= end->is_ready;
            }
            if (end->head == NULL) {
                stream->active[i] = stream->active[--stream->active_count];
            } else {
                i++;
            }
        }
        if (!can_move && stream->active_count > 0) {
            rest_all(stream);
        }
    }
    return HK_OK;
}

static inline void enqueue(hk_stream_t *stream, hk_stream_end_t *end, hk_stream_req_t *req)
{
    req->next = NULL;
    if (end->head == NULL) {
        end->head = req;
        end->is_ready = true;
        stream->active[stream->active_count++] = end;
    } else {
        end->tail->next = req;
    }
    end->tail = req;
}

static inline hk_status_t make_ready(hk_stream_t *stream, hk_stream_end_t *end)
{
    if (!stream->switches || end->is_switched) {
        return HK_OK;
    }
    end->is_switched = true;
    return set_nonblocking(stream, end, true);
}

hk_status_t hk_stream_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *room)
{
    hk_stream_t *stream = stream_of(ctx);
    hk_stream_end_t *end = &stream->out[peer];
    hk_stream_req_t *req = (hk_stream_req_t *)room;
    req->at.out = size_bytes == 0 ? &stream->pad : buf;
    req->left_bytes = size_bytes == 0 ? 1 : size_bytes;
    HK_TRY(make_ready(stream, end));
    /* A message without predecessors usually leaves at once, so the peer need not wait until this rank waits. */
    if (end->head == NULL) {
        const ssize_t count = stream->put_now(end->fd, req->at.out, req->left_bytes);
        if (count == (ssize_t)req->left_bytes) {
            return HK_OK;
        }
        if (count > 0) {
            req->at.out += count;
            req->left_bytes -= (size_t)count;
        }
    }
    enqueue(stream, end, req);
    return HK_OK;
}

hk_status_t hk_stream_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *room)
{
    hk_stream_t *stream = stream_of(ctx);
    hk_stream_end_t *end = &stream->in[peer];
    hk_stream_req_t *req = (hk_stream_req_t *)room;
    req->at.in = size_bytes == 0 ? &stream->pad : buf;
    req->left_bytes = size_bytes == 0 ? 1 : size_bytes;
    HK_TRY(make_ready(stream, end));
    enqueue(stream, end, req);
    return HK_OK;
}

hk_status_t hk_stream_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs; /* the queues hold all open requests of the array */
    (void)count;
    return move_all(stream_of(ctx), NULL);
}

/* ---- plain calls ------------------------------------------------------------------------------------------------- */

/* Requests are under way: a plain call joins the queue. That keeps the order and moves the others meanwhile. Two
 * ranks may both post a receive and then send more than the kernel buffers. */
__attribute__((noinline)) static hk_status_t join_queue(hk_stream_t *stream, hk_stream_end_t *end, hk_stream_req_t *req)
{
    HK_TRY(make_ready(stream, end));
    enqueue(stream, end, req);
    return move_all(stream, &req->left_bytes);
}

__attribute__((noinline)) static hk_status_t switch_back(hk_stream_t *stream, hk_stream_end_t *end)
{
    end->is_switched = false;
    return set_nonblocking(stream, end, false);
}

/* After an attempt that moved nothing: HK_OK if it should be repeated. */
static inline hk_status_t wait_for(hk_stream_t *stream, const hk_stream_end_t *end, ssize_t count)
{
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        struct pollfd ready = {.fd = end->fd, .events = end->events};
        stream->would_block_count++;
        stream->rest(&ready, 1);
        return HK_OK;
    }
    return count < 0 && errno == EINTR ? HK_OK : hk_stream_lose(stream, end->peer, count == 0 ? 0 : errno);
}

/* is_out is a constant in each call. */
static inline __attribute__((always_inline)) hk_status_t carry(hk_stream_t *stream, hk_stream_end_t *end,
                                                               unsigned char *buf, size_t size_bytes, const bool is_out)
{
    unsigned char *at = size_bytes == 0 ? &stream->pad : buf;
    size_t left_bytes = size_bytes == 0 ? 1 : size_bytes;
    if (stream->active_count > 0) {
        hk_stream_req_t req = {.at.in = at, .left_bytes = left_bytes};
        return join_queue(stream, end, &req);
    }
    if (end->is_switched) {
        HK_TRY(switch_back(stream, end));
    }
    ssize_t (*const put)(int, const void *, size_t) = stream->family->put;
    ssize_t (*const get)(int, void *, size_t) = stream->family->get;
    for (;;) {
        const ssize_t count = is_out ? put(end->fd, at, left_bytes) : get(end->fd, at, left_bytes);
        if (count == (ssize_t)left_bytes) {
            return HK_OK;
        }
        if (count > 0) {
            at += count;
            left_bytes -= (size_t)count;
        } else {
            HK_TRY(wait_for(stream, end, count));
        }
    }
}

hk_status_t hk_stream_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    hk_stream_t *stream = stream_of(ctx);
    unsigned char *only_read = (unsigned char *)(uintptr_t)buf;
    return carry(stream, &stream->out[peer], only_read, size_bytes, true);
}

hk_status_t hk_stream_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    hk_stream_t *stream = stream_of(ctx);
    return carry(stream, &stream->in[peer], buf, size_bytes, false);
}

/* One attempt for the queued requests: a rank that only probes would otherwise never send the rest of a message. */
__attribute__((noinline)) static hk_status_t move_once(hk_stream_t *stream)
{
    for (size_t i = 0; i < stream->active_count;) {
        hk_stream_end_t *end = stream->active[i];
        end->is_ready = true;
        HK_TRY(move(stream, end));
        if (end->head == NULL) {
            stream->active[i] = stream->active[--stream->active_count];
        } else {
            i++;
        }
    }
    return HK_OK;
}

/* One poll(2), as in a program on sockets. True: the first byte is there, or the peer is gone. */
hk_status_t hk_stream_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    hk_stream_t *stream = stream_of(ctx);
    struct pollfd ready = {.fd = stream->in[peer].fd, .events = POLLIN};
    *is_there_p = poll(&ready, 1, 0) > 0;
    return stream->active_count > 0 ? move_once(stream) : HK_OK;
}

/* ---- byte streams ------------------------------------------------------------------------------------------------ */

/* Handle the result of a call. A call that must not wait, or was interrupted, may have moved nothing; then it is
 * repeated. */
static inline hk_status_t has_moved(hk_stream_t *stream, int peer, ssize_t count, const bool may_be_none,
                                    size_t *moved_p)
{
    if (count > 0) {
        *moved_p = (size_t)count;
        return HK_OK;
    }
    *moved_p = 0;
    if (may_be_none && count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return HK_OK;
    }
    return hk_stream_lose(stream, peer, count == 0 ? 0 : errno);
}

hk_status_t hk_stream_write_some(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p)
{
    hk_stream_t *stream = stream_of(ctx);
    ssize_t count;
    do {
        count = stream->family->put(stream->out[peer].fd, buf, size_bytes);
    } while (count < 0 && errno == EINTR);
    return has_moved(stream, peer, count, false, moved_p);
}

hk_status_t hk_stream_read_some(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p)
{
    hk_stream_t *stream = stream_of(ctx);
    ssize_t count;
    do {
        count = stream->family->get(stream->in[peer].fd, buf, size_bytes);
    } while (count < 0 && errno == EINTR);
    return has_moved(stream, peer, count, false, moved_p);
}

hk_status_t hk_stream_write_now(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p)
{
    hk_stream_t *stream = stream_of(ctx);
    return has_moved(stream, peer, stream->put_now(stream->out[peer].fd, buf, size_bytes), true, moved_p);
}

hk_status_t hk_stream_read_now(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p)
{
    hk_stream_t *stream = stream_of(ctx);
    return has_moved(stream, peer, stream->get_now(stream->in[peer].fd, buf, size_bytes), true, moved_p);
}

/* Only a family without calls that never wait needs O_NONBLOCK. A plain message then polls instead of sleeping.
 * is_switched stays off, so that it does not switch the descriptor back. */
hk_status_t hk_stream_mode(hk_ctx_t *ctx, int peer, bool write_now, bool read_now)
{
    hk_stream_t *stream = stream_of(ctx);
    if (!stream->switches) {
        return HK_OK;
    }
    stream->out[peer].is_switched = stream->in[peer].is_switched = false;
    HK_TRY(set_nonblocking(stream, &stream->out[peer], write_now));
    return set_nonblocking(stream, &stream->in[peer], read_now);
}

/* ---- choosing the variant ---------------------------------------------------------------------------------------- */

hk_status_t hk_stream_start(hk_stream_t *stream, bool oversubscribed)
{
    const hk_stream_family_t *family = stream->family;
    const int variant = stream->base.tp->variant;
    const bool blocks = variant != HK_STREAM_NONBLOCK && variant != HK_STREAM_SPIN;
    stream->rest = variant != HK_STREAM_SPIN ? rest_polling : oversubscribed ? rest_yielding : rest_spinning;
    stream->switches = blocks && family->put_now == NULL;
    stream->put_now = blocks && family->put_now != NULL ? family->put_now : family->put;
    stream->get_now = blocks && family->get_now != NULL ? family->get_now : family->get;
    for (int peer = 0; !blocks && peer < stream->base.size; peer++) {
        if (peer != stream->base.rank) {
            HK_TRY(set_nonblocking(stream, &stream->out[peer], true));
            HK_TRY(set_nonblocking(stream, &stream->in[peer], true));
        }
    }
    return HK_OK;
}

const char *hk_stream_wait_name(const hk_transport_t *tp)
{
    static const char *const names[] = {"blocking", "non-blocking with poll", "non-blocking, spinning", "io_uring",
                                        "io_uring with a thread of the kernel (SQPOLL)"};
    return names[tp->variant];
}
