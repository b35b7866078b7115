/* TCP over switches whose output ports have finite buffers: how the bytes of messages cross the links of a model that
 * has a [switch]. Simplified from NewReno (RFC 5681, 6298, 6582), so that small cases can be computed by hand:
 *
 * - A connection for each pair of ranks and direction is open already; its window survives idle times.
 * - A segment has at most mss_bytes, and header_bytes more on links. Each is acknowledged at once, in no time but the
 *   latencies of its links. No pacing.
 * - A link sends one segment after another. The output port of a switch holds buffer_bytes that are not yet sent, the
 *   rest is dropped; with `shared` all ports of the switch together. A host's own queue has no end.
 * - A lost segment is sent again after three duplicate acknowledgements, or after the retransmission time: the smoothed
 *   round trip and min_rto, or four deviations if they are longer, and twice as much each time in a row.
 *
 * - With probe_ns the last segment is sent again when nothing was heard for two round trips and probe_ns, if nothing is
 *   known to be lost (RFC 8985, section 7). Acknowledgements then tell all gaps, which are sent again at once, and
 * again if they are there still when the last of them came.
 *
 * All is deterministic: segments of the same time arrive in the order in which they were sent. */
#ifndef HK_SIM_TCP_H
#define HK_SIM_TCP_H

#include "engine.h"

/* The connections of a machine. */
typedef struct hk_tcp hk_tcp_t;

/* HK_ERR_MEMORY, without a line in the log. */
hk_status_t hk_tcp_open(hk_sim_t *sim);
void hk_tcp_close(hk_sim_t *sim);

/* Forget all connections and counts. */
void hk_tcp_reset(hk_sim_t *sim);

/* Send a message that leaves its node now. hk_message_delivered follows when its last byte has arrived. */
void hk_tcp_send(hk_sim_t *sim, hk_message_t *message);

/* An event of a segment or of a timer. */
void hk_tcp_event(hk_sim_t *sim, hk_event_kind_t kind, void *what);

/* Of connections to this rank, which has seen their ends when it reads this: segments sent again, timers that ran out,
 * segments that a switch dropped. */
bool hk_tcp_counter(const hk_sim_rank_t *rank, size_t i, hk_counter_t *counter_p);

#endif
