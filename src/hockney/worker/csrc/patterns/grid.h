/* A grid of processes in up to three dimensions: rank = x + nx (y + ny z). */
#ifndef HK_GRID_H
#define HK_GRID_H

#include "../pattern.h"

enum { HK_GRID_DIMENSIONS_MAX = 3 };

/* The first options of a pattern on a grid, one for each dimension. 0: chosen. */
enum { HK_GRID_NX, HK_GRID_NY, HK_GRID_NZ };

// clang-format off
#define HK_GRID_OPTION(name) {name, NULL, 0, 0, 1048576, "ranks in this direction of the grid; 0: chosen near-square"}
// clang-format on

typedef struct hk_grid {
    int ranks[HK_GRID_DIMENSIONS_MAX]; /* in each dimension; 1 in those that there are not */
    int at[HK_GRID_DIMENSIONS_MAX];    /* of this rank */
} hk_grid_t;

/* This rank in the grid that the options give, or the nearest to a square (cube) with the most ranks along x. Options
 * that fit no grid give one that has not run->ctx->size ranks. */
hk_grid_t hk_grid_of(const hk_run_t *run);

/* The hook `fits`: whether the options give a grid of all ranks. */
bool hk_grid_fits(const hk_run_t *run, char *why, size_t len);

/* The rank so many steps further on in a dimension, around its end. */
int hk_grid_around(const hk_grid_t *grid, int dimension, int steps);

/* The same, or -1 beyond the end. */
int hk_grid_beside(const hk_grid_t *grid, int dimension, int steps);

#endif
