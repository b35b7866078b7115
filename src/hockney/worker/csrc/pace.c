#include "pace.h"

#include <stddef.h>
#include <stdint.h>

#include "transport.h"

enum { TRIES = 5, STEPS = 1000 };

/* One step is an addition in each lane. The compiler may reorder them but not drop any. */
static double one_try_ns(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    const uint64_t start_ns = hk_real_now_ns(NULL);
    for (int step = 0; step < STEPS; step++) {
        a++, b++, c++, d++, e++, f++, g++, h++;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        __asm__ volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    return (double)(hk_real_now_ns(NULL) - start_ns) / STEPS;
}

double hk_pace_ns(void)
{
    double sorted[TRIES];
    for (int i = 0; i < TRIES; i++) {
        hk_insert(sorted, i, one_try_ns());
    }
    return sorted[TRIES / 2];
}
