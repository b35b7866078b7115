/* A pattern: who sends what to whom in one repetition, on the contract of transport.h alone.
 *
 * A pattern says in data who is timed, what a time is divided by and how bytes are counted; `describe` hands this to
 * the control plane, so each definition stands in one place. */
#ifndef HK_PATTERN_H
#define HK_PATTERN_H

#include "transport.h"

enum { HK_OPTIONS_MAX = 6 };

/* Whose samples make the figure. */
typedef enum hk_timed {
    HK_TIMED_ROOT,    /* that of the plan's root: rank 0's where the plan names no other */
    HK_TIMED_SOURCES, /* the mean over ranks 0 .. size/2 - 1 */
    HK_TIMED_SLOWEST, /* the maximum over all ranks, sample by sample */
    HK_TIMED_MEAN,    /* the mean over all ranks */
} hk_timed_t;

/* What its time follows as ranks are added, if nothing is shared or slow. */
typedef enum hk_law {
    HK_LAW_NONE,
    HK_LAW_MESSAGES, /* a line over ranks - 1, the messages that one rank sends or receives */
    HK_LAW_ROUNDS,   /* a line over log2 of the ranks, rounded up */
    HK_LAW_SENDERS,  /* a line over the senders of its option, the same with any number of receivers */
    HK_LAW_CONSTANT, /* the same with any number of ranks */
} hk_law_t;

/* Which two ranks a rank's own time is of. */
typedef enum hk_links {
    HK_LINKS_NONE,   /* of more than two: one serves many, or all wait for the slowest */
    HK_LINKS_ENDS,   /* one pair alone: ranks 0 and 1, or those of its options source and target */
    HK_LINKS_HALVES, /* rank r of the first half and rank r of the second, all at once */
    HK_LINKS_RING,   /* each rank and the one `distance` further on, all at once */
    HK_LINKS_ROUND,  /* the pairs of a round of a tournament, all at once */
} hk_links_t;

/* What a transport may have of its own. */
typedef enum hk_collective {
    HK_NO_COLLECTIVE,
    HK_BARRIER,
    HK_BROADCAST,
    HK_ALLTOALL,
    HK_ALLREDUCE,
    HK_COLLECTIVES,
} hk_collective_t;

/* An integer, or a choice out of words separated by '|' (its value is the word's place). */
typedef struct hk_option {
    const char *name;
    const char *choices; /* NULL: an integer */
    int64_t fallback, min, max;
    const char *help;
} hk_option_t;

/* One point on one rank: all that a timed loop touches. Filled by the measuring core. */
typedef struct hk_run {
    hk_ctx_t *ctx;
    const struct hk_pattern *pattern;
    size_t bytes; /* message length */
    int64_t option[HK_OPTIONS_MAX];
    unsigned char *out, *in; /* of out_bytes and in_bytes as planned */
    hk_req_t *reqs;          /* of reqs_count as planned */
    size_t reqs_count;
    void *state;         /* of state_bytes as planned, zero before prepare: the pattern's own */
    uint64_t untimed_ns; /* repeat adds what of its repetitions is not the pattern's time */
    uint64_t reps_max;   /* no call of repeat has more repetitions; known to plan */
    /* Of a pattern on schedule: where repeat writes the time of each of its repetitions, on the rank that is timed. */
    uint64_t *latency_ns;
    /* In a stream: repetitions that follow those of this call of repeat, without anything between. 0: these are the
     * last, and nothing may be left under way. */
    uint64_t reps_to_come;
} hk_run_t;

/* What a point needs on this rank, and what one repetition moves in the whole job. */
typedef struct hk_plan {
    size_t out_bytes, in_bytes, reqs_count, state_bytes;
    uint64_t bytes_per_rep;    /* payload counted by the pattern's definition of bandwidth */
    uint64_t messages_per_rep; /* messages that this counts */
    uint64_t divisor;          /* a repetition's time is divided by this: 2 for half a round trip */
    const char *algorithm;     /* "native", "portable", or NULL where there is no choice */
    int root;                  /* with HK_TIMED_ROOT: whose samples count; the same on all ranks */
    /* Repetitions start on schedule, whether the last one is done or not, and the time of each is from its scheduled
     * start to its end. All timed ones are one call of repeat, and a sample is one of them. */
    bool scheduled;
    uint64_t period; /* after so many repetitions the same messages come again in the same places; 0: 1 */
} hk_plan_t;

enum { HK_FROM_ALL = -1 };

/* A block that must stand in this rank's `in` after a repetition: a copy of from_rank's out[from_offset..], or, from
 * HK_FROM_ALL, the sum of the out there of all ranks from first_rank on, in words of 8 bytes. */
typedef struct hk_expected {
    size_t in_offset, from_offset, len_bytes;
    int from_rank, first_rank;
} hk_expected_t;

typedef struct hk_pattern {
    const char *name;
    const char *summary;
    uint32_t needs;                       /* HK_CAP_*, unless `native` says that it needs none */
    int ranks_min, ranks_max, ranks_step; /* the last two 0: any number, not only multiples of a step */
    hk_timed_t timed;
    /* Whether repetitions follow each other without a pause, so that one may overlap the next: the samples of a
     * measurement are then parts of one stream, with no meeting between them. Otherwise each repetition stands alone,
     * and ranks come together before every sample. */
    bool stream;
    hk_law_t law;
    hk_links_t links;
    const char *alone;   /* the pattern in which one pair does the same with nobody else under way; NULL: none */
    bool unsized;        /* has no message length and counts no bytes (barrier) */
    size_t grain_bytes;  /* a length is a multiple of it, and not 0; 0: any length will do */
    const char *senders; /* NULL, or the option that says how many ranks besides rank 0 only send: at
                            least one more must be left to receive */
    hk_option_t option[HK_OPTIONS_MAX]; /* ends with a NULL name, or is full */

    int dimensions;  /* of a pattern on a grid of ranks: its options begin with one for each (grid.h) */
    const void *own; /* what the hooks of several patterns differ by; only they read it */

    /* What the option "algorithm" may leave to the transport, by its words "native", and "auto" where the transport has
     * it; and whether it does so here. Optional, both: absent means nothing. */
    hk_collective_t collective;
    bool (*native)(const hk_transport_t *tp, const int64_t *option);

    /* All that the data above can't say: whether the options go together with each other, the transport and the number
     * of ranks; false with a sentence in why[0..len), which otherwise means nothing. Asked on rank 0 before anything is
     * planned. Optional: absent means that they always do. */
    bool (*fits)(const hk_run_t *run, char *why, size_t len);

    /* Sizes of buffers and what a repetition moves. Required. */
    hk_plan_t (*plan)(const hk_run_t *run);

    /* Lay out buffers and state, untimed, before the first repetition. Optional: absent means that `out` holds a
     * payload and `in` zeros. */
    hk_status_t (*prepare)(hk_run_t *run);

    /* Undo what prepare did to the transport. Called when the point is over and the job goes on. Optional: absent means
     * that there is nothing to undo. */
    hk_status_t (*finish)(hk_run_t *run);

    /* Before each sample, or each stream, after a barrier, untimed: bring those together whose time it is. Optional:
     * absent means that ranks start as the barrier leaves them. */
    hk_status_t (*meet)(hk_run_t *run);

    /* The timed loop: reps repetitions. Roles and variants are chosen before the loop. Required. */
    hk_status_t (*repeat)(hk_run_t *run, uint64_t reps);

    /* The i-th block that this rank must have received; false: there are no more.
     * Optional: absent means that the pattern carries no payload. */
    bool (*expected)(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

    /* The i-th counter of this rank since prepare; false: there are no more. Optional: absent means none. */
    bool (*counter)(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

    /* For patterns that compute with what they receive: whether every repetition since prepare came out right. Asked
     * after the samples, untimed; HK_ERR_CORRUPT, with a line in the log, makes the point fail. Optional: absent means
     * that only `expected` tells. */
    hk_status_t (*verdict)(const hk_run_t *run);
} hk_pattern_t;

#endif
