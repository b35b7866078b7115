/* Halo exchange in 3 dimensions: the ranks are a periodic grid near a cube, and each exchanges a message with each of
 * its six neighbours, all at once; the slowest rank's time. */
#include "halo.h"

static bool halo3d_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_grid_fits(run, 3, why, len);
}

static hk_plan_t halo3d_plan(const hk_run_t *run)
{
    return hk_halo_plan(run, 3);
}

static hk_status_t halo3d_prepare(hk_run_t *run)
{
    return hk_halo_prepare(run, 3);
}

const hk_pattern_t hk_pattern_halo3d = {
    .name = "halo3d",
    .summary = "ranks on a periodic grid exchange a message with each of six neighbours, all at once, and compute",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 1,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .sized = true,
    .option = {HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), HK_GRID_OPTION("nz"), HK_HALO_OPTION_COMPUTE},
    .fits = halo3d_fits,
    .plan = halo3d_plan,
    .prepare = halo3d_prepare,
    .repeat = hk_halo_repeat,
    .expected = hk_halo_expected,
    .counter = hk_halo_counter,
};
