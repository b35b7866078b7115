/* Fourier transforms of 2^k points in double precision, several at once in a block that fits into the cache. The
 * caller gathers the data into a block and scatters the result, with any stride. */
#ifndef HK_FFT_H
#define HK_FFT_H

#include <stddef.h>

enum {
    HK_FFT_POINTS_MIN = 4,
    HK_FFT_POINTS_MAX = 256,
    HK_FFT_LANES = 4, /* transforms per block: one cache line of complex numbers */
    HK_FFT_PAD = 64,  /* puts the parts of two blocks into different cache sets */
};

typedef struct hk_complex {
    double re, im;
} hk_complex_t;

/* Transforms of one length. */
typedef struct hk_fft {
    size_t points;
    hk_complex_t root[HK_FFT_POINTS_MAX]; /* exp(-2 pi i k / points) */
} hk_fft_t;

/* Point k of transform l is at [k * HK_FFT_LANES + l]. re and im are separate arrays so that compilers can
 * vectorise. */
typedef struct hk_fft_block {
    _Alignas(64) double re[HK_FFT_POINTS_MAX * HK_FFT_LANES + HK_FFT_PAD];
    double im[HK_FFT_POINTS_MAX * HK_FFT_LANES + HK_FFT_PAD];
} hk_fft_block_t;

/* points: a power of two from HK_FFT_POINTS_MIN to HK_FFT_POINTS_MAX. */
void hk_fft_prepare(hk_fft_t *fft, size_t points);

/* For every lane, the sums over j of x[j] exp(-2 pi i j k / points), not scaled. Writes both blocks and returns the
 * one with the result. For the inverse, exchange re and im before and after. */
hk_fft_block_t *hk_fft_transform(const hk_fft_t *fft, hk_fft_block_t *block, hk_fft_block_t *other);

#endif
