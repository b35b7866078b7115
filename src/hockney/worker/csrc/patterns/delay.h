/* A delay in the place of an application's computing, and an account of the delays that were really taken. */
#ifndef HK_DELAY_H
#define HK_DELAY_H

#include "../pattern.h"

typedef enum hk_delay_kind {
    HK_DELAY_LOOP,  /* a calibrated loop that doesn't read the clock while it runs, as a program's own would be */
    HK_DELAY_CLOCK, /* busy until the clock says so */
    HK_DELAY_SLEEP, /* the CPU is given away */
} hk_delay_kind_t;

typedef struct hk_delay {
    void (*take)(hk_ctx_t *ctx, struct hk_delay *delay);
    void (*pass)(hk_ctx_t *ctx, uint64_t amount); /* what take calls between two looks at the clock */
    uint64_t amount;                              /* turns of the loop, or ns */
    double count, taken_ns;                       /* so far */
} hk_delay_t;

/* HK_ERR_UNSUPPORTED, with a line in the log: shorter than the clock can tell. */
hk_status_t hk_delay_resolved(hk_ctx_t *ctx, uint64_t asked_ns);

/* Choose and calibrate. asked_ns 0: none. HK_ERR_UNSUPPORTED: shorter than the clock can tell. */
hk_status_t hk_delay_prepare(hk_ctx_t *ctx, hk_delay_kind_t kind, uint64_t asked_ns, hk_delay_t *delay_p);

/* Options of patterns in which one rank sends and another receives, in this order: what either computes after each
 * message, by the clock. */
enum { HK_COMPUTE_SENDER, HK_COMPUTE_RECEIVER };

// clang-format off
#define HK_COMPUTE_OPTIONS \
    {"compute_us", NULL, 0, 0, 1000000, "what the sender computes after each message, in us; 0: nothing"}, \
    {"receiver_compute_us", NULL, 0, 0, 1000000, "what the receiver computes after each message, in us; 0: nothing"}
// clang-format on

/* Whether this delay can be taken while requests are handled: the transport overlaps, and the CPU is busy. */
bool hk_delay_overlaps(const hk_ctx_t *ctx, const hk_delay_t *delay);

/* Take it so; req, next and arg as the transport's overlap has them. */
void hk_delay_overlapped(hk_ctx_t *ctx, hk_delay_t *delay, hk_req_t *req, bool (*next)(void *arg), void *arg);

/* Choose this rank's; `option` are those above. Errors as above. */
hk_status_t hk_compute_prepare(hk_ctx_t *ctx, const int64_t *option, bool sends, bool receives, hk_delay_t *delay_p);

/* The counters `delays` and `delay_ns`; of computing, on all ranks where one computes. */
bool hk_delay_counter(const hk_delay_t *delay, size_t i, hk_counter_t *counter_p);

/* The hook `counter` of patterns whose state begins with its delay. */
bool hk_state_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

bool hk_compute_counter(const int64_t *option, const hk_delay_t *delay, size_t i, hk_counter_t *counter_p);

#endif
