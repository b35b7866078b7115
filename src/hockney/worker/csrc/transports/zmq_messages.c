/* Messages by ZeroMQ: the timed hooks, and the tables. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "zmq_hooks.h"

_Static_assert(sizeof(hk_zmq_req_t) <= sizeof(hk_req_t), "zmq: a request does not fit hk_req_t");
_Static_assert(_Alignof(hk_zmq_req_t) <= _Alignof(hk_req_t), "zmq: a request is not aligned in hk_req_t");

static hk_zmq_t *zmq_of(hk_ctx_t *ctx)
{
    return (hk_zmq_t *)ctx;
}

/* ---- one attempt ------------------------------------------------------------------------------------------------- */

static long zmq_put_pair(hk_zmq_t *zmq, int peer, const void *buf, size_t size_bytes, int flags)
{
    return zmq_send(zmq->out[peer], buf, size_bytes, flags);
}

static long zmq_get_pair(hk_zmq_t *zmq, int peer, void *buf, size_t size_bytes, int flags)
{
    return zmq_recv(zmq->in[peer], buf, size_bytes, flags);
}

static long zmq_put_pushed(hk_zmq_t *zmq, int peer, const void *buf, size_t size_bytes, int flags)
{
    zmq_msg_t message;
    const int64_t rank = zmq->base.rank;
    if (zmq_msg_init_size(&message, HK_ZMQ_HEAD_BYTES + size_bytes) != 0) {
        return -1;
    }
    unsigned char *at = zmq_msg_data(&message);
    memcpy(at, &rank, HK_ZMQ_HEAD_BYTES);
    memcpy(at + HK_ZMQ_HEAD_BYTES, buf, size_bytes);
    if (zmq_msg_send(&message, zmq->out[peer], flags) >= 0) {
        return (long)size_bytes;
    }
    const int reason = errno;
    (void)zmq_msg_close(&message);
    errno = reason;
    return -1;
}

/* Copies a message out and closes it. */
static long zmq_take(zmq_msg_t *message, void *buf, size_t size_bytes)
{
    const size_t came_bytes = zmq_msg_size(message) - HK_ZMQ_HEAD_BYTES;
    memcpy(buf, (unsigned char *)zmq_msg_data(message) + HK_ZMQ_HEAD_BYTES,
           came_bytes < size_bytes ? came_bytes : size_bytes);
    (void)zmq_msg_close(message);
    return (long)came_bytes;
}

__attribute__((cold, noinline)) static bool zmq_grow(hk_zmq_stash_t *stash)
{
    const size_t room = stash->room == 0 ? 64 : 2 * stash->room;
    zmq_msg_t *grown = malloc(room * sizeof *grown);
    if (grown == NULL) {
        errno = ENOMEM;
        return false;
    }
    for (size_t i = 0; i < stash->count; i++) {
        (void)zmq_msg_init(&grown[i]);
        (void)zmq_msg_move(&grown[i], &stash->message[(stash->first + i) % stash->room]);
    }
    free(stash->message);
    *stash = (hk_zmq_stash_t){grown, 0, stash->count, room};
    return true;
}

static bool zmq_keep(hk_zmq_t *zmq, int64_t from, zmq_msg_t *message)
{
    if (from < 0 || from >= zmq->base.size) {
        errno = EPROTO;
        return false;
    }
    hk_zmq_stash_t *stash = &zmq->stash[from];
    if (stash->count == stash->room && !zmq_grow(stash)) {
        return false;
    }
    zmq_msg_t *place = &stash->message[(stash->first + stash->count++) % stash->room];
    (void)zmq_msg_init(place);
    (void)zmq_msg_move(place, message);
    zmq->has_stashed = true;
    return true;
}

/* The next message of any rank; -1 with errno. */
static int64_t zmq_pull(hk_zmq_t *zmq, zmq_msg_t *message_p, int flags)
{
    int64_t from = -1;
    (void)zmq_msg_init(message_p);
    if (zmq_msg_recv(message_p, zmq->in[0], flags) < 0) {
        return -1;
    }
    if (zmq_msg_size(message_p) < HK_ZMQ_HEAD_BYTES) {
        (void)zmq_msg_close(message_p);
        errno = EPROTO;
        return -1;
    }
    memcpy(&from, zmq_msg_data(message_p), HK_ZMQ_HEAD_BYTES);
    return from;
}

static long zmq_get_pulled(hk_zmq_t *zmq, int peer, void *buf, size_t size_bytes, int flags)
{
    hk_zmq_stash_t *stash = &zmq->stash[peer];
    if (stash->count > 0) {
        zmq_msg_t *oldest = &stash->message[stash->first];
        stash->first = (stash->first + 1) % stash->room;
        stash->count--;
        return zmq_take(oldest, buf, size_bytes);
    }
    for (;;) {
        zmq_msg_t message;
        const int64_t from = zmq_pull(zmq, &message, flags);
        if (from == peer) {
            return zmq_take(&message, buf, size_bytes);
        }
        if (from < 0 || !zmq_keep(zmq, from, &message)) {
            return -1;
        }
    }
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

__attribute__((cold, noinline)) static hk_status_t zmq_refuse(hk_zmq_t *zmq, int peer, long came, size_t awaited)
{
    hk_log(zmq->base.rank, "%s: rank %d sent %ld B where %zu B were awaited", zmq->base.tp->name, peer, came, awaited);
    return hk_zmq_lose(zmq);
}

/* As many requests of an end as can be done now. */
static inline hk_status_t zmq_move_end(hk_zmq_t *zmq, hk_zmq_end_t *end, bool *has_moved_p)
{
    while (end->head != NULL) {
        hk_zmq_req_t *req = end->head;
        const long count = end->is_out ? zmq->kind->put(zmq, end->peer, req->buf, req->size_bytes, ZMQ_DONTWAIT)
                                       : zmq->kind->get(zmq, end->peer, req->buf, req->size_bytes, ZMQ_DONTWAIT);
        if (count < 0) {
            return errno == EAGAIN ? HK_OK : hk_zmq_look(zmq, end->peer, errno);
        }
        if (!end->is_out && count != (long)req->size_bytes) {
            return zmq_refuse(zmq, end->peer, count, req->size_bytes);
        }
        req->is_done = true;
        end->head = req->next;
        *has_moved_p = true;
    }
    return HK_OK;
}

static hk_status_t zmq_move(hk_zmq_t *zmq, bool *has_moved_p)
{
    for (size_t i = 0; i < zmq->active_count;) {
        hk_zmq_end_t *end = zmq->active[i];
        HK_TRY(zmq_move_end(zmq, end, has_moved_p));
        if (end->head == NULL) {
            zmq->active[i] = zmq->active[--zmq->active_count];
        } else {
            i++;
        }
    }
    return HK_OK;
}

/* Nothing can move: sleep until something can. */
static hk_status_t zmq_rest(hk_zmq_t *zmq)
{
    for (size_t i = 0; i < zmq->active_count; i++) {
        const hk_zmq_end_t *end = zmq->active[i];
        zmq->items[i] = (zmq_pollitem_t){.socket = end->is_out ? zmq->out[end->peer] : zmq->in[end->peer],
                                         .events = end->is_out ? ZMQ_POLLOUT : ZMQ_POLLIN};
    }
    const int count = zmq_poll(zmq->items, (int)zmq->active_count, HK_ZMQ_LOOK_MS);
    for (size_t i = 0; count <= 0 && i < zmq->active_count; i++) {
        HK_TRY(hk_zmq_look(zmq, zmq->active[i]->peer, count == 0 ? EAGAIN : errno));
    }
    return HK_OK;
}

/* Until all requests are done, or this one. */
static hk_status_t zmq_await(hk_zmq_t *zmq, const hk_zmq_req_t *req)
{
    for (;;) {
        bool has_moved = false;
        zmq->has_stashed = false;
        HK_TRY(zmq_move(zmq, &has_moved));
        if (zmq->active_count == 0 || (req != NULL && req->is_done)) {
            return HK_OK;
        }
        if (!has_moved && !zmq->has_stashed) {
            HK_TRY(zmq_rest(zmq));
        }
    }
}

static inline void zmq_enqueue(hk_zmq_t *zmq, hk_zmq_end_t *end, const void *buf, size_t size_bytes, hk_zmq_req_t *req)
{
    *req = (hk_zmq_req_t){.buf = (void *)(uintptr_t)buf, .size_bytes = size_bytes};
    if (end->head == NULL) {
        end->head = req;
        zmq->active[zmq->active_count++] = end;
    } else {
        end->tail->next = req;
    }
    end->tail = req;
}

/* ---- the hooks --------------------------------------------------------------------------------------------------- */

/* Other requests are under way: a plain call joins them, which keeps the order and moves them meanwhile. */
__attribute__((noinline)) static hk_status_t zmq_join(hk_zmq_t *zmq, hk_zmq_end_t *end, const void *buf,
                                                      size_t size_bytes)
{
    hk_zmq_req_t req;
    zmq_enqueue(zmq, end, buf, size_bytes, &req);
    return zmq_await(zmq, &req);
}

static hk_status_t zmq_hook_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    hk_zmq_t *zmq = zmq_of(ctx);
    if (zmq->active_count > 0) {
        return zmq_join(zmq, &zmq->ends[peer], buf, size_bytes);
    }
    while (zmq->kind->put(zmq, peer, buf, size_bytes, 0) < 0) {
        HK_TRY(hk_zmq_look(zmq, peer, errno));
    }
    return HK_OK;
}

static hk_status_t zmq_hook_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    hk_zmq_t *zmq = zmq_of(ctx);
    if (zmq->active_count > 0) {
        return zmq_join(zmq, &zmq->ends[ctx->size + peer], buf, size_bytes);
    }
    for (;;) {
        const long count = zmq->kind->get(zmq, peer, buf, size_bytes, 0);
        if (count == (long)size_bytes) {
            return HK_OK;
        }
        HK_TRY(count >= 0 ? zmq_refuse(zmq, peer, count, size_bytes) : hk_zmq_look(zmq, peer, errno));
    }
}

/* A message without predecessors usually leaves at once. */
static hk_status_t zmq_hook_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_zmq_t *zmq = zmq_of(ctx);
    hk_zmq_end_t *end = &zmq->ends[peer];
    if (end->head != NULL || zmq->kind->put(zmq, peer, buf, size_bytes, ZMQ_DONTWAIT) < 0) {
        zmq_enqueue(zmq, end, buf, size_bytes, (hk_zmq_req_t *)req);
    }
    return HK_OK;
}

static hk_status_t zmq_hook_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_zmq_t *zmq = zmq_of(ctx);
    zmq_enqueue(zmq, &zmq->ends[ctx->size + peer], buf, size_bytes, (hk_zmq_req_t *)req);
    return HK_OK;
}

static hk_status_t zmq_hook_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs; /* the queues hold all open requests of the array */
    (void)count;
    return zmq_await(zmq_of(ctx), NULL);
}

static hk_status_t zmq_hook_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    hk_zmq_t *zmq = zmq_of(ctx);
    bool has_moved = false;
    *is_there_p = false;
    HK_TRY(zmq_move(zmq, &has_moved));
    zmq_pollitem_t item = {.socket = zmq->in[peer], .events = ZMQ_POLLIN};
    while (zmq->stash[peer].count == 0 && zmq_poll(&item, 1, 0) > 0 && !zmq->kind->is_pair) {
        zmq_msg_t message;
        const int64_t from = zmq_pull(zmq, &message, ZMQ_DONTWAIT);
        if (from < 0 || !zmq_keep(zmq, from, &message)) {
            return hk_zmq_look(zmq, peer, errno);
        }
    }
    *is_there_p = zmq->kind->is_pair ? (item.revents & ZMQ_POLLIN) != 0 : zmq->stash[peer].count > 0;
    return HK_OK;
}

static const char *zmq_hook_library(const hk_ctx_t *ctx)
{
    return ((const hk_zmq_t *)ctx)->library;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

#define ZMQ_ROW(id, words, text, of_kind, more_caps, its_carrier, under, ...)                                          \
    const hk_transport_t hk_transport_##id = {.caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD |              \
                                                      HK_CAP_SYSCALLS | HK_CAP_PROBE | (more_caps),                    \
                                              .name = (words),                                                         \
                                              .summary = (text),                                                       \
                                              .carrier = (its_carrier),                                                \
                                              .own = &(of_kind),                                                       \
                                              .max_bytes = INT_MAX - HK_ZMQ_HEAD_BYTES,                                \
                                              .below = (under),                                                        \
                                              .open = hk_zmq_open,                                                     \
                                              .close = hk_zmq_close,                                                   \
                                              .library = zmq_hook_library,                                             \
                                              .alloc = hk_private_alloc,                                               \
                                              .free = hk_private_free,                                                 \
                                              .send = zmq_hook_send,                                                   \
                                              .recv = zmq_hook_recv,                                                   \
                                              .probe = zmq_hook_probe,                                                 \
                                              .isend = zmq_hook_isend,                                                 \
                                              .irecv = zmq_hook_irecv,                                                 \
                                              .wait_all = zmq_hook_wait_all,                                           \
                                              .now_ns = hk_real_now_ns,                                                \
                                              .compute = hk_real_compute,                                              \
                                              __VA_ARGS__}

static const hk_zmq_kind_t zmq_ipc = {"ipc", true, false, zmq_put_pair, zmq_get_pair};
static const hk_zmq_kind_t zmq_tcp = {"tcp", true, true, zmq_put_pair, zmq_get_pair};
static const hk_zmq_kind_t zmq_inproc = {"inproc", true, false, zmq_put_pair, zmq_get_pair};
static const hk_zmq_kind_t zmq_push = {"ipc", false, false, zmq_put_pushed, zmq_get_pulled};
static const hk_zmq_kind_t zmq_push_tcp = {"tcp", false, true, zmq_put_pushed, zmq_get_pulled};

ZMQ_ROW(zmq, "zmq", "PAIR sockets over ipc; ZeroMQ's own thread sends and receives", zmq_ipc, 0, HK_CARRIER_KERNEL,
        "unix", .below_remote = NULL);
ZMQ_ROW(zmq_tcp, "zmq:tcp", "PAIR sockets over TCP", zmq_tcp, HK_CAP_HOSTS, HK_CARRIER_KERNEL, "tcp",
        .below_remote = "tcp");
ZMQ_ROW(zmq_inproc, "zmq:inproc", "PAIR sockets between threads of one process", zmq_inproc, HK_CAP_THREADS,
        HK_CARRIER_MEMORY, "threads", .prepare = hk_zmq_prepare, .release = hk_zmq_release);
ZMQ_ROW(zmq_push, "zmq:push", "PUSH sockets to the one PULL socket of each rank, over ipc", zmq_push, 0,
        HK_CARRIER_KERNEL, "unix", .below_remote = NULL);
ZMQ_ROW(zmq_push_tcp, "zmq:push-tcp", "PUSH sockets to the one PULL socket of each rank, over TCP", zmq_push_tcp,
        HK_CAP_HOSTS, HK_CARRIER_KERNEL, "tcp", .below_remote = "tcp");
