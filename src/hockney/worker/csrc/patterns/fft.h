/* Fourier transforms of 2^k points in double precision: several at once, side by side, in a block that stays in the
 * cache. How they are strided in memory is the caller's business: it gathers them into a block and scatters them out.
 */
#ifndef HK_FFT_H
#define HK_FFT_H

#include <stddef.h>

enum {
    HK_FFT_POINTS_MIN = 4,
    HK_FFT_POINTS_MAX = 256,
    HK_FFT_LANES = 4, /* transforms of a block: a cache line of complex numbers */
    HK_FFT_PAD = 64,  /* puts the parts of two blocks into different sets of the cache */
};

typedef struct hk_complex {
    double re, im;
} hk_complex_t;

/* Transforms of one length. */
typedef struct hk_fft {
    size_t points;
    hk_complex_t root[HK_FFT_POINTS_MAX]; /* exp(-2 pi i k / points) */
} hk_fft_t;

/* Point k of transform l is at [k * HK_FFT_LANES + l]; parts are apart, so that compilers find vectors in the loops. */
typedef struct hk_fft_block {
    _Alignas(64) double re[HK_FFT_POINTS_MAX * HK_FFT_LANES + HK_FFT_PAD];
    double im[HK_FFT_POINTS_MAX * HK_FFT_LANES + HK_FFT_PAD];
} hk_fft_block_t;

/* points: a power of two from HK_FFT_POINTS_MIN to HK_FFT_POINTS_MAX. */
void hk_fft_prepare(hk_fft_t *fft, size_t points);

/* The sums over j of x[j] exp(-2 pi i j k / points), of every lane; not scaled. Both blocks are written: the one that
 * is returned holds the result. Who wants the inverse lets re and im change places before and after. */
hk_fft_block_t *hk_fft_transform(const hk_fft_t *fft, hk_fft_block_t *block, hk_fft_block_t *other);

#endif
