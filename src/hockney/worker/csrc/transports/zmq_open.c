/* cold */
/* ZeroMQ: joining and leaving a job, and finding out that a peer is gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../control.h"
#include "../family.h"
#include "../io.h"
#include <zmq.h>

#include "zmq_hooks.h"

enum { KEY_BYTES = 16, NAME_BYTES = 96, MEET_LIMIT_MS = 30000, FILES_OF_PEER = 10, ZMQ_GONE = -1 };

/* Where a rank can be connected to; one for each peer that connects, or its own for all. */
typedef char zmq_name_t[NAME_BYTES];

/* ---- peers that are gone ----------------------------------------------------------------------------------------- */

/* Read the events of a peer's socket. A stranger may connect to it and leave; the rank is gone with the last
 * connection, and stays so if its host connects again. */
static void zmq_note_events(hk_zmq_t *zmq, int peer)
{
    zmq_msg_t part;
    while (zmq->monitor[peer] != NULL) {
        uint16_t event = 0;
        (void)zmq_msg_init(&part);
        if (zmq_msg_recv(&part, zmq->monitor[peer], ZMQ_DONTWAIT) < 0) {
            (void)zmq_msg_close(&part);
            return;
        }
        memcpy(&event, zmq_msg_data(&part), sizeof event);
        (void)zmq_msg_recv(&part, zmq->monitor[peer], ZMQ_DONTWAIT); /* the address */
        (void)zmq_msg_close(&part);
        zmq->links[peer] += zmq->links[peer] < 0 ? 0 : event == ZMQ_EVENT_DISCONNECTED ? -1 : 1;
        if (zmq->links[peer] == 0) {
            zmq->links[peer] = ZMQ_GONE;
        }
    }
}

hk_status_t hk_zmq_lose(hk_zmq_t *zmq)
{
    for (size_t i = 0; i < zmq->active_count; i++) {
        zmq->active[i]->head = NULL;
    }
    zmq->active_count = 0;
    return HK_ERR_PEER;
}

hk_status_t hk_zmq_look(hk_zmq_t *zmq, int peer, int reason)
{
    const char *name = zmq->base.tp->name;
    zmq_note_events(zmq, peer);
    if (reason == EINTR || (reason == EAGAIN && zmq->links[peer] != ZMQ_GONE)) {
        return HK_OK;
    }
    if (reason == EAGAIN) {
        hk_log(zmq->base.rank, "%s: rank %d is gone", name, peer);
    } else {
        hk_log(zmq->base.rank, "%s: rank %d can't be reached: %s", name, peer, zmq_strerror(reason));
    }
    return hk_zmq_lose(zmq);
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

static void zmq_close_one(void *socket)
{
    if (socket != NULL) {
        (void)zmq_close(socket);
    }
}

void hk_zmq_close(hk_ctx_t *ctx)
{
    hk_zmq_t *zmq = (hk_zmq_t *)ctx;
    for (int peer = 0; peer < ctx->size; peer++) {
        zmq_close_one(zmq->monitor[peer]);
        zmq_close_one(zmq->out[peer]);
        for (hk_zmq_stash_t *stash = &zmq->stash[peer]; stash->count > 0; stash->count--) {
            (void)zmq_msg_close(&stash->message[(stash->first + stash->count - 1) % stash->room]);
        }
        free(zmq->stash[peer].message);
    }
    if (!zmq->kind->is_pair && zmq->in != NULL) {
        zmq_close_one(zmq->in[0]);
    }
    if (zmq->owns_context && zmq->context != NULL) {
        (void)zmq_ctx_term(zmq->context);
    }
    free(zmq->items);
    free(zmq->active);
    free(zmq->ends);
    free(zmq->stash);
    free(zmq->links);
    free(zmq->monitor);
    free(zmq->in);
    free(zmq->out);
    free(zmq);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static hk_status_t zmq_fail(const hk_zmq_t *zmq, const char *doing)
{
    return hk_fail(errno == EMFILE ? HK_ERR_UNSUPPORTED : HK_ERR_SYSTEM, zmq->base.rank, "%s: cannot %s: %s",
                   zmq->base.tp->name, doing, zmq_strerror(errno));
}

static bool zmq_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* A new socket, with ZeroMQ's own limits of 1000 messages. */
static void *zmq_make(const hk_zmq_t *zmq, int type)
{
    void *socket = zmq_socket(zmq->context, type);
    const bool beats = zmq->kind->has_heartbeat;
    if (socket == NULL || !zmq_set(socket, ZMQ_LINGER, 0) || !zmq_set(socket, ZMQ_SNDTIMEO, HK_ZMQ_LOOK_MS) ||
        !zmq_set(socket, ZMQ_RCVTIMEO, HK_ZMQ_LOOK_MS) || !zmq_set(socket, ZMQ_BACKLOG, zmq->base.size + 16) ||
        !zmq_set(socket, ZMQ_IPV6, 1) || !zmq_set(socket, ZMQ_HEARTBEAT_IVL, beats ? HK_ZMQ_HEARTBEAT_MS : 0) ||
        (beats && (!zmq_set(socket, ZMQ_HEARTBEAT_TIMEOUT, HK_ZMQ_SILENCE_MS) ||
                   !zmq_set(socket, ZMQ_RECONNECT_IVL, -1)))) { /* never: what is lost would be hidden */
        zmq_close_one(socket);
        return NULL;
    }
    return socket;
}

/* The socket's name for `peer`, where it listens. Names of ipc are of Linux's abstract ones, which leave no file. */
static hk_status_t zmq_listen(const hk_zmq_t *zmq, void *socket, const char *host, const unsigned char *key, int peer,
                              char *name_p)
{
    zmq_name_t name;
    size_t len = NAME_BYTES;
    if (zmq->kind->has_heartbeat) {
        const bool is_ipv6 = strchr(host, ':') != NULL;
        (void)snprintf(name, sizeof name, "tcp://%s%s%s:*", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "");
    } else {
        const bool is_abstract = strcmp(zmq->kind->scheme, "ipc") == 0;
        int used = snprintf(name, sizeof name, "%s://%shockney-", zmq->kind->scheme, is_abstract ? "@" : "");
        for (int i = 0; i < KEY_BYTES; i++) {
            used += snprintf(name + used, sizeof name - (size_t)used, "%02x", key[i]);
        }
        (void)snprintf(name + used, sizeof name - (size_t)used, "-%d-%d", zmq->base.rank, peer);
    }
    if (zmq_bind(socket, name) != 0 || zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, name_p, &len) != 0) {
        return zmq_fail(zmq, "listen");
    }
    return HK_OK;
}

/* Events of the socket that sends to a peer. Threads of one process end together, so inproc has none. */
static hk_status_t zmq_watch(hk_zmq_t *zmq, int peer)
{
    zmq_name_t name;
    (void)snprintf(name, sizeof name, "inproc://events-%d-%d", zmq->base.rank, peer);
    if (!zmq->owns_context) {
        return HK_OK;
    }
    zmq->monitor[peer] = zmq_make(zmq, ZMQ_PAIR);
    const int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
    if (zmq_socket_monitor(zmq->out[peer], name, events) != 0 || zmq->monitor[peer] == NULL ||
        zmq_connect(zmq->monitor[peer], name) != 0) {
        return zmq_fail(zmq, "watch a socket");
    }
    return HK_OK;
}

/* Make all sockets, and listen with those to which others connect: of a pair of ranks, the lower one's. */
static hk_status_t zmq_make_all(const hk_job_t *job, hk_zmq_t *zmq, const unsigned char *key, zmq_name_t *names)
{
    const bool is_between = job->remote != 0 && job->size > 1;
    char host[64] = "";
    HK_TRY(is_between ? hk_control_address(job->control, job->interface, host)
                      : hk_address_of_loopback(job->rank, host));
    if (!zmq->kind->is_pair) {
        zmq->in[0] = zmq_make(zmq, ZMQ_PULL);
        if (zmq->in[0] == NULL) {
            return zmq_fail(zmq, "open a socket");
        }
        HK_TRY(zmq_listen(zmq, zmq->in[0], host, key, job->rank, names[job->rank]));
    }
    for (int peer = 0; peer < job->size; peer++) {
        if (peer != job->rank) {
            zmq->out[peer] = zmq_make(zmq, zmq->kind->is_pair ? ZMQ_PAIR : ZMQ_PUSH);
            if (zmq->out[peer] == NULL) {
                return zmq_fail(zmq, "open a socket");
            }
            HK_TRY(zmq_watch(zmq, peer));
            if (zmq->kind->is_pair && peer > job->rank) {
                HK_TRY(zmq_listen(zmq, zmq->out[peer], host, key, peer, names[peer]));
            }
        }
        zmq->in[peer] = zmq->kind->is_pair ? zmq->out[peer] : zmq->in[0];
    }
    return HK_OK;
}

/* All ranks greet each other: connections are made now, and no other program has taken one. */
static hk_status_t zmq_greet(hk_zmq_t *zmq, const unsigned char *key)
{
    const int64_t until_ms = hk_now_ms() + MEET_LIMIT_MS;
    const char *name = zmq->base.tp->name;
    for (int turn = 0; turn < 2 * zmq->base.size; turn++) {
        const int peer = turn % zmq->base.size;
        unsigned char got[KEY_BYTES] = {0};
        long count = peer == zmq->base.rank ? KEY_BYTES : -1;
        while (count < 0) {
            count = turn < zmq->base.size ? zmq->kind->put(zmq, peer, key, KEY_BYTES, 0)
                                          : zmq->kind->get(zmq, peer, got, KEY_BYTES, 0);
            if (count < 0 && hk_now_ms() > until_ms) {
                return hk_fail(HK_ERR_PEER, zmq->base.rank, "%s: rank %d did not connect within %d s", name, peer,
                               MEET_LIMIT_MS / 1000);
            }
            HK_TRY(count < 0 ? hk_zmq_look(zmq, peer, errno) : HK_OK);
        }
        if (turn >= zmq->base.size && peer != zmq->base.rank &&
            (count != KEY_BYTES || memcmp(got, key, KEY_BYTES) != 0)) {
            return hk_fail(HK_ERR_PEER, zmq->base.rank, "%s: another program has connected in place of rank %d", name,
                           peer);
        }
    }
    return HK_OK;
}

static hk_status_t zmq_connect_all(hk_zmq_t *zmq, zmq_name_t *all)
{
    const size_t size = (size_t)zmq->base.size, rank = (size_t)zmq->base.rank;
    for (size_t peer = 0; peer < size; peer++) {
        const bool connects = zmq->kind->is_pair ? peer < rank : peer != rank;
        if (connects && zmq_connect(zmq->out[peer], all[peer * size + (zmq->kind->is_pair ? rank : peer)]) != 0) {
            return zmq_fail(zmq, "connect");
        }
    }
    return HK_OK;
}

/* names: [size], then those of all ranks. */
static hk_status_t zmq_join_job(const hk_job_t *job, hk_zmq_t *zmq, zmq_name_t *names)
{
    const size_t size = (size_t)job->size;
    zmq_name_t *all = names + size;
    struct {
        hk_status_t status;
        unsigned char key[KEY_BYTES];
    } shared = {.status = HK_OK};
    if (job->rank == 0) {
        shared.status = hk_draw_random(0, shared.key, sizeof shared.key);
    }
    HK_TRY(hk_control_broadcast(job->control, &shared, sizeof shared));
    HK_TRY(shared.status);
    const hk_status_t mine = zmq_make_all(job, zmq, shared.key, names);
    HK_TRY(hk_control_agree(job->control, mine));
    HK_TRY(hk_control_allgather(job->control, names, size * sizeof *names, all));
    hk_status_t status = zmq_connect_all(zmq, all);
    status = status == HK_OK ? zmq_greet(zmq, shared.key) : status;
    return hk_control_agree(job->control, status);
}

static hk_status_t zmq_create(const hk_transport_t *tp, const hk_job_t *job, hk_zmq_t **zmq_p)
{
    const size_t size = (size_t)job->size;
    hk_zmq_t *zmq = calloc(1, sizeof *zmq);
    if (zmq == NULL) {
        return HK_ERR_MEMORY;
    }
    zmq->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    zmq->kind = tp->own;
    zmq->out = calloc(size, sizeof(void *));
    zmq->in = calloc(size, sizeof(void *));
    zmq->monitor = calloc(size, sizeof(void *));
    zmq->links = calloc(size, sizeof *zmq->links);
    zmq->stash = calloc(size, sizeof *zmq->stash);
    zmq->ends = calloc(2 * size, sizeof *zmq->ends);
    zmq->active = calloc(2 * size, sizeof(hk_zmq_end_t *));
    zmq->items = calloc(2 * size, sizeof *zmq->items);
    if (zmq->out == NULL || zmq->in == NULL || zmq->monitor == NULL || zmq->links == NULL || zmq->stash == NULL ||
        zmq->ends == NULL || zmq->active == NULL || zmq->items == NULL) {
        zmq->base.size = 0; /* there may be no sockets to close */
        hk_zmq_close(&zmq->base);
        return HK_ERR_MEMORY;
    }
    for (int i = 0; i < 2 * job->size; i++) {
        zmq->ends[i] = (hk_zmq_end_t){.peer = i % job->size, .is_out = i < job->size};
    }
    zmq->context = job->shared;
    *zmq_p = zmq;
    return HK_OK;
}

/* A context of this process, after the fork: its thread is not inherited. */
static void *zmq_start_context(void)
{
    void *context = zmq_ctx_new();
    if (context != NULL) {
        (void)zmq_ctx_set(context, ZMQ_MAX_SOCKETS, zmq_ctx_get(context, ZMQ_SOCKET_LIMIT));
    }
    return context;
}

hk_status_t hk_zmq_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    const size_t size = (size_t)job->size;
    const bool is_shared = job->shared != NULL;
    hk_zmq_t *zmq = NULL;
    zmq_name_t *names = calloc(size * (size + 1), sizeof *names);
    hk_status_t mine = names == NULL ? HK_ERR_MEMORY : zmq_create(tp, job, &zmq);
    if (mine == HK_OK) {
        zmq->owns_context = !is_shared;
        zmq->context = is_shared ? job->shared : zmq_start_context();
        mine = zmq->context == NULL ? HK_ERR_MEMORY : HK_OK;
    }
    if (mine != HK_OK) {
        hk_log(job->rank, "%s: no memory for %d connections", tp->name, job->size);
    } else {
        mine = hk_allow_files(tp->name, job->size, size * (is_shared ? size : 1) * FILES_OF_PEER);
    }
    hk_status_t status = hk_control_agree(job->control, mine);
    if (mine == HK_OK && status == HK_OK) {
        status = zmq_join_job(job, zmq, names);
    }
    free(names);
    if (status != HK_OK || zmq == NULL) {
        if (zmq != NULL) {
            hk_zmq_close(&zmq->base);
        }
        return mine != HK_OK ? mine : status;
    }
    int major = 0, minor = 0, patch = 0;
    zmq_version(&major, &minor, &patch);
    (void)snprintf(zmq->library, sizeof zmq->library, "ZeroMQ %d.%d.%d (%s over %s)", major, minor, patch,
                   zmq->kind->is_pair ? "PAIR" : "PUSH and PULL", zmq->kind->scheme);
    *ctx_p = &zmq->base;
    return HK_OK;
}

/* Threads share a context: inproc is between its sockets. */
hk_status_t hk_zmq_prepare(const hk_transport_t *tp, int size, void **shared_p)
{
    (void)size;
    *shared_p = zmq_start_context();
    return *shared_p == NULL ? hk_fail(HK_ERR_MEMORY, 0, "%s: no memory for a context", tp->name) : HK_OK;
}

void hk_zmq_release(void *shared)
{
    (void)zmq_ctx_term(shared);
}

static int zmq_start(const hk_args_t *args, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return hk_local_start(args);
}

const hk_family_t hk_family = {.name = "zmq", .start = zmq_start};
