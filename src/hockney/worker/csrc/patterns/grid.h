/* A grid of processes in up to four dimensions: rank = x + nx (y + ny (z + nz t)). */
#ifndef HK_GRID_H
#define HK_GRID_H

#include "../pattern.h"

enum { HK_GRID_DIMENSIONS_MAX = 4 };

/* The first options of a grid pattern, one for each dimension. 0: automatic. */
enum { HK_GRID_NX, HK_GRID_NY, HK_GRID_NZ, HK_GRID_NT };

// clang-format off
#define HK_GRID_OPTION(name) {name, NULL, 0, 0, 1048576, "ranks in this direction; 0: automatic, near-square"}
// clang-format on

typedef struct hk_grid {
    int ranks[HK_GRID_DIMENSIONS_MAX]; /* in each dimension; 1 in unused ones */
    int at[HK_GRID_DIMENSIONS_MAX];    /* this rank's coordinates */
} hk_grid_t;

/* This rank's place in the grid of the options, or in the grid nearest to a square (cube) with most ranks along x.
 * Invalid options give a grid whose size is not run->ctx->size. */
hk_grid_t hk_grid_of(const hk_run_t *run);

/* The hook `fits`: the options give a grid of all ranks. */
bool hk_grid_fits(const hk_run_t *run, char *why, size_t len);

/* The rank `steps` further in a dimension; the grid is periodic. */
int hk_grid_around(const hk_grid_t *grid, int dimension, int steps);

/* The same without periodicity: -1 outside the grid. */
int hk_grid_neighbour(const hk_grid_t *grid, int dimension, int steps);

#endif
