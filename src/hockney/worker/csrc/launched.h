/* What the families share whose ranks another program starts: a library's own mpiexec or oshrun. */
#ifndef HK_LAUNCHED_H
#define HK_LAUNCHED_H

#include <stdbool.h>

#include "family.h"

/* Where a rank is, as its library says once it is up. */
typedef struct hk_world {
    int rank, size;
    int local_rank; /* among the ranks of this host */
    bool one_host;
} hk_world_t;

/* To be called before the library starts, so that its memory is first touched where it will be used: pins this rank by
 * its place among the ranks of its host, as its launcher says it; *local_rank_p is -1 and nothing is pinned if it says
 * nothing. */
hk_status_t hk_launched_begin(const hk_args_t *args, int *local_rank_p);

/* Join the control star and serve commands until the end. `broadcast` hands rank 0's bytes to all ranks: the one thing
 * that the library is needed for. `pinned_as`: as hk_launched_begin says. Returns the exit code; where it isn't
 * HK_EXIT_OK the caller must end every rank, also those that wait in the library for this one. */
int hk_launched_run(const hk_args_t *args, const hk_world_t *world, int pinned_as,
                    hk_status_t (*broadcast)(int rank, void *buf, size_t len_bytes));

#endif
