/* cold */
#include "distance.h"

#include <stdio.h>

bool hk_ring_fits(const hk_run_t *run, char *why, size_t len)
{
    const int size = run->ctx->size;
    const int distance = (int)run->option[HK_RING_DISTANCE];
    if (distance < size) {
        return true;
    }
    snprintf(why, len, "the distance on %d ranks is at most %d, not %d", size, size - 1, distance);
    return false;
}

hk_plan_t hk_ring_plan(const hk_run_t *run)
{
    const uint64_t ranks = (uint64_t)run->ctx->size;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .bytes_per_rep = ranks * run->bytes,
                       .messages_per_rep = ranks,
                       .divisor = 1};
}

bool hk_ring_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = hk_ring_previous(run)};
    return i == 0;
}
