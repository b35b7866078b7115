/* What the start of a launch took, where a library starts its ranks (HK_CAP_STARTUP). */
#ifndef HK_STARTUP_H
#define HK_STARTUP_H

#include "transport.h"

/* Memory of this process: resident; and the same, but each page divided by the number of processes that share it, so
 * that the sum over all ranks is what their host needs. */
typedef struct hk_memory {
    double resident_bytes, proportional_bytes;
} hk_memory_t;

/* Of this rank. */
typedef struct hk_startup {
    uint64_t init_ns;   /* the library's initialisation: MPI_Init, shmem_init */
    uint64_t launch_ns; /* from the start of its parent, the launcher or its agent on this host, to the end of it, to
                           10 ms; 0: unknown */

    /* With HK_CAP_FIRST: the first exchange of 8 B with each peer, from when both are there, and the second one: round
     * trips [size], 0 with itself, the same on both ranks. */
    uint64_t *first_ns, *second_ns;
    bool has_memory;        /* whether this system tells it */
    hk_memory_t connection; /* growth for each peer: of 3 ranks or more without the first peer, which also loads code */
} hk_startup_t;

/* False: this system does not tell. */
bool hk_memory_now(hk_memory_t *memory_p);

/* CLOCK_MONOTONIC. */
uint64_t hk_startup_now_ns(void);

/* Time since the parent of this process was started, to a hundredth of a second; 0: unknown. */
uint64_t hk_since_parent_ns(void);

#endif
