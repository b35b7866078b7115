/* The events of a simulated machine, by time: a heap with four children per node. Events of the same time happen in
 * the order in which they were added, so a simulation always gives the same result, bit for bit. */
#ifndef HK_SIM_QUEUE_H
#define HK_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HK_EVENT_KINDS = 16 };

/* `what` belongs to the caller: kind and object. */
typedef struct hk_event {
    uint64_t at_ps;
    uint64_t number; /* with the kind in the lowest bits; all numbers differ */
    void *what;
} hk_event_t;

/* All zero is an empty queue. */
typedef struct hk_queue {
    hk_event_t *heap;
    size_t count, room;
    uint64_t number;
    bool failed; /* no memory for an event */
} hk_queue_t;

void hk_queue_put(hk_queue_t *queue, uint64_t at_ps, uint32_t kind, void *what);

static inline uint32_t hk_event_kind(const hk_event_t *event)
{
    return event->number % HK_EVENT_KINDS;
}

/* The earliest event; there must be one. */
hk_event_t hk_queue_take(hk_queue_t *queue);

/* Forget all events, but keep the memory. */
void hk_queue_clear(hk_queue_t *queue);
void hk_queue_free(hk_queue_t *queue);

#endif
