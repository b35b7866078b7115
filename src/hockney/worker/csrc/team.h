/* Threads of a pattern, for transports that several threads of a rank may call at once (HK_CAP_MULTIPLE). The rank's
 * own thread is the first of them. They are started untimed, sleep while nothing is timed, and are awake, waiting for a
 * word in memory, when a sample starts. A wait may last for ever, as those of a transport: the time limit and the end
 * of standard input end the process. */
#ifndef HK_TEAM_H
#define HK_TEAM_H

#include "pattern.h"

enum { HK_TEAM_MAX = 128 };

typedef struct hk_team hk_team_t;
typedef hk_status_t (*hk_loop_t)(hk_run_t *run, uint64_t reps);

/* `count` threads, not yet started, each with a run of its own: a copy of this one, but for reqs_count requests and
 * state_bytes of zero state, which no two threads share a line of. stays: they use the CPUs of this rank only; else
 * those of the process that started it, since a rank is often bound to one. */
hk_status_t hk_team_open(const hk_run_t *run, int count, size_t reqs_count, size_t state_bytes, bool stays,
                         hk_team_t **team_p);

/* The run of a thread, to be completed before hk_team_start. */
hk_run_t *hk_team_run(hk_team_t *team, int number);

/* Start the threads; each waits to execute `loop`. On error hk_team_close ends those that run. */
hk_status_t hk_team_start(hk_team_t *team, hk_loop_t loop);

/* Returns when all threads are awake. */
void hk_team_wake(hk_team_t *team);

/* Every thread executes its loop once, all at once, `reps` times each. Its time runs from its own start to its own end,
 * without what the loop adds to untimed_ns: *took_ns_p is the mean over the threads, or the longest. After an error
 * others may still be in their loop. */
hk_status_t hk_team_repeat(hk_team_t *team, uint64_t reps, bool is_longest, uint64_t *took_ns_p);

/* In a loop: no thread continues before all have called it. */
void hk_team_meet(hk_team_t *team);

/* End the threads, and free all. */
void hk_team_close(hk_team_t *team);

#endif
