/* The grid of FT and its spectrum, as slabs (ft.c), and the local computation (ft_grid.c). */
#ifndef HK_FT_H
#define HK_FT_H

#include "../pattern.h"
#include "fft.h"

enum { HK_FT_ITERATIONS = 6 };

typedef struct ft_class {
    const char *name;
    size_t nx, ny, nz;
    hk_complex_t sum[HK_FT_ITERATIONS]; /* published with NPB */
} ft_class_t;

/* One rank's part of a problem. A slab has one block per rank. A block has planes z of lines y of points x. */
typedef struct ft {
    const ft_class_t *grid;
    hk_run_t *run;
    size_t rank, lines, planes;             /* lines y of the spectrum's slab, planes z of the grid's */
    size_t block;                           /* points */
    hk_complex_t *sent, *received;          /* slabs; the last point holds a rank's part of a checksum */
    hk_complex_t *spectrum;                 /* a slab: lines y, in them z, in them x */
    hk_call_t call;                         /* the exchange */
    size_t block_at[HK_FFT_POINTS_MAX + 1]; /* where the blocks for and from each rank begin, in bytes */
    hk_status_t (*solve)(struct ft *ft, hk_complex_t *const *line);
    hk_complex_t *line[HK_FFT_POINTS_MAX];        /* place of each line y of the first plane, when planes arrive */
    const hk_complex_t *plane[HK_FFT_POINTS_MAX]; /* place of each plane z, when lines of the spectrum arrive */
    double decay_x[HK_FFT_POINTS_MAX], decay_y[HK_FFT_POINTS_MAX], decay_z[HK_FFT_POINTS_MAX];
    hk_fft_t fft_x, fft_y, fft_z;
    hk_fft_block_t block_a, block_b;
    hk_complex_t sum[HK_FT_ITERATIONS]; /* rank 0: of the last repetition */
    int wrong;                          /* rank 0: the first iteration whose checksum was ever wrong; 0: none */
    hk_complex_t wrong_sum;
} ft_t;

/* The inverse transform exchanges re and im. */
typedef enum direction { HK_FT_FORWARD, HK_FT_INVERSE } hk_ft_direction_t;

/* Draw the initial values of this rank's planes, in one block per receiver. */
void hk_ft_draw_planes(const ft_t *ft);

/* exp(-4 alpha pi^2 k^2) for k from -points/2 to points/2 - 1, negative k last. */
void hk_ft_fill_decay(double *decay, size_t points);

/* Transform all planes of this rank along x and y, in place. */
void hk_ft_planes(ft_t *ft, hk_complex_t *const *line, hk_ft_direction_t direction);

/* Transform along z, from the received planes to the spectrum. */
void hk_ft_z(ft_t *ft);

/* One time step of the spectrum, and the inverse transform along z into the outgoing planes. */
void hk_ft_step_z(ft_t *ft);

#endif
