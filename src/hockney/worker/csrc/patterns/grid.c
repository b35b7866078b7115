/* cold */
#include "grid.h"

#include <stdio.h>

static int64_t power_of(int64_t number, int power)
{
    return power == 1 ? number : number * power_of(number, power - 1);
}

/* The largest divisor of number whose power is at most number, for example 4 for 24 and the square. */
static int largest_divisor(int number, int power)
{
    int root = 1;
    while (power_of(root + 1, power) <= number) {
        root++;
    }
    while (number % root != 0) {
        root--;
    }
    return root;
}

/* Choose the free dimensions, from the last one on, each near the root of the remaining product. Then sort them so
 * that x has most ranks. */
static void choose(int *ranks, const bool *is_free, int dimensions, int rest)
{
    int free_count = 0;
    for (int d = 0; d < dimensions; d++) {
        free_count += is_free[d];
    }
    for (int d = dimensions - 1; d >= 0; d--) {
        if (is_free[d]) {
            ranks[d] = free_count > 1 ? largest_divisor(rest, free_count) : rest;
            rest /= ranks[d];
            free_count--;
        }
    }
    for (int i = 0; i < dimensions; i++) {
        for (int j = i + 1; j < dimensions; j++) {
            if (is_free[i] && is_free[j] && ranks[i] < ranks[j]) {
                const int less = ranks[i];
                ranks[i] = ranks[j];
                ranks[j] = less;
            }
        }
    }
}

hk_grid_t hk_grid_of(const hk_run_t *run)
{
    const int dimensions = run->pattern->dimensions;
    hk_grid_t grid = {.ranks = {1, 1, 1, 1}};
    bool is_free[HK_GRID_DIMENSIONS_MAX] = {false};
    int rest = run->ctx->size;
    for (int d = 0; d < dimensions; d++) {
        const int asked = (int)run->option[d];
        is_free[d] = asked == 0;
        if (asked > 0) {
            grid.ranks[d] = asked;
            rest = rest % asked == 0 ? rest / asked : 1;
        }
    }
    choose(grid.ranks, is_free, dimensions, rest);
    int below = run->ctx->rank;
    for (int d = 0; d < HK_GRID_DIMENSIONS_MAX; d++) {
        grid.at[d] = below % grid.ranks[d];
        below /= grid.ranks[d];
    }
    return grid;
}

bool hk_grid_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_grid_t grid = hk_grid_of(run);
    int64_t ranks = 1;
    for (int d = 0; d < HK_GRID_DIMENSIONS_MAX && ranks <= run->ctx->size; d++) {
        ranks *= grid.ranks[d];
    }
    if (ranks == run->ctx->size) {
        return true;
    }
    char shape[64];
    int used = snprintf(shape, sizeof shape, "%d", grid.ranks[0]);
    for (int d = 1; d < run->pattern->dimensions && used > 0 && (size_t)used < sizeof shape; d++) {
        used += snprintf(shape + used, sizeof shape - (size_t)used, " x %d", grid.ranks[d]);
    }
    snprintf(why, len, "a grid of %s does not hold %d ranks: give factors of %d, or 0 for automatic", shape,
             run->ctx->size, run->ctx->size);
    return false;
}

static int rank_at(const hk_grid_t *grid, int dimension, int place)
{
    int rank = 0;
    for (int d = HK_GRID_DIMENSIONS_MAX - 1; d >= 0; d--) {
        rank = rank * grid->ranks[d] + (d == dimension ? place : grid->at[d]);
    }
    return rank;
}

int hk_grid_around(const hk_grid_t *grid, int dimension, int steps)
{
    const int ranks = grid->ranks[dimension];
    return rank_at(grid, dimension, ((grid->at[dimension] + steps) % ranks + ranks) % ranks);
}

int hk_grid_neighbour(const hk_grid_t *grid, int dimension, int steps)
{
    const int place = grid->at[dimension] + steps;
    return place >= 0 && place < grid->ranks[dimension] ? rank_at(grid, dimension, place) : -1;
}
