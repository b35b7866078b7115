/* One direction of messages between two ranks: what oneway and pairs are made of. */
#ifndef HK_FLOW_H
#define HK_FLOW_H

#include "delay.h"

/* The options of a pattern made of flows, in this order. */
enum { HK_FLOW_UNTIL, HK_FLOW_WINDOW };
enum { HK_UNTIL_ACKED, HK_UNTIL_SENT };

// clang-format off
#define HK_FLOW_OPTION_UNTIL \
    {"until", "acked|sent", HK_UNTIL_ACKED, 0, 0, \
     "stop the clock when the receiver has acknowledged the last message, or when the last send has returned"}

#define HK_FLOW_OPTIONS \
    HK_FLOW_OPTION_UNTIL, \
    {"window", NULL, 1, 1, 1024, "messages under way at once; 1: plain send and receive"}
// clang-format on

/* How many messages of a window have a receive buffer of their own. Short ones all do, so that each is verified; long
 * ones share, as in the OSU benchmarks: sixteen buffers of 4 MiB would measure the cache instead of the transport. */
size_t hk_flow_places(size_t bytes, size_t window);

/* One repetition is one window of messages. */
hk_plan_t hk_flow_plan(const hk_run_t *run, int flows);

/* reps windows to or from peer, and at the end the acknowledgement if the option asks for one. With a delay, plain
 * messages, and computing after each. */
hk_status_t hk_flow_send(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay);
hk_status_t hk_flow_receive(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay);

/* For patterns in which rank 0 sends to all others: it takes an acknowledgement from each, if the option asks for it;
 * where there are no messages, all ranks come to a barrier. */
hk_status_t hk_flow_acknowledge_root(hk_run_t *run);

#endif
