/* Ring of puts (multiple_pairs of the Cray T3D report): every rank writes into the memory of the rank `distance`
 * after it, all at once, and waits for completion as in put. The time is the mean over all ranks. */
#include "distance.h"
#include "puts.h"

enum { PUTRING_DISTANCE = HK_RING_DISTANCE, PUTRING_QUIET };

static hk_status_t putring_repeat(hk_run_t *run, uint64_t reps)
{
    return hk_puts(run, hk_ring_next(run), run->option[PUTRING_QUIET], reps);
}

const hk_pattern_t hk_pattern_putring = {
    .name = "putring",
    .summary = "every rank writes into the memory of the rank `distance` after it, all at once; mean time",
    .needs = HK_CAP_ONE_SIDED,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .links = HK_LINKS_RING,
    .alone = "put",
    .stream = true,
    .option = {HK_RING_OPTION_DISTANCE, HK_PUTS_OPTION_QUIET},
    .fits = hk_ring_fits,
    .plan = hk_ring_plan,
    .repeat = putring_repeat,
    .expected = hk_ring_expected,
};
