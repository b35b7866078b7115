/* Messages between two ranks, in one direction or in both: the core of oneway, pairs and flows. */
#ifndef HK_FLOW_H
#define HK_FLOW_H

#include "delay.h"

/* The options of flow patterns, in this order. */
enum { HK_FLOW_UNTIL, HK_FLOW_WINDOW, HK_FLOW_ANSWER, HK_FLOW_OPTIONS_COUNT };
enum { HK_UNTIL_ACKED, HK_UNTIL_SENT };
enum { HK_ANSWER_SAMPLE, HK_ANSWER_WINDOW };

// clang-format off
#define HK_FLOW_OPTION_UNTIL \
    {"until", "acked|sent", HK_UNTIL_ACKED, 0, 0, \
     "stop the clock at the receiver's acknowledgement of the last message, or when the last send returns"}

#define HK_FLOW_OPTIONS \
    HK_FLOW_OPTION_UNTIL, \
    {"window", NULL, 1, 1, 1024, "messages under way at once; 1: plain send and receive"}, \
    {"answer", "sample|window", HK_ANSWER_SAMPLE, 0, 0, \
     "one acknowledgement for each sample, or an answer of 1 byte to each window, as OSU and IMB have it"}
// clang-format on

/* The number of messages of a window with separate receive buffers. Short messages all have one, so that each is
 * verified. Long ones share buffers, as in the OSU benchmarks: sixteen buffers of 4 MiB would measure the cache. */
size_t hk_flow_places(size_t bytes, size_t window);

/* A repetition is one window of messages. `both`: in each direction. */
hk_plan_t hk_flow_plan(const hk_run_t *run, int flows, bool both);

/* For the hook `fits`: whether these options suit each other. */
bool hk_flow_fits(const hk_run_t *run, char *why, size_t len);

/* `reps` windows to or from peer, then the acknowledgement if the option requests it. With a delay: plain messages,
 * and a computation after each. */
hk_status_t hk_flow_send(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay);
hk_status_t hk_flow_receive(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay);

/* `reps` windows of all requests to or from peer, whatever the options say. `answered`: an answer of 1 byte comes back,
 * to the place behind all messages in `in`. */
hk_status_t hk_flow_send_windows(hk_run_t *run, int peer, uint64_t reps, bool answered);
hk_status_t hk_flow_receive_windows(hk_run_t *run, int peer, uint64_t reps, bool answered);

/* The same in both directions at once: half of the requests are receives. The rank that begins gets the answers. */
hk_status_t hk_flow_exchange_windows(hk_run_t *run, int peer, bool begins, uint64_t reps, bool answered);

/* `reps` windows in both directions at once; the rank that begins gets the acknowledgement or the answers. */
hk_status_t hk_flow_both(hk_run_t *run, int peer, bool begins, uint64_t reps);

#endif
