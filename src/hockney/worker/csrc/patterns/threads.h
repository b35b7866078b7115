/* Patterns whose threads call the library at once (MPI_THREAD_MULTIPLE): what they have in common. */
#ifndef HK_THREADS_H
#define HK_THREADS_H

#include "../team.h"

/* The first options, in this order. */
enum { HK_THREADS, HK_THREADS_TIME, HK_THREADS_CPUS, HK_THREADS_OPTIONS };
enum { HK_THREADS_MEAN, HK_THREADS_SLOWEST };

// clang-format off
#define HK_OPTIONS_THREADS \
    {"threads", NULL, 2, 1, HK_TEAM_MAX, "threads of each rank"}, \
    {"time", "mean|slowest", HK_THREADS_MEAN, 0, 0, "whose time counts, of threads and of ranks"}, \
    {"cpus", "free|rank", 0, 0, 0, "where threads run: on all CPUs of the job on this host, or of their rank"}
// clang-format on

/* The begin of a pattern's state. */
typedef struct hk_threads {
    hk_team_t *team;
    hk_ctx_t *context[HK_TEAM_MAX];
    int contexts;
} hk_threads_t;

/* `contexts` contexts (see open_thread), the same number on all ranks, and a team of `count` threads, to be started by
 * hk_team_start. On error nothing is left. */
hk_status_t hk_threads_open(hk_run_t *run, int contexts, hk_apart_t apart, hk_match_t match, int count,
                            size_t reqs_count, size_t state_bytes);

/* Hooks, of patterns whose state begins with hk_threads_t. */
hk_status_t hk_threads_finish(hk_run_t *run);
hk_status_t hk_threads_meet(hk_run_t *run);
hk_status_t hk_threads_repeat(hk_run_t *run, uint64_t reps);

/* Blocks of threads begin in places of their own. */
size_t hk_threads_stride(size_t size_bytes);

#endif
