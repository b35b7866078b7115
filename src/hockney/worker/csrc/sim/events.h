/* What can happen on a simulated machine, and what then does: for the files of the machine, of which each stands on
 * those before it. engine.c lets ranks go on and events happen, by the order of time; costs.c and message_pool.c are
 * what all need; cpu.c; messages.c; requests.c; onesided.c and stream.c; machine.c knows them all. */
#ifndef HK_SIM_EVENTS_H
#define HK_SIM_EVENTS_H

#include "engine.h"

/* Of a message: from START to WRITE. */
void hk_message_event(hk_sim_t *sim, hk_event_kind_t kind, hk_message_t *message);

/* From SLICE on: of a turn, or with WANT of a rank. */
void hk_cpu_event(hk_sim_t *sim, hk_event_kind_t kind, void *what);

/* Room for a message, of which nothing is set; NULL: no memory. */
hk_message_t *hk_message_new(hk_sim_t *sim);

void hk_message_drop(hk_sim_t *sim, hk_message_t *message);
void hk_messages_drop_all(hk_sim_t *sim);
void hk_messages_free(hk_sim_t *sim);

/* A message leaves its sender, whose clock it begins at. */
void hk_message_begin(hk_sim_rank_t *rank, hk_message_t *message);

/* A message and its receive have found each other. */
void hk_message_meet(hk_sim_t *sim, hk_message_t *message, hk_sim_req_t *req);

/* It is known when a request is done, and what its rank's CPU then still has to do. */
void hk_req_complete(hk_sim_req_t *req, uint64_t done_ps, uint64_t cpu_ps);

/* A cost of a rank's CPU, by its node and with noise. */
uint64_t hk_sim_cpu_cost(hk_sim_rank_t *rank, uint64_t cost_ps);

/* What a random draw makes of a cost; and where the draws of a rank begin. */
uint64_t hk_sim_noisy(hk_sim_rank_t *rank, uint64_t cost_ps);
void hk_sim_seed(hk_sim_rank_t *rank, uint64_t seed);

#endif
