/* The floor of a machine: half a round trip of one shared cache line between the CPUs of ranks 0 and 1. It is no lower
 * bound: a message that is stored to a fresh line may be slightly faster. On shared machines the floor changes, so
 * every measurement takes it immediately before and after (docs/methods.md). */
#ifndef HK_FLOOR_H
#define HK_FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

typedef struct hk_floor {
    void *line; /* one shared page; NULL: there is no floor */
    int rank;
    uint64_t turn;   /* the line's value after the last round trip */
    const char *why; /* the reason for no floor, as a clause */
    bool is_remote;  /* ranks 0 and 1 share no memory: half a round trip of the transport replaces the floor */
} hk_floor_t;

/* All ranks call it. If there is no floor, it returns HK_OK with line NULL and a reason in why. */
hk_status_t hk_floor_open(hk_control_t *control, int oversubscribed, hk_floor_t *floor_p);

void hk_floor_close(hk_floor_t *floor);

/* One sample: the mean half round trip in ns of `batch` round trips. All ranks call it, ranks 0 and 1 exchange, and
 * the result is valid on rank 0. Requires a line. */
double hk_floor_sample(hk_floor_t *floor, uint64_t batch);

/* The floor stored with a measurement: the median of a few short samples, about 0.1 ms. Negative: no floor. */
double hk_floor_quick(hk_floor_t *floor);

/* The floor of ranks that sleep while they wait: half a round trip of a wake-up, by futex. It is the median of 25,
 * about 0.5 ms, or after 2 ms of fewer, but 5 at least. All ranks call it; the result is valid on rank 0. Negative:
 * there is none. */
double hk_floor_wake(hk_floor_t *floor);

/* Rank 0 calls measure while rank 1 rests like an idle hardware thread. All ranks call it; the result is valid on
 * rank 0. Requires a line. */
double hk_floor_alone(hk_floor_t *floor, double (*measure)(void));

#endif
