/* The floors and the pace with a scripted clock: each is the median of its samples, in its unit. */
#define hk_real_now_ns scripted_now_ns
#define hk_floor_sample scripted_floor_sample
#define hk_floor_quick scripted_floor_quick
#define hk_floor_wake scripted_floor_wake
#define hk_floor_alone scripted_floor_alone
#define hk_pace_ns scripted_pace_ns
#include <pthread.h>
#include <sys/resource.h>

#include "check.h"
#include "floor.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */
#include "pace.c"  /* NOLINT(bugprone-suspicious-include): its static functions are tested */

static const uint64_t *script_ns;
static uint64_t clock_ns;
static size_t reads;
static bool is_trip; /* a read ends a sample and begins the next one; else every second read ends one */

uint64_t scripted_now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    clock_ns += (is_trip ? reads > 0 : reads % 2 == 1) ? *script_ns++ : 0;
    reads++;
    return clock_ns;
}

#ifdef __linux__
static void *be_rank_1(void *floor)
{
    CHECK(scripted_floor_wake(floor) < 0); /* rank 0 has the result */
    return NULL;
}

/* Half a round trip in ns of a wake-up between two threads, and how many trips there were. */
static double wake_ns(void *page, const uint64_t *trips_ns, size_t *trips_p)
{
    hk_floor_t floors[] = {{.line = page, .rank = 0}, {.line = page, .rank = 1}};
    pthread_t thread;
    script_ns = trips_ns;
    reads = 0;
    CHECK(pthread_create(&thread, NULL, be_rank_1, &floors[1]) == 0);
    const double found_ns = scripted_floor_wake(&floors[0]);
    CHECK(pthread_join(thread, NULL) == 0);
    *trips_p = reads - 1;
    return found_ns;
}

static void check_wake(void)
{
    static _Alignas(4096) unsigned char page[4096];
    uint64_t short_ns[WAKE_TRIPS], long_ns[WAKE_TRIPS];
    size_t trips = 0;
    struct rusage before, after;
    for (uint64_t i = 0; i < WAKE_TRIPS; i++) {
        short_ns[i] = 1000 * (i * 7 % WAKE_TRIPS + 1); /* each of 1 to 25 us once */
        long_ns[i] = 4000000 - i;
    }
    is_trip = true;
    CHECK(getrusage(RUSAGE_THREAD, &before) == 0);
    CHECK(wake_ns(page, short_ns, &trips) == 13000 / 2.0 && trips == WAKE_TRIPS);
    CHECK(getrusage(RUSAGE_THREAD, &after) == 0);
    CHECK(after.ru_nvcsw - before.ru_nvcsw >= WAKE_TRIPS / 2); /* it has slept, not waited awake */
    CHECK(wake_ns(page, long_ns, &trips) == (4000000 - 2) / 2.0 && trips == WAKE_TRIPS_MIN);
    CHECK(scripted_floor_wake(&(hk_floor_t){.rank = 0}) < 0 && scripted_floor_wake(&(hk_floor_t){.rank = 2}) < 0);
    is_trip = false;
}
#endif

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
#ifdef __linux__
    check_wake();
#endif
    return 0;
}
