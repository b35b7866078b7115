/* A trigger farm: a supervisor (rank 0), the senders 1 .. S that hold the fragments of events, and the receivers, the
 * remaining ranks. Event number e belongs to receiver e mod R. What pushfarm and pullfarm share. */
#ifndef HK_FARM_H
#define HK_FARM_H

#include "../pattern.h"

/* The options of a farm, in this order. */
enum { HK_FARM_SENDERS, HK_FARM_IN_FLIGHT };

// clang-format off
#define HK_FARM_OPTIONS \
    {"senders", NULL, 1, 1, 4094, "number of senders, from rank 1 on; the others receive"}, \
    {"in_flight", NULL, 1, 1, 64, "events under way at once"}
// clang-format on

/* The supervisor's requests that start an event: fan of them, all to senders or one to the receiver. */
typedef hk_status_t hk_farm_start_t(hk_run_t *run, int receiver, hk_req_t *reqs);

/* This rank's place in the farm; the pattern's state. */
typedef struct hk_farm {
    int senders, receivers;
    int next;          /* the receiver of the next event, from 0 */
    size_t in_flight;  /* events under way at once */
    uint64_t events;   /* of one repetition */
    int first;         /* the receiver of the first event of the last repeat */
    uint64_t repeated; /* events of the last repeat */
    size_t fan;        /* messages that start an event */
    hk_farm_start_t *start;
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

/* fan: as in hk_farm_t. per_sender: a receiver's requests for each sender. */
hk_plan_t hk_farm_plan(const hk_run_t *run, size_t fan, size_t per_sender);
hk_status_t hk_farm_prepare(hk_run_t *run, size_t fan, hk_farm_start_t *start);

/* What a sender does for `events` events; what a receiver does for one event. */
typedef hk_status_t hk_farm_serve_t(hk_run_t *run, uint64_t events);
typedef hk_status_t hk_farm_take_t(hk_run_t *run);

/* The timed loop. The next one goes on with the receiver where this one ended. */
hk_status_t hk_farm_repeat(hk_run_t *run, uint64_t reps, hk_farm_serve_t *serve, hk_farm_take_t *take);

/* The blocks that the supervisor and the receivers must have. */
bool hk_farm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

#endif
