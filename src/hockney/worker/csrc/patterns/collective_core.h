/* The core of all collective patterns: what the options mean, the loops, and what must have arrived. */
#ifndef HK_COLLECTIVE_PATTERN_H
#define HK_COLLECTIVE_PATTERN_H

#include "../algorithms/algorithms.h"
#include "../pattern.h"
#include "grid.h"

/* The values of options, by their place among the words. */
enum { HK_COUNTS_EQUAL, HK_COUNTS_LINEAR, HK_COUNTS_ONE_BIG };
enum { HK_START_STREAM, HK_START_BARRIER, HK_START_WINDOW };
enum { HK_NEAR_MAX = 2 * HK_GRID_DIMENSIONS_MAX };
enum { HK_ALGORITHM_AUTO, HK_ALGORITHM_NATIVE, HK_ALGORITHM_FIRST };

/* What the options of a point ask for; what a pattern has no option for has its default. */
typedef struct hk_asked {
    hk_operation_t operation;
    int64_t algorithm, form, overlap, tests, root, type, reduction, in_place, counts, groups, start, time, arrival_us,
        fresh;
} hk_asked_t;

hk_asked_t hk_asked_of(const hk_run_t *run);

/* The static parts of this rank's call: all but buffers, offsets and neighbours. */
hk_call_t hk_call_of(const hk_run_t *run, const hk_asked_t *asked);

/* The portable algorithm that the options choose on this transport; NULL: the transport's own. */
const hk_algorithm_t *hk_chosen(const hk_run_t *run, const hk_asked_t *asked);

/* Prepare a call of the transport's own. */
hk_status_t hk_make_own(hk_ctx_t *ctx, hk_call_t *call);

/* The room that the transport's calls need at `own`; 0: none is made. */
size_t hk_own_bytes(const hk_ctx_t *ctx, const hk_call_t *call, const hk_algorithm_t *algorithm);

/* The size of the block that one rank of the group gives to another: of a rank's own if it gives all the same. */
size_t hk_block_bytes(const hk_asked_t *asked, const hk_call_t *call, int from, int to);

/* Bytes of one copy of the buffers, and of the algorithm's room. */
typedef struct hk_call_sizes {
    size_t out_bytes, in_bytes; /* of one copy */
    size_t room_bytes;          /* for the algorithm's work */
} hk_call_sizes_t;

/* The call with its neighbours, and the number of its blocks. */
int hk_shape(const hk_run_t *run, const hk_asked_t *asked, hk_call_t *call_p, int near[HK_NEAR_MAX]);

/* The rank that a block is for or from, and the sizes of those that this rank gives and gets. */
int hk_block_rank(const hk_call_t *call, int block);
size_t hk_given_bytes(const hk_asked_t *asked, const hk_call_t *call, int block);
size_t hk_got_bytes(const hk_asked_t *asked, const hk_call_t *call, int block);

hk_call_sizes_t hk_sizes_of(const hk_asked_t *asked, const hk_call_t *call, int blocks,
                            const hk_algorithm_t *algorithm);

/* Of the pattern's state, without the room at `own` that follows it. */
size_t hk_state_bytes(const hk_asked_t *asked, int blocks);

/* Whole cache lines. */
size_t hk_strided(size_t size_bytes);

/* The number of pairs of buffers that repetitions use in turn. is_own: the transport's own implementation. */
uint64_t hk_copies_of(const hk_run_t *run, const hk_asked_t *asked, const hk_call_sizes_t *sizes, bool is_own);

/* Whether `out` and `in` of this operation have blocks. */
bool hk_gives_blocks(hk_operation_t operation);
bool hk_gets_blocks(hk_operation_t operation);

/* The pattern's state on this rank. */
typedef struct hk_collective_state {
    hk_call_t call;
    hk_asked_t asked;
    const hk_algorithm_t *algorithm; /* NULL: the transport's own */
    hk_status_t (*loop)(hk_run_t *run, uint64_t reps);
    unsigned char *out, *in; /* of copy 0 */
    size_t out_stride, in_stride, room_bytes;
    uint64_t copies, count; /* count: repetitions so far; one uses copy count % copies */
    uint64_t pure_ns;       /* of one operation without computing */
    uint64_t arrivals;      /* the state of the random delays */
    double overlaps, late_starts, clock_ahead_ns, clock_error_ns;
    bool has_own_block; /* the operation leaves it in `in`, too */
    bool is_counting;   /* the counters have been read before the samples */
    int near[HK_NEAR_MAX];
    size_t at[]; /* out_at, then in_at; call.own in a line of its own */
} hk_collective_state_t;

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
