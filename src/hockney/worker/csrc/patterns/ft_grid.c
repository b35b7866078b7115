/* The local computation of FT: initial values, transforms and time step. */
#include <math.h>

#include "ft.h"

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* x(k+1) = 5^13 x(k) mod 2^46, scaled to (0, 1). */
static const uint64_t multiplier = 1220703125;
static const uint64_t seed = 314159265;
static const uint64_t low_46_bits = ((uint64_t)1 << 46) - 1;

/* The generator's state after `count` numbers. */
static uint64_t state_after(uint64_t count)
{
    uint64_t state = seed;
    uint64_t power = multiplier;
    for (; count > 0; count /= 2) {
        state = count % 2 == 1 ? (state * power) & low_46_bits : state;
        power = (power * power) & low_46_bits;
    }
    return state;
}

/* Draw a line of initial values; returns the state after them. */
static uint64_t draw_line(uint64_t state, hk_complex_t *line, size_t points)
{
    const double scale = 1.0 / (double)(low_46_bits + 1);
    for (size_t x = 0; x < points; x++) {
        state = (state * multiplier) & low_46_bits;
        line[x].re = scale * (double)state;
        state = (state * multiplier) & low_46_bits;
        line[x].im = scale * (double)state;
    }
    return state;
}

void hk_ft_draw_planes(const ft_t *ft)
{
    const ft_class_t *grid = ft->grid;
    const size_t plane = ft->lines * grid->nx;
    uint64_t state = state_after(2 * grid->nx * grid->ny * ft->planes * ft->rank);
    for (size_t z = 0; z < ft->planes; z++) {
        for (size_t y = 0; y < grid->ny; y++) {
            hk_complex_t *const line = ft->sent + y / ft->lines * ft->block + y % ft->lines * grid->nx;
            state = draw_line(state, line + z * plane, grid->nx);
        }
    }
}

/* ---- transforms -------------------------------------------------------------------------------------------------- */

static double *re_of(hk_fft_block_t *block, hk_ft_direction_t direction)
{
    return direction == HK_FT_FORWARD ? block->re : block->im;
}

static double *im_of(hk_fft_block_t *block, hk_ft_direction_t direction)
{
    return direction == HK_FT_FORWARD ? block->im : block->re;
}

/* Copy a row of a block from or to adjacent memory. */
static void gather(double *restrict re, double *restrict im, const hk_complex_t *restrict from)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        re[l] = from[l].re;
        im[l] = from[l].im;
    }
}

static void scatter(hk_complex_t *restrict to, const double *restrict re, const double *restrict im)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        to[l] = (hk_complex_t){re[l], im[l]};
    }
}

/* Along x: the lanes are lines. */
static void transform_x(ft_t *ft, hk_complex_t *const *line, size_t offset, hk_ft_direction_t direction)
{
    const size_t nx = ft->grid->nx;
    double *re = re_of(&ft->block_a, direction);
    double *im = im_of(&ft->block_a, direction);
    hk_complex_t *lane[HK_FFT_LANES];
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        lane[l] = line[l] + offset;
    }
    for (size_t x = 0; x < nx; x++) {
        for (size_t l = 0; l < HK_FFT_LANES; l++) {
            re[x * HK_FFT_LANES + l] = lane[l][x].re;
            im[x * HK_FFT_LANES + l] = lane[l][x].im;
        }
    }
    hk_fft_block_t *const done = hk_fft_transform(&ft->fft_x, &ft->block_a, &ft->block_b);
    re = re_of(done, direction);
    im = im_of(done, direction);
    for (size_t x = 0; x < nx; x++) {
        for (size_t l = 0; l < HK_FFT_LANES; l++) {
            lane[l][x] = (hk_complex_t){re[x * HK_FFT_LANES + l], im[x * HK_FFT_LANES + l]};
        }
    }
}

/* Along y: the lanes are adjacent x. */
static void transform_y(ft_t *ft, hk_complex_t *const *line, size_t offset, hk_ft_direction_t direction)
{
    const size_t ny = ft->grid->ny;
    double *re = re_of(&ft->block_a, direction);
    double *im = im_of(&ft->block_a, direction);
    for (size_t y = 0; y < ny; y++) {
        gather(re + y * HK_FFT_LANES, im + y * HK_FFT_LANES, line[y] + offset);
    }
    hk_fft_block_t *const done = hk_fft_transform(&ft->fft_y, &ft->block_a, &ft->block_b);
    re = re_of(done, direction);
    im = im_of(done, direction);
    for (size_t y = 0; y < ny; y++) {
        scatter(line[y] + offset, re + y * HK_FFT_LANES, im + y * HK_FFT_LANES);
    }
}

void hk_ft_planes(ft_t *ft, hk_complex_t *const *line, hk_ft_direction_t direction)
{
    const ft_class_t *grid = ft->grid;
    for (size_t z = 0; z < ft->planes; z++) {
        const size_t plane = z * ft->lines * grid->nx;
        for (size_t y = 0; direction == HK_FT_FORWARD && y < grid->ny; y += HK_FFT_LANES) {
            transform_x(ft, line + y, plane, direction);
        }
        for (size_t x = 0; x < grid->nx; x += HK_FFT_LANES) {
            transform_y(ft, line, plane + x, direction);
        }
        for (size_t y = 0; direction == HK_FT_INVERSE && y < grid->ny; y += HK_FFT_LANES) {
            transform_x(ft, line + y, plane, direction);
        }
    }
}

void hk_ft_z(ft_t *ft)
{
    const size_t nx = ft->grid->nx;
    const size_t nz = ft->grid->nz;
    for (size_t y = 0; y < ft->lines; y++) {
        for (size_t x = 0; x < nx; x += HK_FFT_LANES) {
            for (size_t z = 0; z < nz; z++) {
                gather(ft->block_a.re + z * HK_FFT_LANES, ft->block_a.im + z * HK_FFT_LANES, ft->plane[z] + y * nx + x);
            }
            const hk_fft_block_t *const done = hk_fft_transform(&ft->fft_z, &ft->block_a, &ft->block_b);
            for (size_t z = 0; z < nz; z++) {
                scatter(ft->spectrum + (y * nz + z) * nx + x, done->re + z * HK_FFT_LANES, done->im + z * HK_FFT_LANES);
            }
        }
    }
}

/* One time step of a row of the spectrum, and a copy with re and im exchanged. */
static void decay_row(hk_complex_t *restrict row, double decay, const double *restrict decay_x, double *restrict re,
                      double *restrict im)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        const double factor = decay * decay_x[l];
        row[l].re *= factor;
        row[l].im *= factor;
        im[l] = row[l].re;
        re[l] = row[l].im;
    }
}

void hk_ft_step_z(ft_t *ft)
{
    const size_t nx = ft->grid->nx;
    const size_t nz = ft->grid->nz;
    for (size_t y = 0; y < ft->lines; y++) {
        const double decay_y = ft->decay_y[ft->rank * ft->lines + y];
        for (size_t x = 0; x < nx; x += HK_FFT_LANES) {
            for (size_t z = 0; z < nz; z++) {
                decay_row(ft->spectrum + (y * nz + z) * nx + x, decay_y * ft->decay_z[z], ft->decay_x + x,
                          ft->block_a.re + z * HK_FFT_LANES, ft->block_a.im + z * HK_FFT_LANES);
            }
            const hk_fft_block_t *const done = hk_fft_transform(&ft->fft_z, &ft->block_a, &ft->block_b);
            for (size_t z = 0; z < nz; z++) {
                scatter(ft->sent + (z * ft->lines + y) * nx + x, done->im + z * HK_FFT_LANES,
                        done->re + z * HK_FFT_LANES);
            }
        }
    }
}

void hk_ft_fill_decay(double *decay, size_t points)
{
    const double alpha = 1e-6;
    const double pi = acos(-1.0);
    for (size_t i = 0; i < points; i++) {
        const double k = i < points / 2 ? (double)i : (double)i - (double)points;
        decay[i] = exp(-4 * alpha * pi * pi * k * k);
    }
}
