/* A series of puts to one rank: the core of put and putring. */
#ifndef HK_PUTS_H
#define HK_PUTS_H

#include "../pattern.h"

enum { HK_QUIET_BATCH, HK_QUIET_EACH };

// clang-format off
#define HK_PUTS_OPTION_QUIET \
    {"quiet", "batch|each", HK_QUIET_BATCH, 0, 0, \
     "wait for completion once at the end of the batch, or after every put"}
// clang-format on

/* `reps` puts of `out` into peer's `in`; quiet is HK_QUIET_*. All are complete when this returns. */
hk_status_t hk_puts(hk_run_t *run, int peer, int64_t quiet, uint64_t reps);

#endif
