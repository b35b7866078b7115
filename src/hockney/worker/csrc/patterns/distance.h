/* Rings: every rank acts on the rank `distance` after it; the last ranks continue with the first. */
#ifndef HK_DISTANCE_H
#define HK_DISTANCE_H

#include "../pattern.h"

/* The first option of a ring pattern. */
enum { HK_RING_DISTANCE };

// clang-format off
#define HK_RING_OPTION_DISTANCE \
    {"distance", NULL, 1, 1, 4095, "offset from a rank to its target"}
// clang-format on

static inline int hk_ring_next(const hk_run_t *run)
{
    return (int)((run->ctx->rank + run->option[HK_RING_DISTANCE]) % run->ctx->size);
}

static inline int hk_ring_previous(const hk_run_t *run)
{
    return (int)((run->ctx->rank + run->ctx->size - run->option[HK_RING_DISTANCE]) % run->ctx->size);
}

/* The hook `fits`: the distance is less than the number of ranks. */
bool hk_ring_fits(const hk_run_t *run, char *why, size_t len);

#endif
