/* Queues that a library searches for each message: of messages that have arrived without a receive, and of receives
 * without a message (K. Underwood and R. Brightwell, The impact of MPI queue usage on message latency, 2004). Both
 * ranks of a pair fill them before the samples, with tags that nothing else matches, and empty and verify them
 * afterwards. */
#ifndef HK_QUEUES_H
#define HK_QUEUES_H

#include "../pattern.h"

/* The options, in this order. */
enum { HK_QUEUE_UNEXPECTED, HK_QUEUE_PREPOSTED, HK_QUEUE_OPTIONS_COUNT };

// clang-format off
#define HK_QUEUE_OPTIONS \
    {"unexpected", NULL, 0, 0, HK_TAG_MAX / 2, \
     "messages that wait at each rank without a receive"}, \
    {"preposted", NULL, 0, 0, HK_TAG_MAX / 2, \
     "receives of each rank that wait for other messages"}
// clang-format on

typedef struct hk_queues {
    size_t unexpected, posted;
    size_t at, room_bytes; /* where their messages begin in `out` and `in`, and the sizes of these with them */
} hk_queues_t;

/* `place`: of the first of these options. bytes: what the pattern itself needs of `out` and `in`. */
hk_queues_t hk_queues_of(const hk_run_t *run, size_t place, size_t bytes);

/* Whether the transport has tags, if the options ask for queues. */
bool hk_queues_fit(const hk_run_t *run, size_t place, char *why, size_t len);

/* All ranks call both; peer is -1 on idle ones. Fill the queues of this rank and its peer. The receives have the
 * requests from run->reqs[1] on. */
hk_status_t hk_queues_fill(hk_run_t *run, const hk_queues_t *queues, int peer);

/* Let each message find its receive. HK_ERR_CORRUPT, with a line in the log: one holds other data than was sent. */
hk_status_t hk_queues_empty(hk_run_t *run, const hk_queues_t *queues, int peer);

#endif
