/* The floor of a machine: one shared cache line bounced between the CPUs of ranks 0 and 1, half a round trip. No
 * exchange between two ranks of one host can be faster, and on shared machines the floor itself moves; so every
 * measurement takes it just before and just after (docs/methods.md). */
#ifndef HK_FLOOR_H
#define HK_FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

typedef struct hk_floor {
    void *line; /* one shared page; NULL: there is no floor here */
    int rank;
    uint64_t turn;   /* the line's value after the last round trip */
    const char *why; /* why there is none, in words */
    bool apart;      /* ranks 0 and 1 share no memory: the transport's own round trip must do */
} hk_floor_t;

/* All ranks call it. A machine where it can't be measured is no error: line is NULL then and why says so. */
hk_status_t hk_floor_open(hk_control_t *control, int oversubscribed, hk_floor_t *floor_p);

void hk_floor_close(hk_floor_t *floor);

/* One sample: the half round trip in ns as a mean over `batch` round trips. All ranks call it; ranks 0 and 1 do it,
 * and it counts on rank 0. Never called without a line. */
double hk_floor_sample(hk_floor_t *floor, uint64_t batch);

/* What a measurement notes: the median of a few short samples, about 0.1 ms; a negative number where there is none. */
double hk_floor_quick(hk_floor_t *floor);

/* Rank 0 measures something while rank 1 rests, as a hardware thread does that has nothing to do; then both return at
 * once. All ranks call it; what comes back counts on rank 0. Never called without a line. */
double hk_floor_alone(hk_floor_t *floor, double (*measure)(void));

#endif
