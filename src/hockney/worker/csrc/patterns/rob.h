/* Readout buffers (ROBs, ranks 1 .. N-1), and a processor (rank 0) that reads every event from all of them and then
 * computes. Shared by robpush and robpull, which differ in how a fragment is requested. */
#ifndef HK_ROB_H
#define HK_ROB_H

#include "delay.h"

/* The options, in this order. */
enum { HK_ROB_DELAY_US, HK_ROB_DELAY_KIND, HK_ROB_READ, HK_ROB_BUFFERS };
enum { HK_READ_IN_TURN, HK_READ_PARALLEL };

// clang-format off
#define HK_ROB_OPTIONS \
    {"delay_us", NULL, 0, 0, 1000000, "computation after each event; 0: none"}, \
    {"delay_kind", "loop|clock|sleep", HK_DELAY_LOOP, 0, 0, \
     "a calibrated loop, a loop that reads the clock, or sleep"}, \
    {"read", "in-turn|parallel", HK_READ_IN_TURN, 0, 0, "one message under way at a time, or one from each"}, \
    {"buffers", NULL, 1, 1, 2, "2: before computing, receives for the next event are posted"}
// clang-format on

/* How one ROB's fragment arrives in `into`: `begin` starts the requests at reqs, `read` waits for it. `own` of the
 * two patterns. */
typedef struct hk_rob_kind {
    size_t requests;    /* started by begin */
    size_t asked_bytes; /* size of a request to a ROB; 0: none is sent */
    hk_status_t (*begin)(hk_run_t *run, int rob, unsigned char *into, hk_req_t *reqs);
    hk_status_t (*read)(hk_run_t *run, int rob, unsigned char *into);
    /* The same in steps: start the i-th request. */
    hk_status_t (*step)(hk_run_t *run, int rob, unsigned char *into, size_t i, hk_req_t *req);
    hk_status_t (*serve)(hk_run_t *run, uint64_t reps); /* a ROB's part of `reps` events */
} hk_rob_kind_t;

/* The hooks. */
hk_plan_t hk_rob_plan(const hk_run_t *run);
hk_status_t hk_rob_prepare(hk_run_t *run);
hk_status_t hk_rob_repeat(hk_run_t *run, uint64_t reps);
bool hk_rob_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

/* What the tables of both patterns share. */
#define HK_ROB_SHARED                                                                                                  \
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 2, .timed = HK_TIMED_ROOT, .law = HK_LAW_MESSAGES,         \
    .stream = true, .events = true, .option = {HK_ROB_OPTIONS}, .plan = hk_rob_plan, .prepare = hk_rob_prepare,        \
    .repeat = hk_rob_repeat, .expected = hk_rob_expected, .counter = hk_state_counter

#endif
