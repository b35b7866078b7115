/* Delays are calibrated by the fastest of several tries, so an interrupted try does not shorten them. */
#include "check.h"
#include "patterns/delay.h"

static uint64_t clock_ns;
static unsigned spins;
static unsigned loaded_spins; /* so many at first are slowed by a neighbour on the core */

static uint64_t now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    return clock_ns;
}

/* A turn takes 2 ns; in every other try it takes five times as long, and of the first ones in all. */
static void spin(hk_ctx_t *ctx, uint64_t turns)
{
    (void)ctx;
    const bool is_slow = spins < loaded_spins || spins % 2 == 0;
    clock_ns += turns * (is_slow ? 10 : 2);
    spins++;
}

static void compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    (void)ctx;
    clock_ns += duration_ns;
}

int main(void)
{
    const hk_transport_t tp = {.name = "scripted", .now_ns = now_ns, .spin = spin, .compute = compute};
    hk_ctx_t ctx = {.tp = &tp};
    hk_delay_t delay;
    CHECK(hk_delay_prepare(&ctx, HK_DELAY_LOOP, 100000, &delay) == HK_OK);
    CHECK(delay.amount == 50000);
    spins = 0;
    loaded_spins = 14; /* a slow neighbour on the core for most of a millisecond */
    CHECK(hk_delay_prepare(&ctx, HK_DELAY_LOOP, 100000, &delay) == HK_OK);
    CHECK(delay.amount == 50000);
    loaded_spins = 0;
    spins = 1;
    const uint64_t start_ns = clock_ns;
    delay.take(&ctx, &delay);
    CHECK(clock_ns - start_ns == 100000 && delay.count == 1 && delay.taken_ns == 100000);
    CHECK(hk_delay_prepare(&ctx, HK_DELAY_CLOCK, 700, &delay) == HK_OK);
    CHECK(delay.amount == 700);
    CHECK(hk_delay_prepare(&ctx, HK_DELAY_LOOP, 0, &delay) == HK_OK);
    const uint64_t still_ns = clock_ns;
    delay.take(&ctx, &delay);
    CHECK(clock_ns == still_ns);
    return 0;
}
