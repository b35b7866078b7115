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

#define ACCESS_SHARED                                                                                                  \
    .kind = HK_KIND_ONE_SIDED, .needs = HK_CAP_ONE_SIDED, .ranks_min = 2, .fits = hk_access_fits,                      \
    .plan = hk_access_plan, .prepare = hk_access_prepare, .finish = hk_access_finish, .repeat = hk_access_repeat,      \
    .expected = hk_access_expected, .counter = hk_access_counter
#define ONE_TO_ONE ACCESS_SHARED, .timed = HK_TIMED_ROOT, .links = HK_LINKS_ENDS
#define IN_HALVES ACCESS_SHARED, .timed = HK_TIMED_SOURCES, .links = HK_LINKS_HALVES, .ranks_step = 2, .stream = true
#define IN_RING ACCESS_SHARED, .timed = HK_TIMED_MEAN, .links = HK_LINKS_RING, .stream = true
#define ONE_TO_ALL ACCESS_SHARED, .timed = HK_TIMED_ROOT, .law = HK_LAW_MESSAGES, .stream = true
#define ALL_TO_ALL ACCESS_SHARED, .timed = HK_TIMED_SLOWEST, .law = HK_LAW_MESSAGES, .stream = true
#define EXCHANGE ACCESS_SHARED, .timed = HK_TIMED_SLOWEST, .law = HK_LAW_CONSTANT, .stream = true

enum { AT_PUT_QUIET = HK_ROLE_TARGET + 1, AT_PUTRING_QUIET = HK_RING_DISTANCE + 1 };

/* The kind of a pattern without `quiet`, whose options before HK_ACCESS_OPTIONS are `at` many. */
#define KIND(reach, reads, at) .own = &(const hk_access_kind_t){reach, reads, at, -1}

const hk_pattern_t hk_pattern_put = {
    ONE_TO_ONE,
    .name = "put",
    .summary = "one rank writes into the memory of another; time per put on the writer's side",
    .own = &(const hk_access_kind_t){HK_REACH_PAIR, false, AT_PUT_QUIET + 1, AT_PUT_QUIET},
    .stream = true,
    .option = {HK_ROLES_OPTIONS, HK_PUTS_OPTION_QUIET, HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_get = {
    ONE_TO_ONE,
    .name = "get",
    .summary = "one rank reads the memory of another; time per get on the reader's side",
    KIND(HK_REACH_PAIR, true, 2),
    .option = {HK_ROLES_OPTIONS, HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_putpairs = {
    IN_HALVES,
    .name = "putpairs",
    .summary = "ranks of the first half put to those of the second, all at once; mean time of the writers",
    KIND(HK_REACH_HALVES, false, 0),
    .alone = "put",
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_getpairs = {
    IN_HALVES,
    .name = "getpairs",
    .summary = "ranks of the first half read from those of the second, all at once; mean time of the readers",
    KIND(HK_REACH_HALVES, true, 0),
    .alone = "get",
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_putring = {
    IN_RING,
    .name = "putring",
    .summary = "every rank writes into the memory of the rank `distance` after it, all at once; mean time",
    .own = &(const hk_access_kind_t){HK_REACH_RING, false, AT_PUTRING_QUIET + 1, AT_PUTRING_QUIET},
    .alone = "put",
    .option = {HK_RING_OPTION_DISTANCE, HK_PUTS_OPTION_QUIET, HK_ACCESS_OPTIONS, HK_ACCESS_OPTION_TIME},
};

const hk_pattern_t hk_pattern_getring = {
    IN_RING,
    .name = "getring",
    .summary = "every rank reads the memory of the rank `distance` after it, all at once; mean time",
    KIND(HK_REACH_RING, true, 1),
    .alone = "get",
    .option = {HK_RING_OPTION_DISTANCE, HK_ACCESS_OPTIONS, HK_ACCESS_OPTION_TIME},
};

const hk_pattern_t hk_pattern_putfan = {
    ONE_TO_ALL,
    .name = "putfan",
    .summary = "rank 0 writes into the memory of every other rank; time of all puts on its side",
    KIND(HK_REACH_FAN, false, 0),
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_getfan = {
    ONE_TO_ALL,
    .name = "getfan",
    .summary = "rank 0 reads the memory of every other rank; time of all gets on its side",
    KIND(HK_REACH_FAN, true, 0),
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_putall = {
    ALL_TO_ALL,
    .name = "putall",
    .summary = "every rank writes into the memory of every other; the slowest rank",
    KIND(HK_REACH_ALL, false, 0),
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_getall = {
    ALL_TO_ALL,
    .name = "getall",
    .summary = "every rank reads the memory of every other; the slowest rank",
    KIND(HK_REACH_ALL, true, 0),
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_putexchange = {
    EXCHANGE,
    .name = "putexchange",
    .summary = "every rank writes into the memory of the ranks before and after it; the slowest rank",
    KIND(HK_REACH_EXCHANGE, false, 0),
    .option = {HK_ACCESS_OPTIONS},
};

const hk_pattern_t hk_pattern_getexchange = {
    EXCHANGE,
    .name = "getexchange",
    .summary = "every rank reads the memory of the ranks before and after it; the slowest rank",
    KIND(HK_REACH_EXCHANGE, true, 0),
    .option = {HK_ACCESS_OPTIONS},
};
