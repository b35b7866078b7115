/* What can happen on a simulated machine, and what then does. For engine.c and those that do it only. */
#ifndef HK_SIM_EVENTS_H
#define HK_SIM_EVENTS_H

#include "engine.h"

typedef enum hk_event_kind {
    HK_EVENT_GO_ON,    /* a rank, in step with the machine */
    HK_EVENT_START,    /* a message comes to its channel */
    HK_EVENT_TRANSFER, /* rendezvous: both are there */
    HK_EVENT_CHANNEL,  /* a channel is free for this message */
    HK_EVENT_LAUNCH,   /* the sender's node lets a message go */
    HK_EVENT_ARRIVE,   /* a message comes to the receiver's node */
    HK_EVENT_WRITE,    /* a word that was put comes into memory */
    HK_EVENT_SLICE,    /* a turn of a CPU is cut short */
    HK_EVENT_DONE,     /* a turn of a CPU has done its work */
    HK_EVENT_RELEASE,  /* a turn that held a CPU gives it back */
    HK_EVENT_WANT,     /* a request of a rank that computes is done */
} hk_event_kind_t;

/* Of a message: from START to WRITE. */
void hk_message_event(hk_sim_t *sim, hk_event_kind_t kind, hk_message_t *message);

/* From SLICE on: of a turn, or with WANT of a rank. */
void hk_cpu_event(hk_sim_t *sim, hk_event_kind_t kind, void *what);

/* Room for a message, of which nothing is set; NULL: no memory. */
hk_message_t *hk_message_new(hk_sim_t *sim);

void hk_message_drop(hk_sim_t *sim, hk_message_t *message);

/* A message leaves its sender, whose clock it begins at. */
void hk_message_begin(hk_sim_rank_t *rank, hk_message_t *message);

/* A message and its receive have found each other. */
void hk_message_meet(hk_sim_t *sim, hk_message_t *message, hk_sim_req_t *req);

/* A put or get has been let in. */
void hk_one_sided_arrive(hk_sim_t *sim, hk_message_t *message, uint64_t at_ps);

/* A word comes into its rank's memory. */
void hk_one_sided_write(hk_sim_t *sim, hk_message_t *message);

/* It is known when a request is done, and what its rank's CPU then still has to do. */
void hk_req_complete(hk_sim_req_t *req, uint64_t done_ps, uint64_t cpu_ps);

/* A cost of a rank's CPU, by its node and with noise. */
uint64_t hk_sim_cpu_cost(hk_sim_rank_t *rank, uint64_t cost_ps);

/* What a random draw makes of a cost. */
uint64_t hk_sim_noisy(hk_sim_rank_t *rank, uint64_t cost_ps);

#endif
