#include "floor.h"

#include <stdatomic.h>

#include <sched.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "pace.h"
#include "transport.h"

enum { QUICK_SAMPLES = 5, QUICK_BATCH = 100, PATIENCE_SPINS = 20000, REST_DIVISIONS = 20 };
enum { WAKE_TRIPS = 25, WAKE_TRIPS_MIN = 5, WAKE_LIMIT_NS = 2000000, WAKE_WORD_BYTES = 1024 };

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
        hk_insert(sorted, i, hk_floor_sample(floor, QUICK_BATCH));
    }
    return sorted[QUICK_SAMPLES / 2];
}

#ifdef __linux__
/* The words never change, so FUTEX_WAIT always sleeps: if it could find a new value, ranks that once came too late for
 * sleep would exchange values awake from then on. */
static void sleep_on(_Atomic uint32_t *word)
{
    while (syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0) != 0) {
    }
}

/* Returns when the other rank sleeps no longer; until it sleeps, there is nothing to wake. */
static void wake(_Atomic uint32_t *word)
{
    while (syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1) {
        sched_yield();
    }
}

double hk_floor_wake(hk_floor_t *floor)
{
    if (floor->line == NULL || floor->rank > 1) {
        return -1.0;
    }
    _Atomic uint32_t *word = (void *)((char *)floor->line + WAKE_WORD_BYTES); /* rank r sleeps on word r */
    _Atomic uint32_t *is_last = word + 2;
    double sorted[WAKE_TRIPS];
    int taken = 0;
    if (floor->rank == 1) {
        for (uint32_t is_over = 0; is_over == 0;) {
            sleep_on(word + 1);
            is_over = atomic_load_explicit(is_last, memory_order_acquire);
            wake(word);
        }
        return -1.0;
    }
    const uint64_t start_ns = hk_real_now_ns(NULL);
    uint64_t before_ns = start_ns;
    for (bool is_over = false; !is_over;) {
        is_over = taken + 1 == WAKE_TRIPS || (taken + 1 >= WAKE_TRIPS_MIN && before_ns - start_ns > WAKE_LIMIT_NS);
        atomic_store_explicit(is_last, is_over, memory_order_release);
        wake(word + 1);
        sleep_on(word);
        const uint64_t now_ns = hk_real_now_ns(NULL);
        hk_insert(sorted, taken++, (double)(now_ns - before_ns) / 2.0);
        before_ns = now_ns;
    }
    return sorted[taken / 2];
}
#else
double hk_floor_wake(hk_floor_t *floor)
{
    (void)floor;
    return -1.0; /* only Linux has futexes */
}
#endif

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
