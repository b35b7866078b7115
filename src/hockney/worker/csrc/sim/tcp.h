/* TCP over switches whose output ports have finite buffers: how the bytes of messages cross the links of a model that
 * has a [switch]. Reno with selective acknowledgements, simplified from Linux (RFC 5681, 6298, 6675, 6937, 8985), so
 * that small cases can be computed by hand:
 *
 * - A connection for each pair of ranks and direction is open already; its window survives idle times.
 * - A segment has at most mss_bytes, and header_bytes more on links. Each is acknowledged at once, in no time but the
 *   latencies of its links. No pacing, but the jitter of hosts.
 * - A link sends one segment after another. The output port of a switch holds buffer_bytes that are not yet sent, the
 *   rest is dropped; with `shared` all ports of the switch together. A host's own queue has no end.
 * - A connection's segments keep their order, so one is lost as soon as a later one was acknowledged, and is sent again
 *   at once if the window allows it. The window is halved once for all losses of what was under way.
 * - With probe_ns the last segment, or the next one, is sent when nothing was heard for two round trips and probe_ns;
 *   of one segment alone for two round trips and min_rto.
 * - After the retransmission time all that is under way counts as lost, and the window is one segment: the smoothed
 *   round trip and min_rto, or four deviations if they are longer, and twice as much each time in a row.
 *
 * All is deterministic: segments of the same time arrive in the order in which they were sent, and random parts of
 * `jitter` are the same in each run. */
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
