/* Where the ranks of a host go, and where they are. */
#ifndef HK_PLACEMENT_H
#define HK_PLACEMENT_H

#include <stdbool.h>

enum { HK_BOUND_BYTES = 128 };

typedef enum hk_map {
    HK_MAP_CORE,   /* consecutive cores: one socket after the other */
    HK_MAP_SOCKET, /* one socket in each turn */
    HK_MAP_NODE,   /* one NUMA node in each turn */
} hk_map_t;

/* A CPU. Those of one core, socket or node have the same number there; the numbers mean nothing else. */
typedef struct hk_map_cpu {
    int cpu;
    int core;
    int socket;
    int node;
    int thread; /* set by hk_map_order: how many of its core's CPUs come before it */
    int group;  /* likewise, and turn */
    int turn;
} hk_map_cpu_t;

/* "core", "socket", "node". False: another word. */
bool hk_map_find(const char *word, hk_map_t *map_p);

/* Sort CPUs into the order in which ranks take them. Further hardware threads of a core come after all cores. */
void hk_map_order(hk_map_t map, hk_map_cpu_t *cpus, int count);

/* Up to `most` CPUs that this process may use, in that order. Returns their number; 0: pinning is impossible. */
int hk_map_own(hk_map_t map, int *cpus, int most);

/* The CPUs that this thread may run on, as text: "0-3,8"; empty: unknown, or too long. Returns their number; 0:
 * unknown.
 */
int hk_bound_cpus(char text[HK_BOUND_BYTES]);

#endif
