/* What the start of a launch took, where a library starts its ranks (HK_CAP_STARTUP). */
#ifndef HK_STARTUP_H
#define HK_STARTUP_H

#include "transport.h"

/* Of this rank. */
typedef struct hk_startup {
    uint64_t init_ns;   /* the library's initialisation: MPI_Init, shmem_init */
    uint64_t launch_ns; /* from the start of its parent, the launcher or its agent on this host, to the end of it, to
                           10 ms; 0: unknown */

    /* With HK_CAP_FIRST: the first exchange of 8 B with each peer, and the second one: round trips [size], 0 with itself.
     * Both ranks have the time of the lower one, which begins. */
    uint64_t *first_ns, *second_ns;
    double resident_bytes, unique_bytes; /* growth by all of them, for each peer; negative: unknown */
} hk_startup_t;

/* Memory of this process: resident, and the part of it that no other process shares; negative: unknown. */
typedef struct hk_memory {
    double resident_bytes, unique_bytes;
} hk_memory_t;

hk_memory_t hk_memory_now(void);

/* CLOCK_MONOTONIC. */
uint64_t hk_startup_now_ns(void);

/* Time since the parent of this process was started, to a hundredth of a second; 0: unknown. */
uint64_t hk_since_parent_ns(void);

#endif
