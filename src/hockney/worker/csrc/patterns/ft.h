/* The grid of FT and its spectrum, of which each rank has a slab (ft.c): what ft_grid.c computes on one rank. */
#ifndef HK_FT_H
#define HK_FT_H

#include "../pattern.h"
#include "fft.h"

enum { HK_FT_ITERATIONS = 6 };

typedef struct ft_class {
    const char *name;
    size_t nx, ny, nz;
    hk_complex_t sum[HK_FT_ITERATIONS]; /* as published with the NPB */
} ft_class_t;

/* One rank's part of a problem. A slab is a block for each rank: planes z, in them lines y, in them points x. */
typedef struct ft {
    const ft_class_t *grid;
    hk_run_t *run;
    size_t rank, lines, planes;    /* lines y of the spectrum's slab, planes z of the grid's */
    size_t block;                  /* points */
    hk_complex_t *sent, *received; /* slabs; their last point carries a rank's part of a checksum */
    hk_complex_t *spectrum;        /* a slab: lines y, in them z, in them x */
    hk_status_t (*exchange)(struct ft *ft);
    hk_status_t (*solve)(struct ft *ft, hk_complex_t *const *line);
    hk_complex_t *line[HK_FFT_POINTS_MAX];        /* where each line y of the first plane is when planes come in */
    const hk_complex_t *plane[HK_FFT_POINTS_MAX]; /* where each plane z is when lines of the spectrum come in */
    double decay_x[HK_FFT_POINTS_MAX], decay_y[HK_FFT_POINTS_MAX], decay_z[HK_FFT_POINTS_MAX];
    hk_fft_t fft_x, fft_y, fft_z;
    hk_fft_block_t block_a, block_b;
    hk_complex_t sum[HK_FT_ITERATIONS]; /* rank 0: of the last repetition */
    int wrong;                          /* rank 0: the first iteration whose checksum was ever wrong; 0: none */
    hk_complex_t wrong_sum;
} ft_t;

/* In which direction: the inverse of a transform is the transform with re and im in each other's place. */
typedef enum direction { HK_FT_FORWARD, HK_FT_INVERSE } hk_ft_direction_t;

/* The initial values of this rank's planes, laid out in blocks for their receivers. */
void hk_ft_draw_planes(const ft_t *ft);

/* exp(-4 alpha pi^2 k^2) with k from -points/2 to points/2 - 1, and the negative ones last. */
void hk_ft_fill_decay(double *decay, size_t points);

/* All planes of this rank in both of their directions, in place. */
void hk_ft_planes(ft_t *ft, hk_complex_t *const *line, hk_ft_direction_t direction);

/* Along z, from the planes that came in to the spectrum. */
void hk_ft_z(ft_t *ft);

/* One time step of the spectrum, and back along z into the planes that go out. */
void hk_ft_step_z(ft_t *ft);

#endif
