/* The core of all collective patterns: what the options mean, the buffers, the loops, and what must have arrived. */
#ifndef HK_COLLECTIVE_CORE_H
#define HK_COLLECTIVE_CORE_H

#include "../algorithms/algorithms.h"
#include "../pattern.h"
#include "grid.h"

/* The values of options, by their place among the words. */
enum { HK_COUNTS_EQUAL, HK_COUNTS_LINEAR, HK_COUNTS_ONE_BIG };
enum { HK_START_STREAM, HK_START_BARRIER, HK_START_WINDOW };
enum { HK_ALGORITHM_AUTO, HK_ALGORITHM_NATIVE, HK_ALGORITHM_FIRST };

enum { HK_NEAR_MAX = HK_LIST_MAX };

/* What the options of a point ask for; what a pattern has no option for has its default. */
typedef struct hk_asked {
    hk_operation_t operation;
    int64_t algorithm, form, overlap, tests, root, type, reduction, in_place, counts, groups, start, time, arrival_us,
        fresh, distances;
    size_t vector_bytes; /* of all blocks of a reduction; 0: the size is that of a block */
} hk_asked_t;

hk_asked_t hk_asked_of(const hk_run_t *run);

/* This rank's call without buffers, offsets and neighbours. */
hk_call_t hk_call_of(const hk_run_t *run, const hk_asked_t *asked);

/* The portable algorithm that the options choose on this transport; NULL: the transport's own. */
const hk_algorithm_t *hk_chosen(const hk_run_t *run, const hk_asked_t *asked);

/* The transport's own barrier between samples is one of its collectives, too. */
bool hk_is_plain_barrier(const hk_ctx_t *ctx, const hk_call_t *call);

/* All that follows from the options, the size and this rank. */
typedef struct hk_setup {
    hk_asked_t asked;
    const hk_algorithm_t *algorithm; /* NULL: the transport's own */
    hk_call_t call;                  /* without buffers and offsets */
    int blocks, to[HK_NEAR_MAX], from[HK_NEAR_MAX];
    uint64_t copies;              /* pairs of buffers that repetitions use in turn */
    size_t out_bytes, in_bytes;   /* of one copy: what the rank gives and gets */
    size_t out_stride, in_stride; /* from copy to copy */
    size_t work_at, in_room;      /* of call.work for copy 0, and the end of all copies and work, in `in` */
    size_t own_bytes;             /* that the transport's calls need at call.own; 0: none is made */
} hk_setup_t;

void hk_set_up(const hk_run_t *run, hk_setup_t *setup_p);

/* Bytes of the block that this rank gives, or gets; `block` counts if it has several. */
size_t hk_given_bytes(const hk_asked_t *asked, const hk_call_t *call, int block);
size_t hk_got_bytes(const hk_asked_t *asked, const hk_call_t *call, int block);

/* The i-th block that this rank gets by the call, in `in` and of the ranks' `out`; false: there are no more. */
bool hk_expects(const hk_call_t *call, size_t i, hk_expected_t *expected_p);

/* The pattern's state on this rank. */
typedef struct hk_collective_state {
    hk_setup_t setup;
    hk_status_t (*loop)(hk_run_t *run, uint64_t reps);
    hk_status_t (*operate)(hk_run_t *run); /* one operation, in the form of the options */
    uint64_t count;                        /* repetitions so far; one uses copy count % copies */
    uint64_t pure_ns, part_ns;             /* of one operation without computing, and to compute between tests */
    uint64_t delay_ns, arrivals;           /* the longest random delay, and their state */
    double overlaps, late_starts, clock_ahead_ns, clock_error_ns;
    bool is_counting; /* the counters have been read before the samples */
    size_t at[];      /* out_at, then in_at; call.own in a line of its own */
} hk_collective_state_t;

/* Bytes of the state before call.own. */
size_t hk_state_bytes(const hk_setup_t *setup);

/* Hooks. */
bool hk_collective_fits(const hk_run_t *run, char *why, size_t len);
bool hk_collective_native(const hk_run_t *run);
size_t hk_collective_grain(const hk_run_t *run);
hk_plan_t hk_collective_plan(const hk_run_t *run);
hk_status_t hk_collective_prepare(hk_run_t *run);
void hk_collective_fill(hk_run_t *run, uint64_t seed);
hk_status_t hk_collective_finish(hk_run_t *run);
hk_status_t hk_collective_repeat(hk_run_t *run, uint64_t reps);
bool hk_collective_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);
bool hk_collective_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

#endif
