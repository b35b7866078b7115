/* The pace of this rank's CPU: the time of a fixed loop of independent additions.
 *
 * Unlike the floor it shows how much of the core this rank gets. If another guest uses the other hardware thread of
 * the core, the rank and its messages are slower. Independent operations fill the core, so they take 1.4 to 2 times
 * as long when it is shared (Zen 4). A chain of dependent operations leaves room for both threads and takes only 1 %
 * longer. */
#ifndef HK_PACE_H
#define HK_PACE_H

/* Puts a value into its place among `count` ascending ones. */
static inline void hk_insert(double *sorted, int count, double value)
{
    for (; count > 0 && sorted[count - 1] > value; count--) {
        sorted[count] = sorted[count - 1];
    }
    sorted[count] = value;
}

/* ns per step: the median of a few short tries, so that an interrupt does not count. Takes about 5 us. */
double hk_pace_ns(void);

#endif
