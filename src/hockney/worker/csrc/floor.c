#include "floor.h"

#include <stdatomic.h>

#include <sched.h>

#include "transport.h"

enum { QUICK_SAMPLES = 5, QUICK_BATCH = 100, PATIENCE_SPINS = 20000, REST_DIVISIONS = 20 };

/* Between two CPUs the answer arrives before the patience ends. If another program holds the other rank's CPU, or
 * both ranks share one, only sched_yield lets it arrive. */
static void wait_for(const _Atomic uint64_t *line, uint64_t value)
{
    for (int spins = 0; atomic_load_explicit(line, memory_order_acquire) != value; spins++) {
        if (spins >= PATIENCE_SPINS) {
            sched_yield();
        }
    }
}

double hk_floor_sample(hk_floor_t *floor, uint64_t batch)
{
    _Atomic uint64_t *line = floor->line;
    uint64_t turn = floor->turn;
    floor->turn += 2 * batch;
    const uint64_t start_ns = hk_real_now_ns(NULL);
    if (line != NULL && floor->rank == 0) {
        for (uint64_t i = 0; i < batch; i++, turn += 2) {
            atomic_store_explicit(line, turn + 1, memory_order_release);
            wait_for(line, turn + 2);
        }
    } else if (line != NULL && floor->rank == 1) {
        for (uint64_t i = 0; i < batch; i++, turn += 2) {
            wait_for(line, turn + 1);
            atomic_store_explicit(line, turn + 2, memory_order_release);
        }
    }
    return (double)(hk_real_now_ns(NULL) - start_ns) / (2.0 * (double)batch);
}

double hk_floor_quick(hk_floor_t *floor)
{
    if (floor->why != NULL) {
        return -1.0;
    }
    double sorted[QUICK_SAMPLES];
    hk_floor_sample(floor, QUICK_BATCH); /* warm-up */
    for (int i = 0; i < QUICK_SAMPLES; i++) {
        const double sample = hk_floor_sample(floor, QUICK_BATCH);
        int k = i;
        for (; k > 0 && sorted[k - 1] > sample; k--) {
            sorted[k] = sorted[k - 1];
        }
        sorted[k] = sample;
    }
    return sorted[QUICK_SAMPLES / 2];
}

/* About 0.1 us that leaves nearly the whole core to its other hardware thread: a chain of long divisions keeps the
 * pipeline empty. pause leaves less (Zen 4: a loop of additions takes 1.05 ns per step next to pause, 0.91 next to
 * this, 1.25 next to itself, and 0.63 alone). */
static void rest(void)
{
    uint64_t dividend = UINT64_MAX;
    uint64_t divisor = 3;
    for (int i = 0; i < REST_DIVISIONS; i++) {
        __asm__ volatile("" : "+r"(dividend), "+r"(divisor));
        dividend = UINT64_MAX - dividend / divisor;
    }
    __asm__ volatile("" : : "r"(dividend));
}

double hk_floor_alone(hk_floor_t *floor, double (*measure)(void))
{
    _Atomic uint64_t *line = floor->line;
    const uint64_t done = floor->turn + 1;
    double found = -1.0;
    floor->turn += 2;
    if (line != NULL && floor->rank == 0) {
        found = measure();
        atomic_store_explicit(line, done, memory_order_release);
        wait_for(line, done + 1); /* or the next turn may overwrite this one before rank 1 reads it */
    } else if (line != NULL && floor->rank == 1) {
        for (int spins = 0; atomic_load_explicit(line, memory_order_acquire) != done; spins++) {
            rest();
            if (spins >= PATIENCE_SPINS) {
                sched_yield();
            }
        }
        atomic_store_explicit(line, done + 1, memory_order_release);
    }
    return found;
}
