/* How far the clock of another rank is ahead, from exchanges with it: shared by clocks and owd.
 *
 * One rank reads its clock, sends, and reads it again when the answer is there; the other reads its own in between. If
 * that was in the middle, its clock is ahead by the difference from the middle. The middle is unknown by half the round
 * trip at most, so the exchange with the shortest one counts (Cristian 1989). */
#ifndef HK_CLOCK_H
#define HK_CLOCK_H

#include "../pattern.h"

/* All zero before the first exchange. */
typedef struct hk_clock {
    double ahead_ns, error_ns;
    bool is_known;
} hk_clock_t;

/* An exchange: sent and answered by one clock, read by the other. */
static inline void hk_clock_note(hk_clock_t *clock, uint64_t sent_ns, uint64_t read_ns, uint64_t answered_ns)
{
    const double error_ns = (double)(answered_ns - sent_ns) / 2;
    if (!clock->is_known || error_ns < clock->error_ns) {
        *clock = (hk_clock_t){(double)(int64_t)(read_ns - sent_ns) - error_ns, error_ns, true};
    }
}

#endif
