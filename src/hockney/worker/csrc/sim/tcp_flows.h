/* The connections of tcp.h and the segments on their way: for the files tcp*.c only. */
#ifndef HK_SIM_TCP_FLOWS_H
#define HK_SIM_TCP_FLOWS_H

#include "tcp.h"

enum { HK_TCP_BLOCK_SEGMENTS = 256 };

typedef struct hk_flow hk_flow_t;

/* Bytes of a stream on their way, then the acknowledgement of them on its way back. At the receiver: bytes that came
 * before others that are missing. At the sender: a record of bytes that were sent. */
typedef struct hk_tcp_segment {
    struct hk_tcp_segment *next; /* among the free ones, or of those that wait for missing bytes */
    hk_flow_t *flow;
    uint64_t first, end;      /* in the stream */
    uint64_t sent_ps, number; /* counts what the connection sends */
    uint64_t acknowledged;    /* the byte that the receiver misses next */
    uint32_t hop;             /* links crossed */
    bool is_again, is_back;
} hk_tcp_segment_t;

typedef struct hk_tcp_block {
    struct hk_tcp_block *next;
    hk_tcp_segment_t segment[HK_TCP_BLOCK_SEGMENTS];
} hk_tcp_block_t;

/* A connection in one direction. Its bytes are numbered from 0. */
struct hk_flow {
    uint64_t key;
    uint32_t from, to;
    hk_route_t route;
    uint64_t back_ps; /* of an acknowledgement */
    uint64_t left_ps; /* when its last segment left the host */
    /* the sender: bytes passed to it; sent first next; acknowledged */
    uint64_t end, next, acknowledged;
    hk_tcp_segment_t *sent, *last_sent; /* on their way, in the order in which they were sent */
    hk_tcp_segment_t *lost, *last_lost; /* to be sent again, in the order of their bytes */
    uint64_t pipe, number;              /* bytes of `sent`; of the last segment */
    double window, threshold;           /* bytes */
    double trip_ps, deviation_ps;
    uint64_t recover; /* a recovery ends when all below this byte are acknowledged */
    uint32_t backoff;
    bool is_recovering, is_slow, has_timer; /* is_slow: the recovery began with a timeout */
    bool will_probe, is_probed; /* the timer is for a probe; the tail was sent again, and is not acknowledged */
    uint64_t due_ps, timer_ps;  /* when the sender waits no longer; when the timer that runs ends */
    hk_message_t *first_message, *last_message;
    /* the receiver: the byte that it misses next, and what it has after that, in order */
    uint64_t missing;
    hk_tcp_segment_t *ahead;
};

typedef struct hk_tcp_counts {
    uint64_t again, timeouts, drops, inner_drops; /* inner: at ports that lead to another switch */
} hk_tcp_counts_t;

struct hk_tcp {
    hk_flow_t **flow; /* a hash table; room: a power of two */
    size_t room, used;
    hk_tcp_block_t *blocks;
    hk_tcp_segment_t *free_segments;
    hk_tcp_counts_t *counts; /* by receiving rank */
    uint64_t state;          /* of random numbers */
    hk_hop_t *port;          /* of a shared buffer: the ports that are in use */
    size_t ports;
    bool *is_port;
};

/* A segment comes to its next link, or to its receiver. */
void hk_tcp_go_on(hk_sim_t *sim, hk_tcp_segment_t *segment);

/* The sender's part of the events of tcp.h. */
void hk_tcp_run_timer(hk_sim_t *sim, hk_flow_t *flow);
void hk_tcp_take_acknowledgement(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment);

/* The connection that a message takes. NULL: no memory. */
hk_flow_t *hk_tcp_flow_of(hk_sim_t *sim, const hk_message_t *message);

/* A segment with this content; NULL: no memory, and the simulation ends. */
hk_tcp_segment_t *hk_tcp_segment_new(hk_sim_t *sim, const hk_tcp_segment_t *content);
void hk_tcp_segment_drop(hk_tcp_t *tcp, hk_tcp_segment_t *segment);

#endif
