/* The pace of the CPU under this rank: what a fixed loop of independent additions takes.
 *
 * It shows what the floor doesn't: how much of its core this rank has. On a core whose other hardware thread belongs to
 * another guest every rank goes slower, and so does every message. Independent operations fill the core and so feel who
 * shares it: 1.4 to 2 times as long (Zen 4). A chain of dependent ones leaves room for both and feels 1 %. */
#ifndef HK_PACE_H
#define HK_PACE_H

/* ns of one step, the median of a few short tries, so that an interrupt doesn't count; some 5 us in all. */
double hk_pace_ns(void);

#endif
