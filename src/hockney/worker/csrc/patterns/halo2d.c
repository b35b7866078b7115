/* Halo exchange in 2 dimensions: the ranks are a periodic grid near a square, and each exchanges a message with each of
 * its four neighbours, all at once; the slowest rank's time. */
#include "halo.h"

static bool halo2d_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_grid_fits(run, 2, why, len);
}

static hk_plan_t halo2d_plan(const hk_run_t *run)
{
    return hk_halo_plan(run, 2);
}

static hk_status_t halo2d_prepare(hk_run_t *run)
{
    return hk_halo_prepare(run, 2);
}

const hk_pattern_t hk_pattern_halo2d = {
    .name = "halo2d",
    .summary = "ranks on a periodic grid exchange a message with each of four neighbours, all at once, and compute",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .sized = true,
    .option = {HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), HK_HALO_OPTION_COMPUTE},
    .fits = halo2d_fits,
    .plan = halo2d_plan,
    .prepare = halo2d_prepare,
    .repeat = hk_halo_repeat,
    .expected = hk_halo_expected,
    .counter = hk_halo_counter,
};
