/* A simulated machine: its ranks as coroutines, the messages between them, and shared resources.
 *
 * Each rank has its own clock and runs ahead of the machine. It switches away only to wait for something that is not
 * yet known. Only events use shared resources (ports of nodes, links, channels of pairs). Events happen in the order
 * of time, so the order in which ranks run does not matter. */
#ifndef HK_SIM_ENGINE_H
#define HK_SIM_ENGINE_H

#include "../transport.h"
#include "model.h"
#include "queue.h"
#include "switch.h"
#include "topology.h"

typedef struct hk_sim hk_sim_t;
/* The variant of the transport of a machine that has no exchange of all with all of its own. */
enum { HK_SIM_NO_ALLTOALL = 1 };

typedef struct hk_sim_rank hk_sim_rank_t;
typedef struct hk_stream hk_stream_t;

typedef enum hk_event_kind {
    HK_EVENT_GO_ON,    /* a rank continues, in step with the machine */
    HK_EVENT_START,    /* a message reaches its channel */
    HK_EVENT_TRANSFER, /* rendezvous: sender and receiver are ready */
    HK_EVENT_CHANNEL,  /* the channel is free for this message */
    HK_EVENT_LAUNCH,   /* the sender's node releases a message */
    HK_EVENT_ARRIVE,   /* a message reaches the receiver's node */
    HK_EVENT_WRITE,    /* a put word is written to memory */
    HK_EVENT_SLICE,    /* a time slice of a CPU ends */
    HK_EVENT_DONE,     /* a turn of a CPU has finished its work */
    HK_EVENT_RELEASE,  /* a turn that held a CPU releases it */
    HK_EVENT_WANT,     /* a request of a computing rank is done */
    HK_EVENT_SEGMENT,  /* of TCP: a segment reaches the next link, its receiver, or its sender again */
    HK_EVENT_TIMER,    /* of TCP: a connection has waited for an acknowledgement */
} hk_event_kind_t;

/* Costs in ps of a message of one size in one class. */
typedef struct hk_costs {
    struct hk_costs *next; /* in the same class */
    uint64_t bytes;
    hk_protocol_t protocol;
    uint64_t ps[HK_COSTS];
} hk_costs_t;

/* A send or a receive, stored in an hk_req_t. */
typedef struct hk_sim_req {
    hk_sim_rank_t *rank;
    struct hk_sim_req *next; /* in a channel's receives, or among taken ones */
    uint64_t posted_ps;
    uint64_t done_ps;         /* when it is done, except for cpu_ps; valid if known */
    uint64_t cpu_ps;          /* CPU work of its rank that remains after done_ps */
    struct hk_message *taken; /* synchronous: the channel has had it since done_ps; its end is unknown */
    bool is_known, is_waited_for, is_receive;
    bool may_be_taken;   /* its rank waits for several: done when the channel takes it */
    uint32_t room_bytes; /* of a receive: how much the message may have, and where its data goes, if it has any */
    void *room;
} hk_sim_req_t;

/* How far a message has travelled. */
typedef enum hk_stage {
    HK_STAGE_STARTED,  /* on the way to its channel */
    HK_STAGE_LAUNCHED, /* its first byte arrives at ready_ps */
    HK_STAGE_ARRIVED,  /* eager: it has arrived completely at ready_ps */
} hk_stage_t;

typedef struct hk_message {
    struct hk_message *next;         /* in its channel, without a receive */
    struct hk_message *next_waiting; /* in the queue for its channel */
    const hk_costs_t *costs;
    hk_sim_req_t *send, *recv;
    uint32_t from, to;
    uint64_t left_ps; /* when its first byte left */
    uint64_t ready_ps;
    uint64_t transfer_ps; /* on the slowest link */
    uint64_t end_byte;    /* with TCP: where it ends in the stream of its connection */
    bool has_receives;    /* the sender had open receives when it sent */
    bool has_data;        /* up to 8 bytes are in `word`, more in `copy` */
    hk_stage_t stage;
    hk_traffic_t kind;
    union {
        uint64_t *remote; /* of a put: the destination of its word; NULL: none that is ever read */
        void *copy;
    };
    uint64_t word;
} hk_message_t;

/* The messages from one rank to another. At most one is under way at a time. */
typedef struct hk_channel {
    uint64_t key;     /* 0: unused entry */
    uint64_t free_ps; /* UINT64_MAX: unknown */
    /* In the order of their start: messages without a receive, or receives without a message. One of the lists is
     * empty. */
    hk_message_t *first_message, *last_message;
    hk_sim_req_t *first_receive, *last_receive;
    hk_message_t *first_waiting, *last_waiting; /* for the channel */
} hk_channel_t;

typedef struct hk_channels {
    hk_channel_t *place;
    size_t room, used; /* room: a power of two */
} hk_channels_t;

/* The reason for a rank's wait, for the description of a deadlock. */
typedef enum hk_wait {
    HK_WAIT_NOTHING,
    HK_WAIT_RECV,
    HK_WAIT_SEND,
    HK_WAIT_ALL,
    HK_WAIT_BARRIER,
    HK_WAIT_WORD,
    HK_WAIT_CPU,
    HK_WAIT_QUIET,
    HK_WAIT_STREAM
} hk_wait_t;

/* The CPUs of a node with more ranks than CPUs, and the queue for them. */
typedef struct hk_cpu {
    struct hk_turn *first, *last;
    uint32_t idle;
} hk_cpu_t;

/* One use of a CPU. */
typedef struct hk_turn {
    struct hk_turn *next; /* in the queue */
    hk_sim_rank_t *rank;
    hk_cpu_t *cpu;
    uint64_t left_ps, since_ps; /* remaining work, and when it was resumed */
    bool is_over;
    bool holds, has_cpu; /* holds: it keeps the CPU until HK_EVENT_RELEASE */
} hk_turn_t;

struct hk_sim_rank {
    hk_ctx_t base;
    hk_sim_t *sim;
    hk_place_t *place;         /* where it continues */
    hk_sim_rank_t *next_ready; /* in the list of ready ranks */
    uint64_t now_ps, cpu_ps;   /* its clock, and its CPU time */
    uint64_t sent_ps;          /* when the first byte of its last message reaches the receiver's node */
    uint32_t node;
    uint32_t unknown; /* requests it waits for whose end is unknown */
    uint32_t ahead;   /* messages started since it was last in step with the machine */
    uint32_t open;    /* receives it has not waited for */
    uint32_t wait_peer;
    hk_wait_t wait;
    bool is_ready, is_done;
    /* Usually a rank has one receive and no waiting message: a fast path without looking up the channel. */
    hk_sim_req_t *receive; /* NULL, or a receive from receive_from */
    uint32_t receive_from;
    uint32_t held;              /* receives and messages for this rank that wait in channels */
    hk_cpu_t *cpu;              /* NULL: a CPU for this rank alone */
    uint64_t random;            /* state of the noise generator */
    struct hk_overlap *overlap; /* NULL: no overlapping computation */
    uint32_t cpus_left;         /* CPUs of its node for this rank, if ranks do not share them */
    uint64_t puts_ps;           /* when the puts of known end are complete */
    uint64_t word_ps;           /* CPU cost of the last written word for a rank that waits for it */
    uint32_t puts_open;         /* puts whose end is unknown */
};

/* When each part of a node becomes free. */
typedef struct hk_node {
    uint64_t out_ps, in_ps, both_ps;
} hk_node_t;

struct hk_sim {
    const hk_model_t *model;
    hk_topology_t *topology;
    hk_transport_t tp; /* as the model defines it */
    char library[HK_MODEL_NAME_BYTES + 16];
    int size;
    hk_sim_rank_t *ranks;
    hk_node_t *nodes;
    hk_stream_t *streams;
    hk_cpu_t *cpus; /* of each node; NULL: one for each rank */
    uint64_t slice_ps;
    size_t nodes_count;
    uint64_t *link_free_ps;
    struct hk_tcp *tcp; /* NULL: links have no end of room, and lose nothing */
    double *kind_ps_per_byte;
    uint64_t *kind_latency_ps;
    uint64_t turn_ps;
    hk_costs_t **costs;          /* of each class, most recently used first */
    int only_class[HK_TRAFFICS]; /* the class of all pairs; -1: it depends on the pair */
    hk_queue_t queue;
    hk_channels_t channels;
    hk_message_t *free_messages;
    struct hk_block *blocks; /* of messages */
    uint64_t now_ps;
    hk_sim_rank_t *first_ready, *last_ready;
    hk_stacks_t stacks;
    hk_place_t *main;
    bool is_starting; /* some ranks have not begun */
    bool no_memory;
    int live; /* ranks that have not ended */
    void (*body)(hk_sim_rank_t *rank, void *arg);
    void *arg;
    void (*happen)(hk_sim_t *sim, hk_event_kind_t kind, void *what); /* handles an event */
    int in_barrier;
    uint64_t barrier_ps;
    uint64_t messages; /* so far */
    /* Times need no data, so messages have some only in the repetition that is verified. */
    bool carries;
    bool has_misfit;              /* a message met a receive of another size */
    size_t data_bytes, data_most; /* of messages under way, and their limit: above it there is no memory */
    size_t stride_bytes;          /* between the memory of successive ranks; 0: all share one */
};

/* A machine for `size` ranks. HK_ERR_ARGUMENT, with one sentence in the log: the model has too little room. */
hk_status_t hk_sim_open(const hk_model_t *model, int size, hk_sim_t **sim_p);
void hk_sim_close(hk_sim_t *sim);

/* Set all clocks to 0 and forget all messages. */
void hk_sim_reset(hk_sim_t *sim, uint64_t seed);

/* Run body on every rank to its end. False: they wait for each other; why[0..len) describes it. */
bool hk_sim_run(hk_sim_t *sim, void (*body)(hk_sim_rank_t *rank, void *arg), void *arg, char *why, size_t len);

/* ---- for the transport ------------------------------------------------------------------------------------------- */

static inline hk_sim_rank_t *hk_sim_rank_of(hk_ctx_t *ctx)
{
    return (hk_sim_rank_t *)(void *)ctx;
}

/* Wait until another rank or an event calls hk_sim_wake. */
void hk_sim_wait(hk_sim_rank_t *rank, hk_wait_t wait, int peer);
void hk_sim_wake(hk_sim_rank_t *rank);

/* Continue only after all events earlier than this rank's clock. */
void hk_sim_step(hk_sim_rank_t *rank);

/* Whether nothing can happen before this rank's clock. */
static inline bool hk_sim_is_next(const hk_sim_rank_t *rank)
{
    const hk_sim_t *sim = rank->sim;
    return !sim->is_starting && sim->first_ready == NULL &&
           (sim->queue.count == 0 || sim->queue.heap[0].at_ps > rank->now_ps);
}

/* Use the rank's CPU. */
void hk_sim_work(hk_sim_rank_t *rank, uint64_t duration_ps);

/* Start a message or a receive. */
void hk_sim_send(hk_sim_rank_t *rank, int peer, const void *buf, uint64_t bytes, hk_sim_req_t *req);
void hk_sim_recv(hk_sim_rank_t *rank, int peer, void *buf, uint64_t bytes, hk_sim_req_t *req);

/* Whether the next message from peer has arrived and has no receive. */
bool hk_sim_probe(hk_sim_rank_t *rank, int peer);

/* Wait for one request, or for several. */
void hk_sim_finish(hk_sim_req_t *req, hk_wait_t wait, int peer);
void hk_sim_finish_all(hk_sim_rank_t *rank, hk_req_t *reqs, size_t count);

void hk_sim_barrier(hk_sim_rank_t *rank);

/* The hooks of transport.h. Memory is symmetric: an address of this rank denotes the same place in the peer's memory.
 * Puts of one word always carry data, because patterns read them. */
hk_status_t hk_sim_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t bytes);
hk_status_t hk_sim_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t bytes);
hk_status_t hk_sim_quiet(hk_ctx_t *ctx);
hk_status_t hk_sim_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value);

/* Compute while a request is under way. When it is done and gets the CPU, it completes and next(arg) is called. next
 * returns true if it started another request in its place. */
void hk_sim_overlap(hk_sim_rank_t *rank, uint64_t duration_ps, hk_sim_req_t *req, bool (*next)(void *), void *arg);

/* One call on a byte stream; returns the bytes moved. */
size_t hk_sim_write(hk_sim_rank_t *rank, int peer, const void *buf, uint64_t bytes, bool waits);
size_t hk_sim_read(hk_sim_rank_t *rank, int peer, void *buf, uint64_t bytes, bool waits);
void hk_sim_close_streams(hk_sim_t *sim);

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* A clock that reaches this time, 13 days, ends the simulation. Costs and sums saturate at or above it, so none wraps
 * round before that: a clock below it is right. */
#define HK_END_PS ((uint64_t)1 << 60)

static inline uint64_t hk_whole_ps(double ps)
{
    return ps < (double)HK_END_PS ? (uint64_t)(ps + 0.5) : HK_END_PS;
}

static inline uint64_t hk_ps(double ns)
{
    return hk_whole_ps(ns * 1000.0);
}

static inline uint64_t hk_sum_ps(uint64_t at_ps, uint64_t more_ps)
{
    const uint64_t sum_ps = at_ps + more_ps;
    return sum_ps < 2 * HK_END_PS ? sum_ps : 2 * HK_END_PS;
}

/* A cost multiplied by the node's factor. */
static inline uint64_t hk_sim_at_node(const hk_sim_t *sim, uint32_t node, uint64_t cost_ps)
{
    const hk_model_t *model = sim->model;
    return node < model->node_factors_count ? hk_whole_ps(model->node_factors[node] * (double)cost_ps) : cost_ps;
}

/* The costs of a message between two ranks. */
const hk_costs_t *hk_sim_costs(hk_sim_t *sim, hk_traffic_t operation, uint32_t from, uint32_t to, uint64_t bytes);

/* The channel between two ranks; valid until the next call. NULL: no memory. */
hk_channel_t *hk_channel_find(hk_channels_t *channels, uint32_t from, uint32_t to, uint64_t now_ps);

#endif
