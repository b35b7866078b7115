/* A machine model, as the control plane sends it (docs/machines.md describes the lines): costs of messages, places
 * of ranks, and connections. */
#ifndef HK_SIM_MODEL_H
#define HK_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../status.h"

enum { HK_MODEL_NAME_BYTES = 64, HK_MODEL_LEVELS_MAX = 8 };

/* The parts of a message's cost. */
typedef enum hk_cost {
    HK_COST_SEND_CPU,  /* the sender's CPU */
    HK_COST_RECV_CPU,  /* the receiver's CPU */
    HK_COST_LATENCY,   /* from departure to arrival of the first byte, without that of links */
    HK_COST_TRANSFER,  /* from arrival of the first byte to that of the last; the pair's channel is busy meanwhile */
    HK_COST_OUT,       /* how long the sender's node starts no other message */
    HK_COST_BOTH,      /* the same, if the sender has open receives */
    HK_COST_IN,        /* how long the receiver's node is busy, from the first byte on */
    HK_COST_NODE,      /* work of either node, for outgoing and incoming messages one after another */
    HK_COST_DUPLEX,    /* extra transfer time if another message travels in the opposite direction */
    HK_COST_REST,      /* synchronous, late receive: the remaining transfer, without the first packet */
    HK_COST_EXCHANGE,  /* extra latency if the receiver has an outgoing message */
    HK_COST_LATE,      /* the receiver's CPU, for a message that arrived before its receive */
    HK_COST_HANDSHAKE, /* rendezvous: from when both sides are ready to the start of the transfer; get: the request */
    HK_COST_ACK, /* synchronous: from the end of the transfer to the return of the send; put: the same for quiet */
    HK_COSTS,
} hk_cost_t;

/* fixed + per_byte * bytes + per_packet * packets. */
typedef struct hk_line {
    double fixed_ns, per_byte_ns, per_packet_ns;
} hk_line_t;

/* The parts of a byte stream's cost. */
typedef enum hk_stream_cost {
    HK_STREAM_WRITE, /* CPU, for a call that moves bytes */
    HK_STREAM_READ,
    HK_STREAM_POLL,  /* CPU, for one that moves nothing */
    HK_STREAM_DRAIN, /* the receiver's node, until a write can be read; one write after another */
    HK_STREAM_ACK,   /* extra time of a waiting write */
    HK_STREAM_COSTS,
} hk_stream_cost_t;

typedef enum hk_protocol { HK_EAGER, HK_RENDEZVOUS, HK_SYNCHRONOUS } hk_protocol_t;

typedef struct hk_segment {
    uint64_t up_to_bytes; /* UINT64_MAX: no limit */
    uint64_t packet_bytes;
    hk_protocol_t protocol;
    hk_line_t cost[HK_COSTS];
} hk_segment_t;

/* The operations. A class holds pairs whose messages of one operation cost the same. */
typedef enum hk_traffic { HK_TWO_SIDED, HK_PUT, HK_GET, HK_TRAFFICS } hk_traffic_t;

typedef struct hk_class {
    char name[HK_MODEL_NAME_BYTES];
    hk_traffic_t operation;
    bool same_node;                      /* only pairs on one node */
    uint32_t switches_min, switches_max; /* on the route */
    size_t first_segment, segments_count;
} hk_class_t;

typedef enum hk_shape { HK_SHAPE_SWITCH, HK_SHAPE_TREE, HK_SHAPE_TORUS, HK_SHAPE_DRAGONFLY, HK_SHAPE_GRAPH } hk_shape_t;

typedef struct hk_level {
    double bytes_per_s; /* 0: unlimited */
    double latency_ns;
} hk_level_t;

typedef struct hk_edge {
    uint32_t a, b; /* nodes first, then switches */
    hk_level_t own;
    bool has_own; /* otherwise the link has the level 0 */
} hk_edge_t;

/* A route other than the shortest: `count` vertices from first_vertex on in `vertices`, ends included. */
typedef struct hk_via {
    size_t first_vertex, count;
} hk_via_t;

typedef enum hk_noise { HK_NOISE_NONE, HK_NOISE_LOGNORMAL, HK_NOISE_EXPONENTIAL } hk_noise_t;

typedef struct hk_model {
    char name[HK_MODEL_NAME_BYTES];
    uint64_t ranks_max; /* 0: no limit */
    uint64_t ranks_per_node;
    uint64_t node_cpus;
    double slice_ns;
    double compute_fixed_ns, compute_factor;
    double flops_per_s; /* 0: unknown */
    hk_noise_t noise;
    double noise_amount; /* sigma, or mean in ns */

    hk_shape_t shape;
    uint64_t size[HK_MODEL_LEVELS_MAX];        /* torus: dimensions; tree: children; dragonfly, graph: as in the line */
    uint64_t width[HK_MODEL_LEVELS_MAX];       /* tree: parents of each */
    size_t levels;                             /* numbers in size */
    hk_level_t level[HK_MODEL_LEVELS_MAX + 1]; /* 0: default for all levels */
    bool has_level[HK_MODEL_LEVELS_MAX + 1];
    double turn_ns;
    hk_edge_t *edges;
    hk_via_t *vias;
    uint32_t *vertices;
    size_t edges_count, vias_count, vertices_count;

    uint32_t *places; /* the node of each rank */
    size_t places_count;

    hk_class_t *classes;
    hk_segment_t *segments;
    size_t classes_count, segments_count;

    double *node_factors;      /* the slowdown of each node; NULL: 1 for all */
    size_t node_factors_count; /* later nodes have 1 */

    /* Of the output ports of switches, and of TCP (tcp.h). */
    uint64_t switch_buffer_bytes;
    bool switch_is_shared, has_tcp;
    double tcp_min_rto_ns;
    uint64_t tcp_window_bytes; /* 0: no limit */
    double tcp_probe_ns;       /* 0: the tail of what was sent is not probed */
    double tcp_jitter;         /* a segment leaves its host late, by a random part of this times its time on the link */
    uint64_t tcp_mss_bytes, tcp_header_bytes, tcp_initial_window;

    uint64_t stream_buffer_bytes;
    hk_line_t stream_cost[HK_STREAM_COSTS]; /* without packets */
    double own_block_per_byte_ns;           /* of the all-to-all: a copy of the rank's own block */
    double barrier_fixed_ns, barrier_per_round_ns;
    bool has_barrier, has_alltoall, has_stream;
} hk_model_t;

/* Reads a model. HK_ERR_ARGUMENT, with one sentence in the log: its file does not exist or is invalid. */
hk_status_t hk_model_read(const char *path, hk_model_t *model_p);
void hk_model_free(hk_model_t *model);

/* Whether it has a class for an operation. */
bool hk_model_has(const hk_model_t *model, hk_traffic_t operation);

#endif
