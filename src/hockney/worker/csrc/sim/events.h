/* Events of a simulated machine, for the files of the machine. Each file uses only those before it: engine.c runs
 * ranks and events in the order of time; costs.c, data.c and message_pool.c; cpu.c; tcp_flows.c; messages.c and tcp.c;
 * requests.c; onesided.c and stream.c; machine.c uses all. */
#ifndef HK_SIM_EVENTS_H
#define HK_SIM_EVENTS_H

#include "engine.h"

/* Events of a message: START to WRITE. */
void hk_message_event(hk_sim_t *sim, hk_event_kind_t kind, hk_message_t *message);

/* Events from SLICE on: of a turn, or WANT of a rank. */
void hk_cpu_event(hk_sim_t *sim, hk_event_kind_t kind, void *what);

/* Uninitialised memory for a message; NULL: no memory. */
hk_message_t *hk_message_new(hk_sim_t *sim);

void hk_message_drop(hk_sim_t *sim, hk_message_t *message);
void hk_messages_drop_all(hk_sim_t *sim);
void hk_messages_free(hk_sim_t *sim);

/* Copy data to a message, at its start: the sender may use its buffer again before the message has a receive. Give it
 * to the receive. Drop it. */
void hk_data_take(hk_sim_t *sim, hk_message_t *message, const void *buf);
void hk_data_give(hk_sim_t *sim, hk_message_t *message, const hk_sim_req_t *req);
void hk_data_drop(hk_sim_t *sim, hk_message_t *message);

/* Its last byte has come through switches with finite buffers (tcp.h). */
void hk_message_delivered(hk_sim_t *sim, hk_message_t *message);

/* A message leaves its sender, at the time of the sender's clock. */
void hk_message_begin(hk_sim_rank_t *rank, hk_message_t *message);

/* Match a message with its receive. */
void hk_message_meet(hk_sim_t *sim, hk_message_t *message, hk_sim_req_t *req);

/* Set when a request is done, and the CPU work that remains for its rank. */
void hk_req_complete(hk_sim_req_t *req, uint64_t done_ps, uint64_t cpu_ps);

/* A cost of a rank's CPU, with its node's factor and noise. */
uint64_t hk_sim_cpu_cost(hk_sim_rank_t *rank, uint64_t cost_ps);

/* A cost with noise; and the start of a rank's noise generator. */
uint64_t hk_sim_noisy(hk_sim_rank_t *rank, uint64_t cost_ps);
void hk_sim_seed(hk_sim_rank_t *rank, uint64_t seed);

#endif
