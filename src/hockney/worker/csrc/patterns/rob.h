/* Readout buffers (ROBs, the ranks 1 .. N-1) and the processor that reads every event from all of them and then
 * computes (rank 0). What robpush and robpull share: all but how a fragment comes. */
#ifndef HK_ROB_H
#define HK_ROB_H

#include "delay.h"

/* The options, in this order. */
enum { HK_ROB_DELAY_US, HK_ROB_DELAY_KIND, HK_ROB_READ, HK_ROB_BUFFERS };
enum { HK_READ_IN_TURN, HK_READ_PARALLEL };

// clang-format off
#define HK_ROB_OPTIONS \
    {"delay_us", NULL, 0, 0, 1000000, "computing after each event; 0: none"}, \
    {"delay_kind", "loop|clock|sleep", HK_DELAY_LOOP, 0, 0, \
     "a calibrated loop, busy until the clock says so, or asleep"}, \
    {"read", "in-turn|parallel", HK_READ_IN_TURN, 0, 0, "one message under way at a time, or one from each"}, \
    {"buffers", NULL, 1, 1, 2, "2: before computing, receives for the next event are posted"}
// clang-format on

/* How a fragment comes from one ROB into `into`: begin it with the requests at reqs, or have it at once. The `own` of
 * the two patterns. */
typedef struct hk_rob_kind {
    size_t requests;    /* that begin makes */
    size_t asked_bytes; /* what a ROB is asked with; 0: it isn't asked */
    hk_status_t (*begin)(hk_run_t *run, int rob, unsigned char *into, hk_req_t *reqs);
    hk_status_t (*read)(hk_run_t *run, int rob, unsigned char *into);
    /* The same in steps, as many as requests: start the i-th one's request. */
    hk_status_t (*step)(hk_run_t *run, int rob, unsigned char *into, size_t i, hk_req_t *req);
    hk_status_t (*serve)(hk_run_t *run, uint64_t reps); /* what a ROB does for so many events */
} hk_rob_kind_t;

/* The hooks. */
hk_plan_t hk_rob_plan(const hk_run_t *run);
hk_status_t hk_rob_prepare(hk_run_t *run);
hk_status_t hk_rob_repeat(hk_run_t *run, uint64_t reps);
bool hk_rob_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

#endif
