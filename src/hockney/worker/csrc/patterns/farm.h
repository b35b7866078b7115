/* A trigger farm: a supervisor (rank 0), senders (ranks 1 .. S) with the fragments of events, and receivers (the
 * remaining ranks). Event e belongs to receiver e mod R. Shared by pushfarm, pullfarm and eventbuilder.
 *
 * With rate_hz events start on schedule. Event e is due e / rate_hz after the start of the stream, even if earlier
 * events have not ended. Its time runs from that moment to its end, so it includes a wait for a free place or a busy
 * supervisor. Times from the real start would omit these waits exactly when the farm is slow (coordinated omission,
 * G. Tene). */
#ifndef HK_FARM_H
#define HK_FARM_H

#include "delay.h"

/* The options of a farm, in this order. */
enum { HK_FARM_SENDERS, HK_FARM_IN_FLIGHT, HK_FARM_RATE, HK_FARM_COMPUTE, HK_FARM_BURST, HK_FARM_OPTIONS_COUNT };

// clang-format off
#define HK_FARM_OPTIONS \
    {"senders", NULL, 1, 1, 4094, "number of senders, from rank 1 on; the others receive"}, \
    {"in_flight", NULL, 1, 1, 1024, "events under way at once"}, \
    {"rate_hz", NULL, 0, 0, 1000000000, "events per second, started on schedule; 0: each as soon as possible"}, \
    {"delay_us", NULL, 0, 0, 1000000, "computation of a receiver for each event, in us; 0: none"}, \
    {"burst", NULL, 1, 1, 1024, "events that are due at once, with rate_hz"}
// clang-format on

/* A kind of farm: `own` of its pattern. `chosen`: the kind that the options choose, where they do; NULL: this one. */
typedef struct hk_farm_kind {
    const struct hk_farm_kind *(*chosen)(const hk_run_t *run);
    bool asks_receiver;   /* true: one start message, to the receiver; false: one to each sender */
    size_t per_sender;    /* a receiver's requests for each sender */
    size_t control_bytes; /* of messages that start or end an event; 0: the size of fragments */
    uint64_t marks;       /* a receiver's events have different buffers until so many have passed; 0: always the same */
    hk_status_t (*start)(hk_run_t *run, int receiver, hk_req_t *reqs); /* sends the start messages of one event */
    hk_status_t (*serve)(hk_run_t *run, uint64_t events);              /* a sender's part of `events` events */
    hk_status_t (*take)(hk_run_t *run);                                /* a receiver's part of one event */
} hk_farm_kind_t;

/* This rank's place in the farm; the pattern's state. */
typedef struct hk_farm {
    int senders, receivers;
    int next;          /* the receiver of the next event, from 0 */
    uint64_t begun;    /* the number of the next event since prepare */
    size_t in_flight;  /* maximum number of events under way */
    uint64_t events;   /* per repetition */
    int first;         /* receiver of the first event of the last repeat */
    uint64_t repeated; /* events of the last repeat */
    size_t fan;        /* start messages of an event */
    size_t control_bytes;
    uint64_t rate_hz, burst;
    double late;      /* events that started after they were due, because in_flight were under way */
    hk_delay_t delay; /* of a receiver, before it reports */
    hk_status_t (*start)(hk_run_t *run, int receiver, hk_req_t *reqs);
    hk_status_t (*supervise)(hk_run_t *run, uint64_t events);
    uint64_t ended[]; /* on schedule: events of this repeat, by receiver */
} hk_farm_t;

static inline hk_farm_t *hk_farm_of(const hk_run_t *run)
{
    return run->state;
}

static inline bool hk_farm_is_sender(const hk_run_t *run)
{
    return run->ctx->rank > 0 && run->ctx->rank <= (int)run->option[HK_FARM_SENDERS];
}

/* The rank of a receiver; receivers count from 0. */
static inline int hk_farm_rank(const hk_farm_t *farm, int receiver)
{
    return 1 + farm->senders + receiver;
}

static inline int hk_farm_after(const hk_farm_t *farm, int receiver)
{
    return receiver + 1 < farm->receivers ? receiver + 1 : 0;
}

/* This rank among the receivers. */
static inline int hk_farm_receiver(const hk_run_t *run)
{
    return run->ctx->rank - 1 - hk_farm_of(run)->senders;
}

/* The hooks. A repeat continues with the receiver after the last one; delays belong to receivers. */
bool hk_farm_fits(const hk_run_t *run, char *why, size_t len);
hk_plan_t hk_farm_plan(const hk_run_t *run);
hk_status_t hk_farm_prepare(hk_run_t *run);
hk_status_t hk_farm_repeat(hk_run_t *run, uint64_t reps);
bool hk_farm_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);
bool hk_farm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

/* How many events of the last repeat were this receiver's. */
uint64_t hk_farm_repeated(const hk_run_t *run);

/* What the tables of all farms share. */
#define HK_FARM_SHARED                                                                                                 \
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 3, .timed = HK_TIMED_ROOT, .stream = true, .events = true, \
    .senders = "senders", .repeat = hk_farm_repeat

/* Those of the farms whose fragments all have one size. */
#define HK_FARM_FIXED                                                                                                  \
    HK_FARM_SHARED, .fits = hk_farm_fits, .plan = hk_farm_plan, .prepare = hk_farm_prepare, .counter = hk_farm_counter

/* Starts that are one message to the receiver, which asks for its fragments. */
hk_status_t hk_farm_notify_receiver(hk_run_t *run, int receiver, hk_req_t *reqs);

/* start, serve and take of farms in which senders push. The supervisor sends a message to each sender, which counts
 * along to know the receiver and sends its fragment there. The receiver waits for all fragments, computes, and
 * reports. */
hk_status_t hk_farm_notify_senders(hk_run_t *run, int receiver, hk_req_t *reqs);
hk_status_t hk_farm_push(hk_run_t *run, uint64_t events);
hk_status_t hk_farm_take_fragments(hk_run_t *run);

#endif
