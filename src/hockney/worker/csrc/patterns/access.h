/* Puts and gets: which ranks access which, how many operations complete together, and how. The core of put, get and
 * their kin.
 *
 * A rank's `out` has the places that are read, its `in` those that are written; operation k of a window uses place
 * k % places. Where several ranks write to one, each has a slot of places. */
#ifndef HK_ACCESS_H
#define HK_ACCESS_H

#include "epoch.h"

typedef enum hk_reach {
    HK_REACH_PAIR,     /* the source accesses the target */
    HK_REACH_HALVES,   /* rank i of the first half rank i of the second */
    HK_REACH_RING,     /* each rank the one `distance` after it */
    HK_REACH_FAN,      /* rank 0 all others */
    HK_REACH_ALL,      /* each rank all others */
    HK_REACH_EXCHANGE, /* each rank the one before it and the one after it */
} hk_reach_t;

/* What distinguishes the patterns: `own` of each. */
typedef struct hk_access_kind {
    hk_reach_t reach;
    bool reads;
    int options_at; /* the first of HK_ACCESS_OPTIONS */
    int quiet_at;   /* the option `quiet` of puts (puts.h); -1: none */
} hk_access_kind_t;

enum { HK_ACCESS_WINDOW, HK_ACCESS_SYNC, HK_ACCESS_PLACES, HK_ACCESS_OVERLAP, HK_ACCESS_TIME };

// clang-format off
#define HK_ACCESS_OPTIONS                                                                                       \
    {"window", NULL, 0, 0, 1024, "operations that complete together; 0: those of a batch"},                     \
    HK_EPOCH_OPTION_SYNC,                                                                                       \
    {"places", "few|all", 0, 0, 0,                                                                              \
     "few: long messages of a window share places that fit the cache; all: each has its own"},                  \
    {"overlap", "no|yes", 0, 0, 0, "compute before the completion, for as long as the operations take by themselves"}
/* Of rings, after these. */
#define HK_ACCESS_OPTION_TIME {"time", "mean|slowest|root", 0, 0, 0, "whose time counts; root: rank 0's"}
// clang-format on

/* Who accesses whom (access_reach.c). The ranks that this one accesses, or that access it, in order: their number. Two
 * ranks that exchange are each other's both. `peers` has room for peers_max. */
int hk_reach_peers(const hk_run_t *run, bool accesses, int *peers);
size_t hk_reach_peers_max(const hk_run_t *run);

/* The slot of this rank's `in` for the data of peer i, and of peer i's `in` for this rank's: that of the rank before is
 * the first. How many slots this rank has. */
size_t hk_reach_slot_here(const hk_run_t *run, int i, int peer);
size_t hk_reach_slot_there(const hk_run_t *run, int i);
size_t hk_reach_slots(const hk_run_t *run);

/* Of all ranks, in one repetition with a window of one. */
uint64_t hk_reach_accesses(const hk_run_t *run);

/* Hooks. */
bool hk_access_fits(const hk_run_t *run, char *why, size_t len);
hk_plan_t hk_access_plan(const hk_run_t *run);
hk_status_t hk_access_prepare(hk_run_t *run);
hk_status_t hk_access_finish(hk_run_t *run);
hk_status_t hk_access_repeat(hk_run_t *run, uint64_t reps);
bool hk_access_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);
bool hk_access_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

#endif
