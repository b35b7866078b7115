/* Coroutines with separate stacks, one running at a time. A switch makes no system call. */
#ifndef HK_SIM_SWITCH_H
#define HK_SIM_SWITCH_H

#include <stddef.h>

#include "../status.h"

/* The saved state of a coroutine, on its stack. */
typedef struct hk_place hk_place_t;

/* Stacks of `count` coroutines in one mapping: only used pages cost memory. */
typedef struct hk_stacks {
    unsigned char *base;
    size_t count, bytes; /* of each */
} hk_stacks_t;

hk_status_t hk_stacks_open(size_t count, hk_stacks_t *stacks_p);
void hk_stacks_close(hk_stacks_t *stacks);

/* Continue *to, which is then invalid. Returns when another coroutine switches to *here_p. */
void hk_switch(hk_place_t **here_p, hk_place_t *to);

/* Start a coroutine on the i-th stack: call body(arg), which must not return but end in hk_switch. */
void hk_switch_new(hk_place_t **here_p, const hk_stacks_t *stacks, size_t i, void (*body)(void *), void *arg);

#endif
