/* Round trips of one message between two ranks: what ping-pong, bisection and rounds repeat, and how ranks that are
 * timed together meet before a sample. */
#ifndef HK_ROUNDTRIP_H
#define HK_ROUNDTRIP_H

#include "../pattern.h"
#include "roles.h"

/* One side of `reps` round trips with `peer`. Each side sends its own buffer, so a transport can't answer with what is
 * still in its cache from receiving. */
hk_status_t hk_round_trips(hk_run_t *run, int peer, bool begins, uint64_t reps);

/* An empty round trip, for patterns in which one end begins, so that the peer is there when the clock starts, and the
 * way to it is free. Where other ranks are farther away, one of two leaves the barrier long before the other: in a job
 * with one link of 6 ms, a link of 2 ms seemed to take 4.2. Of two ranks the one that begins leaves it first, with a
 * token still under way, for which its first message may have to wait. */
hk_status_t hk_meet(const hk_run_t *run, int peer, bool begins);

/* The same between the source and the target, as the hook `meet`. `_in`: where the options are not the pattern's first.
 */
hk_status_t hk_roles_meet(hk_run_t *run);
hk_status_t hk_roles_meet_in(const hk_run_t *run, const int64_t *option);

/* Starts ranks 0 and 1 at the same time, for patterns in which both send first. A barrier is not enough: two ranks
 * leave it up to half a round trip apart, so over a link of 2 ms an exchange seemed to take 0 ms, or 4. After meeting,
 * rank 0 measures some round trips, sends the start signal, and waits for half of the shortest while it travels.
 *
 * The shortest, because after a delayed one rank 0 would start when the other's message has already arrived. Where a
 * send may wait for its receive (HK_CAP_SYNCHRONOUS), rank 0 is free only when the confirmation has come back, so both
 * wait half a round trip longer. */
hk_status_t hk_start_together(hk_run_t *run);

#endif
