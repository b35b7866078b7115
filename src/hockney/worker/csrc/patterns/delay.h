/* A delay that simulates an application's computation, and a count of the delays taken. */
#ifndef HK_DELAY_H
#define HK_DELAY_H

#include "../pattern.h"

typedef enum hk_delay_kind {
    HK_DELAY_LOOP,  /* a calibrated loop that does not read the clock */
    HK_DELAY_CLOCK, /* busy until the clock has advanced */
    HK_DELAY_SLEEP, /* the rank releases the CPU */
} hk_delay_kind_t;

typedef struct hk_delay {
    void (*take)(hk_ctx_t *ctx, struct hk_delay *delay);
    void (*pass)(hk_ctx_t *ctx, uint64_t amount); /* one step between two reads of the clock */
    uint64_t amount;                              /* turns of the loop, or ns */
    double count, taken_ns;                       /* so far */
} hk_delay_t;

/* HK_ERR_UNSUPPORTED, with a line in the log: the delay is below the clock resolution. */
hk_status_t hk_delay_resolved(hk_ctx_t *ctx, uint64_t asked_ns);

/* Choose and calibrate. asked_ns 0: no delay. Errors as above. */
hk_status_t hk_delay_prepare(hk_ctx_t *ctx, hk_delay_kind_t kind, uint64_t asked_ns, hk_delay_t *delay_p);

/* Options of patterns with one sender and one receiver, in this order: the computation of each after each message. */
enum { HK_COMPUTE_SENDER, HK_COMPUTE_RECEIVER };

// clang-format off
#define HK_COMPUTE_OPTIONS \
    {"delay_us", NULL, 0, 0, 1000000, "computation of the sender after each message, in us; 0: none"}, \
    {"receiver_delay_us", NULL, 0, 0, 1000000, "computation of the receiver after each message, in us; 0: none"}
// clang-format on

/* Whether the delay can overlap with requests: the transport has the hook, and the delay keeps the CPU busy. */
bool hk_delay_overlaps(const hk_ctx_t *ctx, const hk_delay_t *delay);

/* Take the delay while a request is under way; arguments as in the transport's overlap. */
void hk_delay_overlapped(hk_ctx_t *ctx, hk_delay_t *delay, hk_req_t *req, bool (*next)(void *arg), void *arg);

/* The delay of this rank from the options above. Errors as above. */
hk_status_t hk_compute_prepare(hk_ctx_t *ctx, const int64_t *option, bool sends, bool receives, hk_delay_t *delay_p);

/* The counters `delays` and `delay_ns`. If one rank computes, all ranks report them. */
bool hk_delay_counter(const hk_delay_t *delay, size_t i, hk_counter_t *counter_p);

/* The hook `counter` of patterns whose state begins with hk_delay_t. */
bool hk_state_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

bool hk_compute_counter(const int64_t *option, const hk_delay_t *delay, size_t i, hk_counter_t *counter_p);

#endif
