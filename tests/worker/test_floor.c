/* The floor and the pace with a scripted clock: each is the median of its samples, in its unit. */
#define hk_real_now_ns scripted_now_ns
#define hk_floor_sample scripted_floor_sample
#define hk_floor_quick scripted_floor_quick
#define hk_floor_alone scripted_floor_alone
#define hk_pace_ns scripted_pace_ns
#include "check.h"
#include "floor.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */
#include "pace.c"  /* NOLINT(bugprone-suspicious-include): its static functions are tested */

static const uint64_t *script_ns;
static uint64_t clock_ns;
static size_t reads;

uint64_t scripted_now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    clock_ns += reads++ % 2 == 1 ? *script_ns++ : 0; /* every second read ends a sample */
    return clock_ns;
}

int main(void)
{
    static const uint64_t floors_ns[] = {99000, 8000, 3000, 6000, 2000, 7000};
    static const uint64_t paces_ns[] = {900, 500, 800, 700, 400};
    hk_floor_t floor = {.rank = 0};
    script_ns = floors_ns;
    CHECK(scripted_floor_quick(&floor) ==
          6000 / (2.0 * QUICK_BATCH)); /* half round trips; the first one is a warm-up */
    CHECK(floor.turn == 2 * 6 * QUICK_BATCH);
    floor.why = "no line";
    CHECK(scripted_floor_quick(&floor) < 0);
    script_ns = paces_ns;
    CHECK(scripted_pace_ns() == 0.7);
    return 0;
}
