/* The answer to `hello`: what this worker is, and where its ranks are. */
#ifndef HK_HELLO_H
#define HK_HELLO_H

#include "family.h"

/* What every rank tells about itself. */
typedef struct hk_identity {
    char host[64];
    char machine[HK_MACHINE_BYTES];
    int64_t pid;
    int32_t cpu;         /* where it ran when asked; -1: unknown */
    int32_t cpus_usable; /* how many CPUs it may run on; 0: unknown */
    uint32_t strangers;  /* connections that it refused, as they did not know the token */
} hk_identity_t;

hk_identity_t hk_identify(void);

/* Sends it. floor_why: why there is no floor, or NULL; all: of the first `told` ranks. */
hk_status_t hk_answer_hello(uint64_t id, hk_ctx_t *ctx, const char *floor_why, const hk_identity_t *all, int told);

#endif
