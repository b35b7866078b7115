/* What happens on a simulated machine, by time: a heap of which each place has four below it. What is due at the same
 * moment happens in the order in which it was put in, so that a simulation is the same, bit for bit, each time. */
#ifndef HK_SIM_QUEUE_H
#define HK_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HK_EVENT_KINDS = 16 };

/* `what` is its owner's: kind and object. */
typedef struct hk_event {
    uint64_t at_ps;
    uint64_t number; /* and its kind in the lowest bits: no two numbers are the same */
    void *what;
} hk_event_t;

/* All zero is an empty queue. */
typedef struct hk_queue {
    hk_event_t *heap;
    size_t count, room;
    uint64_t number;
    bool failed; /* there was no memory for an event */
} hk_queue_t;

void hk_queue_put(hk_queue_t *queue, uint64_t at_ps, uint32_t kind, void *what);

static inline uint32_t hk_event_kind(const hk_event_t *event)
{
    return event->number % HK_EVENT_KINDS;
}

/* The earliest; there must be one. */
hk_event_t hk_queue_take(hk_queue_t *queue);

/* Forget all events, but not the memory. */
void hk_queue_clear(hk_queue_t *queue);
void hk_queue_free(hk_queue_t *queue);

#endif
