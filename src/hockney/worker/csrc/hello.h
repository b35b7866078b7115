/* The answer to `hello`: a description of this worker, and the location of its ranks. */
#ifndef HK_HELLO_H
#define HK_HELLO_H

#include "family.h"
#include "placement.h"

/* The identity of a rank. */
typedef struct hk_identity {
    char host[64];
    char machine[HK_MACHINE_BYTES]; /* the kernel: containers on one machine have the same */
    char network[32];               /* the network namespace; empty: unknown */
    int64_t pid;
    int32_t cpu;                /* the CPU it ran on when asked; -1: unknown */
    int32_t cpus_usable;        /* number of CPUs it may run on; 0: unknown */
    char bound[HK_BOUND_BYTES]; /* these CPUs: "0-3,8"; empty: unknown, or too long */
    uint32_t strangers;         /* refused connections without the token */
} hk_identity_t;

hk_identity_t hk_identify(void);

/* Sends the answer. floor_why: why there is no floor, or NULL; all: the first `count` ranks. */
hk_status_t hk_answer_hello(uint64_t id, hk_ctx_t *ctx, const char *floor_why, const hk_identity_t *all, int count);

#endif
