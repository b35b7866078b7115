/* The transforms agree with the sum that defines them, for every length, with a different signal in each lane. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "patterns/fft.h"

static hk_complex_t signal_at(size_t k, size_t lane)
{
    const double phase = (double)(k * k % 97) + 0.37 * (double)lane;
    return (hk_complex_t){sin(1.7 * phase), cos(0.3 * phase * phase)};
}

/* One value of a transform, by definition. */
static hk_complex_t sum_of(size_t points, size_t frequency, size_t lane)
{
    hk_complex_t sum = {0, 0};
    for (size_t j = 0; j < points; j++) {
        const double angle = -2 * acos(-1.0) * (double)(j * frequency % points) / (double)points;
        const hk_complex_t value = signal_at(j, lane);
        sum.re += value.re * cos(angle) - value.im * sin(angle);
        sum.im += value.re * sin(angle) + value.im * cos(angle);
    }
    return sum;
}

static void check_length(size_t points, hk_fft_block_t *block, hk_fft_block_t *other)
{
    hk_fft_t fft;
    hk_fft_prepare(&fft, points);
    for (size_t i = 0; i < points * HK_FFT_LANES; i++) {
        const hk_complex_t value = signal_at(i / HK_FFT_LANES, i % HK_FFT_LANES);
        block->re[i] = value.re;
        block->im[i] = value.im;
    }
    const hk_fft_block_t *done = hk_fft_transform(&fft, block, other);
    CHECK(done == block || done == other);
    for (size_t i = 0; i < points * HK_FFT_LANES; i++) {
        const hk_complex_t sum = sum_of(points, i / HK_FFT_LANES, i % HK_FFT_LANES);
        CHECK(fabs(done->re[i] - sum.re) < 1e-12 * (double)points);
        CHECK(fabs(done->im[i] - sum.im) < 1e-12 * (double)points);
    }
}

int main(void)
{
    hk_fft_block_t *blocks = aligned_alloc(_Alignof(hk_fft_block_t), 2 * sizeof *blocks);
    CHECK(blocks != NULL);
    for (size_t points = HK_FFT_POINTS_MIN; points <= HK_FFT_POINTS_MAX; points *= 2) {
        check_length(points, &blocks[0], &blocks[1]);
    }
    free(blocks);
    return 0;
}
