/* A trigger farm: a supervisor (rank 0), the senders 1 .. S that hold the fragments of events, and the receivers, the
 * remaining ranks. Event number e belongs to receiver e mod R. What pushfarm, pullfarm and eventbuilder share.
 *
 * With rate_hz events start on schedule: event e is due e / rate_hz after the stream began, whether the ones before it
 * have ended or not, and its time is from that moment to its end. An event that starts late, because in_flight others
 * are under way or the supervisor was busy, has waited as a trigger would, and its wait is in its time. To count from
 * the real start instead would leave out the waits just when the farm is slow (coordinated omission, G. Tene). */
#ifndef HK_FARM_H
#define HK_FARM_H

#include "delay.h"

/* The options of a farm, in this order. */
enum { HK_FARM_SENDERS, HK_FARM_IN_FLIGHT, HK_FARM_RATE, HK_FARM_COMPUTE, HK_FARM_OPTIONS_COUNT };

// clang-format off
#define HK_FARM_OPTIONS \
    {"senders", NULL, 1, 1, 4094, "number of senders, from rank 1 on; the others receive"}, \
    {"in_flight", NULL, 1, 1, 1024, "events under way at once"}, \
    {"rate_hz", NULL, 0, 0, 1000000000, "events a second, started on schedule; 0: each as soon as it may"}, \
    {"compute_us", NULL, 0, 0, 1000000, "what a receiver computes for each event, in us; 0: nothing"}
// clang-format on

/* How a farm works: its pattern's `own`. */
typedef struct hk_farm_kind {
    bool asks_receiver;   /* one message starts an event, to its receiver; else one to each sender */
    size_t per_sender;    /* a receiver's requests for each sender */
    size_t control_bytes; /* of the messages that start an event and end it; 0: as long as fragments */
    hk_status_t (*start)(hk_run_t *run, int receiver, hk_req_t *reqs); /* the supervisor's messages that start one */
    hk_status_t (*serve)(hk_run_t *run, uint64_t events);              /* what a sender does for so many events */
    hk_status_t (*take)(hk_run_t *run);                                /* what a receiver does for one */
} hk_farm_kind_t;

/* This rank's place in the farm; the pattern's state. */
typedef struct hk_farm {
    int senders, receivers;
    int next;          /* the receiver of the next event, from 0 */
    size_t in_flight;  /* events under way at once */
    uint64_t events;   /* of one repetition */
    int first;         /* the receiver of the first event of the last repeat */
    uint64_t repeated; /* events of the last repeat */
    size_t fan;        /* messages that start an event */
    size_t control_bytes;
    uint64_t rate_hz;
    hk_delay_t delay; /* of a receiver, before it reports */
    hk_status_t (*start)(hk_run_t *run, int receiver, hk_req_t *reqs);
    hk_status_t (*supervise)(hk_run_t *run, uint64_t events);
    uint64_t ended[]; /* on schedule: of each receiver, events of this repeat */
} hk_farm_t;

static inline hk_farm_t *hk_farm_of(const hk_run_t *run)
{
    return run->state;
}

static inline bool hk_farm_is_sender(const hk_run_t *run)
{
    return run->ctx->rank > 0 && run->ctx->rank <= (int)run->option[HK_FARM_SENDERS];
}

/* receiver, from 0, as a rank. */
static inline int hk_farm_rank(const hk_farm_t *farm, int receiver)
{
    return 1 + farm->senders + receiver;
}

static inline int hk_farm_after(const hk_farm_t *farm, int receiver)
{
    return receiver + 1 < farm->receivers ? receiver + 1 : 0;
}

/* The hooks. A repeat goes on with the receiver where the last one ended; delays are those of receivers. */
bool hk_farm_fits(const hk_run_t *run, char *why, size_t len);
hk_plan_t hk_farm_plan(const hk_run_t *run);
hk_status_t hk_farm_prepare(hk_run_t *run);
hk_status_t hk_farm_repeat(hk_run_t *run, uint64_t reps);
bool hk_farm_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);
bool hk_farm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

/* Of farms in which senders push, as their kind's start, serve and take: all senders are told of an event, in a message
 * as long as if it said the receiver, which they count along; each sends its fragment there; the receiver has them all,
 * computes, and reports. */
hk_status_t hk_farm_tell_senders(hk_run_t *run, int receiver, hk_req_t *reqs);
hk_status_t hk_farm_push(hk_run_t *run, uint64_t events);
hk_status_t hk_farm_take_fragments(hk_run_t *run);

#endif
