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
