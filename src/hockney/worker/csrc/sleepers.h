/* Child processes of a rank that only sleep. They end with it. */
#ifndef HK_SLEEPERS_H
#define HK_SLEEPERS_H

#include <sys/types.h>

#include "status.h"

/* Fork children until there are `wanted`; *count_p of them are in `pids`. On error the caller ends those that exist. */
hk_status_t hk_sleepers_fork(int rank, int wanted, pid_t *pids, int *count_p);

/* End them all, and wait for that. */
void hk_sleepers_end(const pid_t *pids, int *count_p);

#endif
