/* Stockham's autosort algorithm: radix 4, plus one step of radix 2 for odd powers of two (C. Van Loan, Computational
 * Frameworks for the Fast Fourier Transform, 1992, section 1.7). Each step reads one block and writes the other, in
 * runs of at least HK_FFT_LANES numbers with the same factor. */
#include "fft.h"

#include <math.h>

void hk_fft_prepare(hk_fft_t *fft, size_t points)
{
    const double pi = acos(-1.0);
    fft->points = points;
    for (size_t k = 0; k < points; k++) {
        const double angle = 2 * pi * (double)k / (double)points;
        fft->root[k] = (hk_complex_t){cos(angle), -sin(angle)};
    }
}

/* One butterfly of radix 4 for a run of numbers: input runs are `distance` from each other, output runs are adjacent.
 */
static void butterfly_4(size_t run, size_t distance, hk_complex_t w1, hk_complex_t w2, hk_complex_t w3,
                        const double *restrict xr, const double *restrict xi, double *restrict yr, double *restrict yi)
{
    for (size_t q = 0; q < run; q++) {
        const double ar = xr[q];
        const double ai = xi[q];
        const double br = xr[q + distance];
        const double bi = xi[q + distance];
        const double cr = xr[q + 2 * distance];
        const double ci = xi[q + 2 * distance];
        const double dr = xr[q + 3 * distance];
        const double di = xi[q + 3 * distance];
        const double sum_r = ar + cr;
        const double sum_i = ai + ci;
        const double gap_r = ar - cr;
        const double gap_i = ai - ci;
        const double side_r = br + dr;
        const double side_i = bi + di;
        const double turn_r = di - bi; /* i (b - d) */
        const double turn_i = br - dr;
        const double two_r = sum_r - side_r;
        const double two_i = sum_i - side_i;
        const double one_r = gap_r - turn_r;
        const double one_i = gap_i - turn_i;
        const double three_r = gap_r + turn_r;
        const double three_i = gap_i + turn_i;
        yr[q] = sum_r + side_r;
        yi[q] = sum_i + side_i;
        yr[q + run] = one_r * w1.re - one_i * w1.im;
        yi[q + run] = one_r * w1.im + one_i * w1.re;
        yr[q + 2 * run] = two_r * w2.re - two_i * w2.im;
        yi[q + 2 * run] = two_r * w2.im + two_i * w2.re;
        yr[q + 3 * run] = three_r * w3.re - three_i * w3.im;
        yi[q + 3 * run] = three_r * w3.im + three_i * w3.re;
    }
}

/* The last step for an odd power of two: all factors are 1. */
static void butterflies_2(size_t run, const double *restrict x, double *restrict y)
{
    for (size_t q = 0; q < run; q++) {
        const double a = x[q];
        const double b = x[q + run];
        y[q] = a + b;
        y[q + run] = a - b;
    }
}

hk_fft_block_t *hk_fft_transform(const hk_fft_t *fft, hk_fft_block_t *block, hk_fft_block_t *other)
{
    hk_fft_block_t *x = block;
    hk_fft_block_t *y = other;
    size_t run = HK_FFT_LANES; /* numbers with the same factor */
    size_t len = fft->points;
    for (; len >= 4; len /= 4, run *= 4) {
        const size_t quarter = len / 4;
        const size_t stride = fft->points / len;
        for (size_t p = 0; p < quarter; p++) {
            const size_t from = p * run;
            const size_t to = 4 * p * run;
            butterfly_4(run, quarter * run, fft->root[p * stride], fft->root[2 * p * stride], fft->root[3 * p * stride],
                        x->re + from, x->im + from, y->re + to, y->im + to);
        }
        hk_fft_block_t *const swapped = x;
        x = y;
        y = swapped;
    }
    if (len == 2) {
        butterflies_2(run, x->re, y->re);
        butterflies_2(run, x->im, y->im);
        x = y;
    }
    return x;
}
