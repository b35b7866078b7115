/* Counts how often a library gives the CPU away while it waits. */
#ifndef HK_YIELDS_H
#define HK_YIELDS_H

#include "../transport.h"

/* The hook `counter`: `yields`, the calls of sched_yield by this process; none where they cannot be counted. */
bool hk_yields_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

#endif
