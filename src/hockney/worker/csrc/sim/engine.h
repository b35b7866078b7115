/* A simulated machine: its ranks, which are coroutines, the messages between them, and what these share.
 *
 * A rank has a clock of its own and runs ahead of the machine's: it is switched away from only when it waits for
 * something that is not yet known. Everything that ranks share (ports of nodes, links, channels of pairs) is only used
 * by events, which happen in the order of time; so it doesn't matter in which order ranks run. */
#ifndef HK_SIM_ENGINE_H
#define HK_SIM_ENGINE_H

#include "../transport.h"
#include "model.h"
#include "queue.h"
#include "switch.h"
#include "topology.h"

typedef struct hk_sim hk_sim_t;
typedef struct hk_sim_rank hk_sim_rank_t;
typedef struct hk_stream hk_stream_t;

typedef enum hk_event_kind {
    HK_EVENT_GO_ON,    /* a rank, in step with the machine */
    HK_EVENT_START,    /* a message comes to its channel */
    HK_EVENT_TRANSFER, /* rendezvous: both are there */
    HK_EVENT_CHANNEL,  /* a channel is free for this message */
    HK_EVENT_LAUNCH,   /* the sender's node lets a message go */
    HK_EVENT_ARRIVE,   /* a message comes to the receiver's node */
    HK_EVENT_WRITE,    /* a word that was put comes into memory */
    HK_EVENT_SLICE,    /* a turn of a CPU is cut short */
    HK_EVENT_DONE,     /* a turn of a CPU has done its work */
    HK_EVENT_RELEASE,  /* a turn that held a CPU gives it back */
    HK_EVENT_WANT,     /* a request of a rank that computes is done */
} hk_event_kind_t;

/* What a message of one length costs in one class, in ps. */
typedef struct hk_costs {
    struct hk_costs *next; /* of the same class */
    uint64_t bytes;
    hk_protocol_t protocol;
    uint64_t ps[HK_COSTS];
} hk_costs_t;

/* A send or a receive, in an hk_req_t. */
typedef struct hk_sim_req {
    hk_sim_rank_t *rank;
    struct hk_sim_req *next; /* of a channel's receives, or of those that are taken */
    uint64_t posted_ps;
    uint64_t done_ps;         /* when it is done, but for cpu_ps: once that is known */
    uint64_t cpu_ps;          /* what its rank's CPU then still has to do */
    struct hk_message *taken; /* synchronous: its channel has it since done_ps, and its end is not known */
    bool is_known, is_waited_for, is_receive;
    bool may_be_taken; /* it is waited for with others: when the channel has it, that will do */
} hk_sim_req_t;

/* What a message is waiting for or has done. */
typedef enum hk_stage {
    HK_STAGE_STARTED,  /* on its way to its channel */
    HK_STAGE_LAUNCHED, /* its first byte comes at ready_ps */
    HK_STAGE_ARRIVED,  /* eager: all of it is there at ready_ps */
} hk_stage_t;

typedef struct hk_message {
    struct hk_message *next;         /* of its channel's, without a receive */
    struct hk_message *next_waiting; /* for its channel */
    const hk_costs_t *costs;
    hk_sim_req_t *send, *recv;
    uint32_t from, to; /* ranks */
    uint64_t left_ps;  /* when its first byte left */
    uint64_t ready_ps;
    uint64_t transfer_ps; /* as the slowest link has it */
    bool has_receives;    /* its sender had some open */
    hk_stage_t stage;
    hk_operation_t kind;
    uint64_t *remote; /* of a put: where its word goes; NULL: nowhere that anybody looks at */
    uint64_t word;
} hk_message_t;

/* Messages from one rank to another, one of which is under way at a time. */
typedef struct hk_channel {
    uint64_t key;     /* 0: none is in this place */
    uint64_t free_ps; /* UINT64_MAX: not known yet */
    /* In the order in which they were started: messages that have no receive, or else receives without a message. */
    hk_message_t *first_message, *last_message;
    hk_sim_req_t *first_receive, *last_receive;
    hk_message_t *first_waiting, *last_waiting; /* for the channel */
} hk_channel_t;

typedef struct hk_channels {
    hk_channel_t *place;
    size_t room, used; /* room: a power of two */
} hk_channels_t;

/* What a rank waits for, for those who ask why nothing happens. */
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

/* CPUs of a node that more want than it has, and who waits for one. */
typedef struct hk_cpu {
    struct hk_turn *first, *last;
    uint32_t idle;
} hk_cpu_t;

/* A use of a CPU. */
typedef struct hk_turn {
    struct hk_turn *next; /* in the queue */
    hk_sim_rank_t *rank;
    hk_cpu_t *cpu;
    uint64_t left_ps, since_ps; /* what is still to do, and when it began to be done */
    bool is_over;
    bool holds, has_cpu; /* it keeps the CPU until it gives it back */
} hk_turn_t;

struct hk_sim_rank {
    hk_ctx_t base;
    hk_sim_t *sim;
    hk_place_t *place;         /* where it goes on */
    hk_sim_rank_t *next_ready; /* of those that can go on */
    uint64_t now_ps, cpu_ps;   /* its clock, and what its CPU has done */
    uint64_t sent_ps;          /* when the first byte of its last message comes to the receiver's node */
    uint32_t node;
    uint32_t unknown; /* how many requests that it waits for have no known end */
    uint32_t ahead;   /* messages started since it last was in step with the machine */
    uint32_t open;    /* receives that it has not waited for */
    uint32_t wait_peer;
    hk_wait_t wait;
    bool is_ready, is_done;
    /* Most often a rank has one receive and no message that waits: then its channel need not be looked up. */
    hk_sim_req_t *receive; /* NULL, or a receive from receive_from */
    uint32_t receive_from;
    uint32_t held;              /* receives and messages for this rank that wait in channels */
    hk_cpu_t *cpu;              /* NULL: its own */
    uint64_t random;            /* the state of its noise */
    struct hk_overlap *overlap; /* NULL: it does nothing but compute */
    uint32_t cpus_left;         /* CPUs of its node for it, where ranks don't share them */
    uint64_t puts_ps;           /* when all puts are done of which that is known */
    uint64_t word_ps;           /* what the word that came last costs whoever waits for it */
    uint32_t puts_open;         /* puts of which it is not */
};

/* When each part of a node is free again. */
typedef struct hk_node {
    uint64_t out_ps, in_ps, both_ps;
} hk_node_t;

struct hk_sim {
    const hk_model_t *model;
    hk_topology_t *topology;
    hk_transport_t tp; /* as the model has it */
    char library[HK_MODEL_NAME_BYTES + 16];
    int size;
    hk_sim_rank_t *ranks;
    hk_node_t *nodes;
    hk_stream_t *streams;
    hk_cpu_t *cpus; /* of each node; NULL: there is one for each rank */
    uint64_t slice_ps;
    size_t nodes_count;
    uint64_t *link_free_ps;
    double *kind_ps_per_byte;
    uint64_t *kind_latency_ps;
    uint64_t turn_ps;
    hk_costs_t **costs;            /* of each class, the last used one first */
    int only_class[HK_OPERATIONS]; /* the class of all pairs; -1: it depends */
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
    int live; /* ranks that are not done */
    void (*body)(hk_sim_rank_t *rank, void *arg);
    void *arg;
    void (*happen)(hk_sim_t *sim, hk_event_kind_t kind, void *what); /* what an event does */
    int in_barrier;
    uint64_t barrier_ps;
    uint64_t messages;   /* so far */
    size_t stride_bytes; /* from one rank's memory to the next one's; 0: all have the same */
};

/* A machine for so many ranks. HK_ERR_ARGUMENT, with one sentence in the log: they don't fit the model. */
hk_status_t hk_sim_open(const hk_model_t *model, int size, hk_sim_t **sim_p);
void hk_sim_close(hk_sim_t *sim);

/* All clocks at 0, nothing under way. */
void hk_sim_reset(hk_sim_t *sim, uint64_t seed);

/* Every rank runs body to its end. False: they wait for each other; why[0..len) says so. */
bool hk_sim_run(hk_sim_t *sim, void (*body)(hk_sim_rank_t *rank, void *arg), void *arg, char *why, size_t len);

/* ---- for the transport ------------------------------------------------------------------------------------------- */

/* Until somebody calls hk_sim_wake. */
void hk_sim_wait(hk_sim_rank_t *rank, hk_wait_t wait, int peer);
void hk_sim_wake(hk_sim_rank_t *rank);

/* Go on only when all that is earlier than this rank's clock has happened. */
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
void hk_sim_send(hk_sim_rank_t *rank, int peer, uint64_t bytes, hk_sim_req_t *req);
void hk_sim_recv(hk_sim_rank_t *rank, int peer, hk_sim_req_t *req);

/* The next message from peer, without a receive, is there. */
bool hk_sim_probe(hk_sim_rank_t *rank, int peer);

/* Wait for one request, or for several. */
void hk_sim_finish(hk_sim_req_t *req, hk_wait_t wait, int peer);
void hk_sim_finish_all(hk_sim_rank_t *rank, hk_req_t *reqs, size_t count);

void hk_sim_barrier(hk_sim_rank_t *rank);

/* Memory is symmetric: what a rank calls its own address stands for the same place of the peer's. Only puts of a word
 * are really carried, because nobody looks at anything else. */
void hk_sim_put(hk_sim_rank_t *rank, int peer, uint64_t *remote, const void *local, uint64_t bytes);
void hk_sim_get(hk_sim_rank_t *rank, int peer, uint64_t bytes);
void hk_sim_quiet(hk_sim_rank_t *rank);
void hk_sim_wait_word(hk_sim_rank_t *rank, const uint64_t *word, uint64_t value);

/* Compute while a request is under way. When it is done and the CPU is free for it, it is handled and next(arg) called;
 * true: there is another request in the place of the first. */
void hk_sim_overlap(hk_sim_rank_t *rank, uint64_t duration_ps, hk_sim_req_t *req, bool (*next)(void *), void *arg);

/* One call on a byte stream: how much it has moved. */
size_t hk_sim_write(hk_sim_rank_t *rank, int peer, uint64_t bytes, bool waits);
size_t hk_sim_read(hk_sim_rank_t *rank, int peer, uint64_t bytes, bool waits);
void hk_sim_close_streams(hk_sim_t *sim);

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static inline uint64_t hk_ps(double ns)
{
    return (uint64_t)(ns * 1000.0 + 0.5);
}

/* What a node makes of a cost of its own. */
static inline uint64_t hk_sim_at_node(const hk_sim_t *sim, uint32_t node, uint64_t cost_ps)
{
    const hk_model_t *model = sim->model;
    return node < model->node_factors_count ? (uint64_t)(model->node_factors[node] * (double)cost_ps + 0.5) : cost_ps;
}

/* The costs of a message between two ranks. */
const hk_costs_t *hk_sim_costs(hk_sim_t *sim, hk_operation_t operation, uint32_t from, uint32_t to, uint64_t bytes);

/* The channel between two ranks; it stays in its place until the next call. NULL: no memory. */
hk_channel_t *hk_channel_find(hk_channels_t *channels, uint32_t from, uint32_t to, uint64_t now_ps);

#endif
