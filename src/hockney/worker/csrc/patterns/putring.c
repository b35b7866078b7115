/* Ring of puts (multiple_pairs of the Cray T3D report): every rank writes into the memory of the rank `distance`
 * after it, all at once, and waits for completion as in put. The time is the mean over all ranks. */
#include "distance.h"
#include "puts.h"

enum { PUTRING_DISTANCE = HK_RING_DISTANCE, PUTRING_QUIET };

static bool putring_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_ring_fits(run, why, len) && hk_puts_fit(run, run->option[PUTRING_QUIET], why, len);
}

static hk_plan_t putring_plan(const hk_run_t *run)
{
    return hk_puts_plan(hk_ring_plan(run), run->option[PUTRING_QUIET]);
}

static hk_status_t putring_repeat(hk_run_t *run, uint64_t reps)
{
    return hk_puts(run, hk_ring_next(run), hk_ring_previous(run), run->option[PUTRING_QUIET], reps);
}

static bool putring_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const bool is_block = hk_ring_expected(run, i, expected_p);
    expected_p->size_bytes = hk_puts_expected_bytes(run, run->option[PUTRING_QUIET]);
    return is_block;
}

const hk_pattern_t hk_pattern_putring = {
    .name = "putring",
    .kind = HK_KIND_ONE_SIDED,
    .summary = "every rank writes into the memory of the rank `distance` after it, all at once; mean time",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .links = HK_LINKS_RING,
    .alone = "put",
    .stream = true,
    .option = {HK_RING_OPTION_DISTANCE, HK_PUTS_OPTION_QUIET},
    .fits = putring_fits,
    .plan = putring_plan,
    .repeat = putring_repeat,
    .expected = putring_expected,
};
