/* Round trips of one message between two ranks: the core of ping-pong, bisection and rounds. Also how ranks
 * synchronise before a sample. */
#ifndef HK_ROUNDTRIP_H
#define HK_ROUNDTRIP_H

#include "../pattern.h"
#include "roles.h"

/* One side of `reps` round trips with `peer`. Each side sends from a separate buffer, so a transport cannot send
 * data that is still in the cache from receiving. */
hk_status_t hk_round_trips(hk_run_t *run, int peer, bool begins, uint64_t reps);

/* The same by other functions, which are constants in each call. */
typedef hk_status_t (*hk_move_t)(hk_run_t *run, int peer);
static inline hk_status_t hk_trips(hk_run_t *run, int peer, bool begins, uint64_t reps, const hk_move_t send,
                                   const hk_move_t receive)
{
    if (begins) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(send(run, peer));
            HK_TRY(receive(run, peer));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(receive(run, peer));
            HK_TRY(send(run, peer));
        }
    }
    return HK_OK;
}

/* The shortest of some round trips, after one that does not count. */
hk_status_t hk_shortest_trip(hk_run_t *run, int peer, bool begins, int trips, uint64_t *least_ns_p);

/* `reps` exchanges with a peer that does the same. Posted: the receive is started, then the message is sent; else the
 * send is started, then the message received. */
hk_status_t hk_exchanges(hk_run_t *run, int peer, uint64_t reps);
hk_status_t hk_posted_exchanges(hk_run_t *run, int peer, uint64_t reps);

/* An empty round trip, for patterns in which one end begins. It ensures that the peer is ready when the clock starts,
 * and that the link is free.
 *
 * A barrier is not enough. If other ranks are farther away, one of the pair leaves it long before the other: in a
 * job with one link of 6 ms, a link of 2 ms appeared to take 4.2. The rank that begins leaves first, and its message
 * may have to wait behind a token of the barrier. */
hk_status_t hk_meet(const hk_run_t *run, int peer, bool begins);

/* The same between source and target, as the hook `meet`. `_in`: for patterns whose role options are not the first. */
hk_status_t hk_roles_meet(hk_run_t *run);
hk_status_t hk_roles_meet_in(const hk_run_t *run, const int64_t *option);

/* Starts ranks 0 and 1 at the same time, for patterns in which both send first. A barrier is not enough: two ranks
 * leave it up to half a round trip apart, so over a link of 2 ms an exchange appeared to take 0 or 4 ms. After hk_meet,
 * rank 0 measures several round trips, sends a start signal, and waits for half of the shortest while it travels.
 *
 * Only the shortest is safe: after a delayed one rank 0 would start when the peer's message has already arrived. If
 * a send may wait for its receive (HK_CAP_SYNCHRONOUS), rank 0 is free only after the confirmation, so both wait
 * half a round trip longer. */
hk_status_t hk_start_together(hk_run_t *run);

/* The same of any pair: the rank that begins is rank 0 above. */
hk_status_t hk_start_pair(hk_run_t *run, int peer, bool begins);

#endif
