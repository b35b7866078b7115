/* Coroutines: each has a stack of its own, and one of them runs at a time. A switch makes no system call. */
#ifndef HK_SIM_SWITCH_H
#define HK_SIM_SWITCH_H

#include <stddef.h>

#include "../status.h"

/* A place to go on at: whoever is switched away from keeps what it needs on its own stack. */
typedef struct hk_place hk_place_t;

/* Stacks for so many coroutines, in one mapping: only pages that are used cost memory. */
typedef struct hk_stacks {
    unsigned char *base;
    size_t count, bytes; /* of each */
} hk_stacks_t;

hk_status_t hk_stacks_open(size_t count, hk_stacks_t *stacks_p);
void hk_stacks_close(hk_stacks_t *stacks);

/* Goes on at *to, which is then used up; returns when somebody switches to *here_p. */
void hk_switch(hk_place_t **here_p, hk_place_t *to);

/* Begins a coroutine on the i-th stack: calls body(arg), which never returns but ends in hk_switch. */
void hk_switch_new(hk_place_t **here_p, const hk_stacks_t *stacks, size_t i, void (*body)(void *), void *arg);

#endif
