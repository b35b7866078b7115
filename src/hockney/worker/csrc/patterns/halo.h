/* Halo exchange: every rank of a periodic grid sends a message to each neighbour and has one from each, all at once,
 * and then computes. What halo2d and halo3d share: all but the number of dimensions. */
#ifndef HK_HALO_H
#define HK_HALO_H

#include "delay.h"
#include "grid.h"

enum { HK_HALO_FACES_MAX = 2 * HK_GRID_DIMENSIONS_MAX };

/* The option after those of the grid, in both. */
// clang-format off
#define HK_HALO_OPTION_COMPUTE \
    {"compute_us", NULL, 0, 0, 1000000, "what each rank computes after each exchange, in us; 0: nothing"}
// clang-format on

hk_plan_t hk_halo_plan(const hk_run_t *run, int dimensions);
hk_status_t hk_halo_prepare(hk_run_t *run, int dimensions);
hk_status_t hk_halo_repeat(hk_run_t *run, uint64_t reps);
bool hk_halo_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);
bool hk_halo_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p);

#endif
