#include "distance.h"

#include <stdio.h>

bool hk_ring_fits(int size, const int64_t *option, char *why, size_t len)
{
    const int distance = (int)option[HK_RING_DISTANCE];
    if (distance < size) {
        return true;
    }
    snprintf(why, len, "a distance among %d ranks is at most %d, not %d", size, size - 1, distance);
    return false;
}

hk_status_t hk_ring_plan(const hk_run_t *run, hk_plan_t *plan_p)
{
    const uint64_t ranks = (uint64_t)run->ctx->size;
    *plan_p = (hk_plan_t){.out_bytes = run->bytes,
                          .in_bytes = run->bytes,
                          .bytes_per_rep = ranks * run->bytes,
                          .messages_per_rep = ranks,
                          .divisor = 1};
    return HK_OK;
}

bool hk_ring_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.len_bytes = run->bytes, .from_rank = hk_ring_previous(run)};
    return i == 0;
}
