/* ZeroMQ: a socket for each pair of ranks (PAIR), or one to receive from all (PULL) and one to send to each (PUSH).
 *
 * A message is one of ZeroMQ's. Of PUSH and PULL it begins with its sender's rank, as the receiver takes them in the
 * order in which they come, and keeps those of other ranks until they are asked for. A wait looks every second whether
 * a peer is still connected: a queue takes messages for one that is gone, and sends none back. */
#ifndef HK_ZMQ_HOOKS_H
#define HK_ZMQ_HOOKS_H

#include <zmq.h>

#include "../transport.h"

enum {
    HK_ZMQ_LOOK_MS = 1000,
    HK_ZMQ_HEARTBEAT_MS = 1000, /* over TCP, whose peer may end without a word */
    HK_ZMQ_SILENCE_MS = 5000,
    HK_ZMQ_HEAD_BYTES = 8, /* the sender's rank; a multiple of a word keeps the payload aligned */
};

struct hk_zmq;

/* The `own` of a table. put and get make one attempt and return the message's size, or -1 with errno. */
typedef struct hk_zmq_kind {
    const char *scheme;
    bool is_pair, has_heartbeat;
    long (*put)(struct hk_zmq *zmq, int peer, const void *buf, size_t size_bytes, int flags);
    long (*get)(struct hk_zmq *zmq, int peer, void *buf, size_t size_bytes, int flags);
} hk_zmq_kind_t;

/* A request in the caller's memory. */
typedef struct __attribute__((may_alias)) hk_zmq_req {
    struct hk_zmq_req *next;
    void *buf;
    size_t size_bytes;
    bool is_done;
} hk_zmq_req_t;

/* One direction of a pair of ranks. */
typedef struct hk_zmq_end {
    int peer;
    bool is_out;
    hk_zmq_req_t *head, *tail;
} hk_zmq_end_t;

/* Messages of one rank that came before they were asked for: a ring that grows. */
typedef struct hk_zmq_stash {
    zmq_msg_t *message;
    size_t first, count, room;
} hk_zmq_stash_t;

typedef struct hk_zmq {
    hk_ctx_t base;
    const hk_zmq_kind_t *kind;
    void *context;
    bool owns_context;
    void **out, **in;      /* [size] sockets; with PAIR the same, with PULL `in` is one */
    void **monitor;        /* [size] events of `out`; NULL: none */
    int *links;            /* [size] connections of `out`; below 0: the rank is gone */
    hk_zmq_stash_t *stash; /* [size] */
    bool has_stashed;      /* since the last rest */
    hk_zmq_end_t *ends;    /* [2 * size]: out, then in */
    hk_zmq_end_t **active; /* [2 * size], active_count used: ends with requests */
    zmq_pollitem_t *items; /* [2 * size] */
    size_t active_count;
    char library[96];
} hk_zmq_t;

/* zmq_open.c */
hk_status_t hk_zmq_prepare(const hk_transport_t *tp, int size, void **shared_p);
void hk_zmq_release(void *shared);
hk_status_t hk_zmq_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);
void hk_zmq_close(hk_ctx_t *ctx);

/* A message has failed, which is logged: no request may stay in a queue, as its memory goes with the point. */
hk_status_t hk_zmq_lose(hk_zmq_t *zmq);

/* After an attempt with peer that moved nothing, for `reason`: HK_OK if it should be repeated. Logs why not. */
hk_status_t hk_zmq_look(hk_zmq_t *zmq, int peer, int reason);

#endif
