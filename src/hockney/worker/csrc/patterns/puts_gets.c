/* The patterns of puts and gets: a row for each; access.c has the rest.
 *
 * put, get and putring are single_pairs, remote loads and multiple_pairs of the Cray T3D report: the accessed rank does
 * nothing, and the time is the accessing rank's. quiet=seen: the target answers each put with a flag, and the time is
 * half of that. With coherent shared memory, repeated reads hit the reader's cache. The others are those of the OSU and
 * Intel MPI benchmarks. */
#include "access.h"
#include "distance.h"
#include "puts.h"
#include "roles.h"

// clang-format off
#define ACCESS_SHARED                                                                                           \
    .kind = HK_KIND_ONE_SIDED, .needs = HK_CAP_ONE_SIDED, .ranks_min = 2, .fits = hk_access_fits,               \
    .plan = hk_access_plan, .prepare = hk_access_prepare, .finish = hk_access_finish,                           \
    .repeat = hk_access_repeat, .expected = hk_access_expected, .counter = hk_access_counter
#define READS_ONE ACCESS_SHARED, .timed = HK_TIMED_ROOT, .links = HK_LINKS_ENDS
#define WRITES_ONE READS_ONE, .stream = true
#define IN_HALVES ACCESS_SHARED, .timed = HK_TIMED_SOURCES, .links = HK_LINKS_HALVES, .ranks_step = 2, .stream = true
#define IN_RING ACCESS_SHARED, .timed = HK_TIMED_MEAN, .links = HK_LINKS_RING, .stream = true
#define ONE_TO_ALL ACCESS_SHARED, .timed = HK_TIMED_ROOT, .law = HK_LAW_MESSAGES, .stream = true
#define ALL_TO_ALL ACCESS_SHARED, .timed = HK_TIMED_SLOWEST, .law = HK_LAW_MESSAGES, .stream = true
#define WITH_BOTH ACCESS_SHARED, .timed = HK_TIMED_SLOWEST, .law = HK_LAW_CONSTANT, .stream = true

enum { ACCESS_PUTS, ACCESS_GETS };
enum { ACCESS_ROLES = HK_ROLE_TARGET + 1, ACCESS_RING = HK_RING_DISTANCE + 1 }; /* numbers of options */

/* A pattern; the columns of hk_access_kind_t; the pattern in which one pair does the same; the options. */
#define ACCESS_ROW(key, shared, reach, way, at, quiet_at, pair, text, ...)                                      \
    const hk_pattern_t hk_pattern_##key = {                                                                     \
        shared, .name = #key, .summary = text, .alone = pair, .option = {__VA_ARGS__},                          \
        .own = &(const hk_access_kind_t){HK_REACH_##reach, ACCESS_##way == ACCESS_GETS, at, quiet_at}};

ACCESS_ROW(put, WRITES_ONE, PAIR, PUTS, ACCESS_ROLES + 1, ACCESS_ROLES, NULL,
    "one rank writes into the memory of another; time per put on the writer's side",
    HK_ROLES_OPTIONS, HK_PUTS_OPTION_QUIET, HK_ACCESS_OPTIONS)
ACCESS_ROW(get, READS_ONE, PAIR, GETS, ACCESS_ROLES, -1, NULL,
    "one rank reads the memory of another; time per get on the reader's side",
    HK_ROLES_OPTIONS, HK_ACCESS_OPTIONS)
ACCESS_ROW(putpairs, IN_HALVES, HALVES, PUTS, 0, -1, "put",
    "ranks of the first half put to those of the second, all at once; mean time of the writers",
    HK_ACCESS_OPTIONS)
ACCESS_ROW(getpairs, IN_HALVES, HALVES, GETS, 0, -1, "get",
    "ranks of the first half read from those of the second, all at once; mean time of the readers",
    HK_ACCESS_OPTIONS)
ACCESS_ROW(putring, IN_RING, RING, PUTS, ACCESS_RING + 1, ACCESS_RING, "put",
    "every rank writes into the memory of the rank `distance` after it, all at once; mean time",
    HK_RING_OPTION_DISTANCE, HK_PUTS_OPTION_QUIET, HK_ACCESS_OPTIONS, HK_ACCESS_OPTION_TIME)
ACCESS_ROW(getring, IN_RING, RING, GETS, ACCESS_RING, -1, "get",
    "every rank reads the memory of the rank `distance` after it, all at once; mean time",
    HK_RING_OPTION_DISTANCE, HK_ACCESS_OPTIONS, HK_ACCESS_OPTION_TIME)
ACCESS_ROW(putfan, ONE_TO_ALL, FAN, PUTS, 0, -1, NULL,
    "rank 0 writes into the memory of every other rank; time of all puts on its side", HK_ACCESS_OPTIONS)
ACCESS_ROW(getfan, ONE_TO_ALL, FAN, GETS, 0, -1, NULL,
    "rank 0 reads the memory of every other rank; time of all gets on its side", HK_ACCESS_OPTIONS)
ACCESS_ROW(putall, ALL_TO_ALL, ALL, PUTS, 0, -1, NULL,
    "every rank writes into the memory of every other; the slowest rank", HK_ACCESS_OPTIONS)
ACCESS_ROW(getall, ALL_TO_ALL, ALL, GETS, 0, -1, NULL,
    "every rank reads the memory of every other; the slowest rank", HK_ACCESS_OPTIONS)
ACCESS_ROW(putexchange, WITH_BOTH, EXCHANGE, PUTS, 0, -1, NULL,
    "every rank writes into the memory of the ranks before and after it; the slowest rank", HK_ACCESS_OPTIONS)
ACCESS_ROW(getexchange, WITH_BOTH, EXCHANGE, GETS, 0, -1, NULL,
    "every rank reads the memory of the ranks before and after it; the slowest rank", HK_ACCESS_OPTIONS)
// clang-format on
