/* A pattern: the messages of one repetition. It uses only the contract of transport.h.
 *
 * A pattern declares as data whose time counts, the divisor of a time, and the bytes that a repetition counts.
 * `--describe` passes these to the control plane, so each definition exists once. */
#ifndef HK_PATTERN_H
#define HK_PATTERN_H

#include <string.h>

#include "collective.h"
#include "transport.h"

enum { HK_OPTIONS_MAX = 16, HK_LIST_MAX = 64 };

/* The ranks whose samples give the figure. */
typedef enum hk_timed {
    HK_TIMED_AS_DECLARED, /* in a plan: those of the pattern */
    HK_TIMED_ROOT,        /* the plan's root, by default rank 0 */
    HK_TIMED_SOURCES,     /* mean over ranks 0 .. size/2 - 1 */
    HK_TIMED_SLOWEST,     /* maximum over all ranks, sample by sample */
    HK_TIMED_MEAN,        /* mean over all ranks */
} hk_timed_t;

/* How the time grows with the number of ranks if no resource is shared and no rank is slow. */
typedef enum hk_law {
    HK_LAW_NONE,
    HK_LAW_MESSAGES, /* linear in ranks - 1, the messages that one rank sends or receives */
    HK_LAW_ROUNDS,   /* linear in log2 of the ranks, rounded up */
    HK_LAW_SENDERS,  /* linear in the number of senders, for any number of receivers */
    HK_LAW_CONSTANT, /* independent of the number of ranks */
} hk_law_t;

/* The pair of ranks that a rank's time measures. */
typedef enum hk_links {
    HK_LINKS_NONE,   /* no single pair: one rank serves many, or all wait for the slowest */
    HK_LINKS_ENDS,   /* one pair: ranks 0 and 1, or those of the options source and target */
    HK_LINKS_HALVES, /* rank r of the first half and rank r of the second, all pairs at once */
    HK_LINKS_RING,   /* each rank and the one `distance` after it, all pairs at once */
    HK_LINKS_ROUND,  /* the pairs of one round of a tournament, all at once */
} hk_links_t;

/* Where lists show a pattern. */
typedef enum hk_kind {
    HK_KIND_POINT_TO_POINT,
    HK_KIND_COLLECTIVE,
    HK_KIND_ONE_SIDED,
    HK_KIND_FARM,
    HK_KIND_APPLICATION,
    HK_KIND_MACHINE, /* memory and clocks */
    HK_KIND_THREADS, /* of a rank, at once */
    HK_KIND_STARTUP,
} hk_kind_t;

/* An integer, or one of several words separated by '|'. The value of a word is its index. The last word may be HK_LIST,
 * in one option of a pattern: then the value may also be the number of numbers in the run's `list`. */
#define HK_LIST "|+N-N"
typedef struct hk_option {
    const char *name;
    const char *choices; /* NULL: an integer */
    int64_t fallback, min, max;
    const char *help;
} hk_option_t;

/* The last option of patterns whose messages may lie in memory of a device (device.h). */
// clang-format off
#define HK_MEMORY_OPTION \
    {"memory", "default|device|managed|host:device|device:host", 0, 0, 0, \
     "where buffers lie, of the source and of the target (of halves: the first and the second); one word: both"}
// clang-format on

/* One point on one rank: everything a timed loop uses. The measuring core fills it in. */
typedef struct hk_run {
    hk_ctx_t *ctx;
    const struct hk_pattern *pattern;
    size_t bytes; /* message size */
    int64_t option[HK_OPTIONS_MAX];
    int32_t list[HK_LIST_MAX];
    unsigned char *out, *in; /* out_bytes and in_bytes, as planned */
    hk_req_t *reqs;          /* reqs_count, as planned */
    size_t reqs_count;
    void *state;         /* the pattern's state: state_bytes as planned, zero before prepare */
    uint64_t untimed_ns; /* repeat adds the time that does not count */
    uint64_t reps_max;   /* upper limit for one call of repeat; known when plan runs */
    /* For scheduled patterns: repeat stores the time of each repetition here, on the rank that is timed. */
    uint64_t *latency_ns;
    /* In a stream: the number of repetitions that follow this call of repeat without a pause. 0: this call is the
     * last one, and no message may stay under way. */
    uint64_t reps_to_come;
} hk_run_t;

/* The needs of a point on this rank, and the traffic of one repetition in the whole job. */
typedef struct hk_plan {
    size_t out_bytes, in_bytes, reqs_count, state_bytes;
    uint64_t bytes_per_rep;    /* payload, as the pattern defines its bandwidth */
    uint64_t messages_per_rep; /* messages that carry bytes_per_rep */
    uint64_t divisor;          /* a repetition's time is divided by this: 2 for half a round trip; absent: 1 */
    const char *algorithm;     /* "native", the name of another, or NULL if there is only one */
    hk_timed_t timed;          /* the ranks whose samples count, where an option chooses them */
    int root;                  /* with HK_TIMED_ROOT: the rank whose samples count; the same on all ranks */
    /* Repetitions start on schedule, even if the previous one has not ended. The time of each runs from its
     * scheduled start to its end. One call of repeat makes all timed repetitions, and each is one sample. */
    bool scheduled;
    uint64_t period; /* buffers repeat after this many repetitions; 0: 1 */
} hk_plan_t;

/* In a plan: both buffers have room for one message; a repetition moves `count` messages of this size. */
#define HK_ONE_EACH(run) .out_bytes = (run)->bytes, .in_bytes = (run)->bytes
#define HK_MOVES(run, count) .bytes_per_rep = (count) * (run)->bytes, .messages_per_rep = (count)

enum { HK_FROM_ALL = -1 };

/* A block that `in` of this rank must contain after a repetition: a copy of from_rank's out[from_offset..]. With
 * HK_FROM_ALL it is the reduction of that block over the ranks from first_rank to end_rank - 1 (0: all after it). */
typedef struct hk_expected {
    size_t in_offset, from_offset, size_bytes;
    int from_rank, first_rank, end_rank;
    hk_type_t type;
    hk_reduction_t reduction;
} hk_expected_t;

/* A payload that differs from the one sent. */
typedef struct hk_fault {
    int32_t rank, from; /* rank -1: no fault; from HK_FROM_ALL: the block is a sum */
    uint64_t offset;    /* in the message */
    unsigned char expected, found;
} hk_fault_t;

/* A message that a rank waits for: "the credit" of an event, from a rank. */
typedef struct hk_waited {
    const char *what;
    uint64_t event;
    int rank;
} hk_waited_t;

typedef struct hk_pattern {
    const char *name;
    const char *summary;
    hk_kind_t kind;
    uint32_t needs; /* HK_CAP_*, unless `native` makes them unnecessary */
    /* ranks_max 0: no limit; ranks_step 0: 1. On hosts it has a rank on each by default, unless ranks_min is 1 or
     * `links` are ENDS. */
    int ranks_min, ranks_max, ranks_step;
    hk_timed_t timed;
    /* Repetitions follow each other without a pause, so one may overlap the next. The samples of a measurement are
     * then parts of one stream, without a barrier between them. Otherwise all ranks meet before every sample. */
    bool stream;
    bool events; /* its time is that of an event, so that its rate is one of events, too */
    bool once;   /* a launch has one sample, however many are asked for: asked again, it answers the same */
    hk_law_t law;
    hk_links_t links;
    const char *alone;   /* the pattern in which one pair does the same without other pairs; NULL: none */
    bool untouched;      /* its messages may lie where the CPU cannot reach them: it leaves them to the transport */
    bool unsized;        /* has no message size and counts no bytes (barrier) */
    size_t grain_bytes;  /* sizes are positive multiples of this; 0: any size */
    const char *senders; /* NULL, or the option that sets how many ranks after rank 0 only send; at least one more rank
                            must receive */
    hk_option_t option[HK_OPTIONS_MAX]; /* ends with a NULL name, or is full */

    int dimensions;  /* of the grid of ranks, 0: no grid. The pattern's first options are its dimensions (grid.h) */
    const void *own; /* what distinguishes patterns that share hooks; only those hooks read it */

    /* The collective operation that the transport may do itself, so that these options need none of `needs`. Optional,
     * both: HK_NO_OPERATION and absent mean that the pattern uses messages. */
    hk_operation_t operation;
    bool (*native)(const hk_run_t *run);

    /* Sizes are positive multiples of this. Optional: absent means grain_bytes, which is then the usual value. */
    size_t (*grain)(const hk_run_t *run);

    /* Check conditions that the data above cannot express: whether the options suit each other, the transport and the
     * number of ranks. On false, why[0..len) holds a sentence; otherwise its content is undefined. Rank 0 calls this
     * before plan. Optional: absent means always true. */
    bool (*fits)(const hk_run_t *run, char *why, size_t len);

    /* Sizes of buffers and the traffic of a repetition. Required. */
    hk_plan_t (*plan)(const hk_run_t *run);

    /* Initialise buffers and state, untimed, before the first repetition; on error nothing is left to undo. on a model
     * (HK_CAP_VIRTUAL) again, after finish and with a state of zeros, before the one that is verified. Optional: absent
     * means that `out` holds a payload and `in` zeros. */
    hk_status_t (*prepare)(hk_run_t *run);

    /* Give the buffers other data than the payload in `out` and zeros in `in`, untimed: before prepare with seed 0, and
     * before the repetition that is verified with another. Optional: absent means that those are right. */
    void (*fill)(hk_run_t *run, uint64_t seed);

    /* Undo what prepare did to the transport. Called if the job continues: after the point, or when the prepare of
     * another rank has failed. It may exchange messages: HK_ERR_CORRUPT, with a line in the log, fails the point, and
     * HK_ERR_PEER the job. Optional: absent means that there is nothing to undo. */
    hk_status_t (*finish)(hk_run_t *run);

    /* Synchronise the timed ranks more closely than a barrier does. Called untimed after the barrier before each
     * sample or stream. Optional: absent means that the barrier is enough. */
    hk_status_t (*meet)(hk_run_t *run);

    /* The timed loop: reps repetitions. Roles and variants are chosen before the loop. Required. */
    hk_status_t (*repeat)(hk_run_t *run, uint64_t reps);

    /* The i-th block that this rank must have received; false: there are no more. Optional: absent means that the
     * pattern carries no payload. */
    bool (*expected)(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

    /* Where blocks cannot say what must have arrived: `check` compares after the repetition that is verified, with the
     * seed of its data. False: *fault_p says where. `collect` comes before, on all ranks, and may move data to the rank
     * that checks; all synchronise after it. Optional, both: absent means that `expected` says all, and that every rank
     * has the data that it checks. */
    hk_status_t (*collect)(hk_run_t *run);
    bool (*check)(const hk_run_t *run, uint64_t seed, hk_fault_t *fault_p);

    /* The i-th counter of this rank since prepare; false: there are no more. Optional: absent means none. */
    bool (*counter)(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

    /* What this rank waits for, at its time limit: called in a signal handler, while repeat runs. Optional: absent
     * means that it is not said. */
    bool (*waits)(const hk_run_t *run, hk_waited_t *waited_p);

    /* For patterns that compute with received data: whether every repetition since prepare was correct. Called
     * untimed after the samples. HK_ERR_CORRUPT, with a line in the log, fails the point. Optional: absent means
     * that only `expected` is checked. */
    hk_status_t (*verdict)(const hk_run_t *run);
} hk_pattern_t;

/* The value of the option with this name; `fallback` if the pattern has no such option. */
static inline int64_t hk_option_value(const hk_pattern_t *pattern, const int64_t *value, const char *name,
                                      int64_t fallback)
{
    for (size_t i = 0; name != NULL && i < HK_OPTIONS_MAX && pattern->option[i].name != NULL; i++) {
        if (strcmp(pattern->option[i].name, name) == 0) {
            return value[i];
        }
    }
    return fallback;
}

#endif
