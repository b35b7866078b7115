#include "queue.h"

#include <stdlib.h>

enum { BELOW = 4, FIRST_ROOM = 1024 };

static inline bool is_before(const hk_event_t *a, const hk_event_t *b)
{
    return (a->at_ps < b->at_ps) | ((a->at_ps == b->at_ps) & (a->number < b->number)); /* no branch to mispredict */
}

static bool make_room(hk_queue_t *queue)
{
    const size_t room = queue->room == 0 ? FIRST_ROOM : 2 * queue->room;
    hk_event_t *heap = realloc(queue->heap, room * sizeof *heap);
    if (heap == NULL) {
        queue->failed = true;
        return false;
    }
    queue->heap = heap;
    queue->room = room;
    return true;
}

void hk_queue_put(hk_queue_t *queue, uint64_t at_ps, uint32_t kind, void *what)
{
    if (queue->count == queue->room && !make_room(queue)) {
        return;
    }
    const hk_event_t event = {.at_ps = at_ps, .number = queue->number++ * HK_EVENT_KINDS + kind, .what = what};
    hk_event_t *heap = queue->heap;
    size_t place = queue->count++;
    while (place > 0) {
        const size_t above = (place - 1) / BELOW;
        if (!is_before(&event, &heap[above])) {
            break;
        }
        heap[place] = heap[above];
        place = above;
    }
    heap[place] = event;
}

hk_event_t hk_queue_take(hk_queue_t *queue)
{
    hk_event_t *heap = queue->heap;
    const hk_event_t first = heap[0];
    const size_t count = --queue->count;
    const hk_event_t last = heap[count];
    size_t place = 0;
    for (;;) {
        const size_t below = BELOW * place + 1;
        if (below >= count) {
            break;
        }
        size_t least = below;
        if (below + BELOW <= count) {
            const size_t left = below + is_before(&heap[below + 1], &heap[below]);
            const size_t right = below + 2 + is_before(&heap[below + 3], &heap[below + 2]);
            least = is_before(&heap[right], &heap[left]) ? right : left;
        } else {
            for (size_t other = below + 1; other < count; other++) {
                least = is_before(&heap[other], &heap[least]) ? other : least;
            }
        }
        if (!is_before(&heap[least], &last)) {
            break;
        }
        heap[place] = heap[least];
        place = least;
    }
    heap[place] = last;
    __builtin_prefetch(heap[0].what);
    return first;
}

void hk_queue_clear(hk_queue_t *queue)
{
    queue->count = 0;
    queue->number = 0;
    queue->failed = false;
}

void hk_queue_free(hk_queue_t *queue)
{
    free(queue->heap);
    *queue = (hk_queue_t){0};
}
