/* For families whose ranks are started by a library's launcher, such as mpiexec or oshrun. */
#ifndef HK_LAUNCHED_H
#define HK_LAUNCHED_H

#include <stdbool.h>

#include "family.h"
#include "startup.h"

/* The rank's place in the job, from the library. */
typedef struct hk_world {
    int rank, size;
    int local_rank; /* index among the ranks of this host */
    bool one_host;
    const hk_startup_t *startup; /* NULL: unknown */
} hk_world_t;

/* Call before the library starts, so that its memory is first touched by the right CPU. Pins this rank by its index
 * among the ranks of its host, which the launcher's environment gives. Without one *local_rank_p is -1 and the rank
 * is not pinned. */
hk_status_t hk_launched_begin(const hk_args_t *args, int *local_rank_p);

/* Join the control star and serve commands until the end. `broadcast` sends rank 0's bytes to all ranks and is the
 * only use of the library. `pinned_as`: from hk_launched_begin. Returns the exit code. If it is not HK_EXIT_OK, the
 * caller must end every rank, including those that wait in the library. */
int hk_launched_run(const hk_args_t *args, const hk_world_t *world, int pinned_as,
                    hk_status_t (*broadcast)(int rank, void *buf, size_t size_bytes));

#endif
