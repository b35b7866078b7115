/* The collective patterns: a row for each operation; collective.c has the rest. */
#include "collective.h"
#include "grid.h"

enum { ARRIVAL_US_MAX = 1000000, GROUPS_MAX = 2048, TESTS_MAX = 10000 };

// clang-format off
#define OPTION_ALGORITHM(LIST)                                                                                  \
    {"algorithm", HK_ALGORITHM_WORDS(LIST), HK_ALGORITHM_AUTO, 0, 0,                                            \
     "the library's own, or a portable one over its messages; auto: its own, else the first portable one"}
#define OPTIONS_FORM                                                                                            \
    {"form", "blocking|nonblocking|persistent", HK_BLOCKING, 0, 0, "which calls of the library"},               \
    {"overlap", "no|yes", 0, 0, 0, "compute between start and wait for as long as the operation takes by itself"}, \
    {"tests", NULL, 0, 0, TESTS_MAX, "calls of the library's test while the rank computes"}
#define OPTIONS_TIME                                                                                            \
    {"groups", NULL, 1, 1, GROUPS_MAX, "equal groups of ranks that do the same at once"},                       \
    {"start", "stream|barrier|window", HK_START_STREAM, 0, 0,                                                   \
     "back to back, after a barrier, or at a common time on compared clocks"},                                  \
    {"time", "slowest|mean|root", 0, 0, 0, "whose time counts"},                                                \
    {"arrival_us", NULL, 0, 0, ARRIVAL_US_MAX, "delay of each rank before its call: random, up to this, in us; not timed"}
#define OPTION_DATA                                                                                             \
    {"data", "warm|fresh", 0, 0, 0, "fresh: other buffers in each repetition, more than the caches hold"}
#define OPTION_ROOT {"root", NULL, 0, 0, 4095, "the rank that gives or gets all"}
#define OPTION_IN_PLACE {"inplace", "no|yes", 0, 0, 0, "a rank gives and gets in one buffer"}
#define OPTION_COUNTS                                                                                           \
    {"counts", "equal|linear|one-big", HK_COUNTS_EQUAL, 0, 0,                                                   \
     "sizes of blocks: equal, block i as large as i + 1, or all in the last one"}
#define TYPE_WORDS "uint8|int8|uint16|int16|uint32|int32|uint64|int64|float32|float64|float16|bfloat16"
#define OPTION_TYPE {"dtype", TYPE_WORDS, HK_UINT8, 0, 0, "the type of elements"}
#define OPTIONS_REDUCTION                                                                                       \
    {"dtype", TYPE_WORDS, HK_UINT64, 0, 0, "the type of elements"},                                             \
    {"op", "sum|prod|min|max|band|bor|bxor", HK_SUM, 0, 0, "the reduction"}
#define OPTIONS_GRID HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), {"nz", NULL, 1, 0, 1048576, "same"}

#define HOOKS                                                                                                   \
    .kind = HK_KIND_COLLECTIVE, .timed = HK_TIMED_SLOWEST, .stream = true, .fits = hk_collective_fits, .native = hk_collective_native,      \
    .plan = hk_collective_plan, .prepare = hk_collective_prepare, .finish = hk_collective_finish,               \
    .repeat = hk_collective_repeat, .counter = hk_collective_counter
#define HOOKS_DATA HOOKS, .grain = hk_collective_grain, .fill = hk_collective_fill, .expected = hk_collective_expected
#define MESSAGES .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 2
#define SHARED_DATA HOOKS_DATA, MESSAGES
#define SHARED_REDUCTION SHARED_DATA, .grain_bytes = 8
// clang-format on

const hk_pattern_t hk_pattern_barrier = {
    HOOKS,
    .needs = HK_CAP_SEND, /* a token at a time */
    .ranks_min = 2,
    .name = "barrier",
    .summary = "no rank continues before all have arrived",
    .operation = HK_BARRIER,
    .law = HK_LAW_ROUNDS,
    .unsized = true,
    .option = {OPTION_ALGORITHM(HK_BARRIER_ALGORITHMS), OPTIONS_FORM, OPTIONS_TIME},
};

const hk_pattern_t hk_pattern_bcast = {
    SHARED_DATA,
    .name = "bcast",
    .summary = "all ranks get the root's vector",
    .operation = HK_BCAST,
    .option = {OPTION_ALGORITHM(HK_BCAST_ALGORITHMS), OPTION_ROOT, OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA,
               OPTION_TYPE},
};

const hk_pattern_t hk_pattern_reduce = {
    SHARED_REDUCTION,
    .name = "reduce",
    .summary = "the root gets the reduction of all ranks' vectors",
    .operation = HK_REDUCE,
    .option = {OPTION_ALGORITHM(HK_REDUCE_ALGORITHMS), OPTION_ROOT, OPTIONS_REDUCTION, OPTION_IN_PLACE, OPTIONS_FORM,
               OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_allreduce = {
    SHARED_REDUCTION,
    .name = "allreduce",
    .summary = "all ranks get the reduction of all ranks' vectors",
    .operation = HK_ALLREDUCE,
    .option = {OPTION_ALGORITHM(HK_ALLREDUCE_ALGORITHMS), OPTIONS_REDUCTION, OPTION_IN_PLACE, OPTIONS_FORM,
               OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_gather = {
    SHARED_DATA,
    .name = "gather",
    .summary = "the root gets a block from each rank",
    .operation = HK_GATHER,
    .option = {OPTION_ALGORITHM(HK_GATHER_ALGORITHMS), OPTION_ROOT, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_gatherv = {
    SHARED_DATA,
    .name = "gatherv",
    .summary = "the root gets a block from each rank, of any sizes",
    .operation = HK_GATHERV,
    .option = {OPTION_ALGORITHM(HK_GATHER_ALGORITHMS), OPTION_ROOT, OPTION_COUNTS, OPTION_IN_PLACE, OPTIONS_FORM,
               OPTIONS_TIME, OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_scatter = {
    SHARED_DATA,
    .name = "scatter",
    .summary = "each rank gets a block from the root",
    .operation = HK_SCATTER,
    .option = {OPTION_ALGORITHM(HK_SCATTER_ALGORITHMS), OPTION_ROOT, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_scatterv = {
    SHARED_DATA,
    .name = "scatterv",
    .summary = "each rank gets a block from the root, of any sizes",
    .operation = HK_SCATTERV,
    .option = {OPTION_ALGORITHM(HK_SCATTER_ALGORITHMS), OPTION_ROOT, OPTION_COUNTS, OPTION_IN_PLACE, OPTIONS_FORM,
               OPTIONS_TIME, OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_allgather = {
    SHARED_DATA,
    .name = "allgather",
    .summary = "all ranks get a block from each rank",
    .operation = HK_ALLGATHER,
    .option = {OPTION_ALGORITHM(HK_ALLGATHER_ALGORITHMS), OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA,
               OPTION_TYPE},
};

const hk_pattern_t hk_pattern_allgatherv = {
    SHARED_DATA,
    .name = "allgatherv",
    .summary = "all ranks get a block from each rank, of any sizes",
    .operation = HK_ALLGATHERV,
    .option = {OPTION_ALGORITHM(HK_ALLGATHER_ALGORITHMS), OPTION_COUNTS, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_alltoall = {
    SHARED_DATA,
    .name = "alltoall",
    .summary = "every rank sends a different block to every other rank",
    .operation = HK_ALLTOALL,
    .law = HK_LAW_MESSAGES,
    .option = {OPTION_ALGORITHM(HK_ALLTOALL_ALGORITHMS), OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA,
               OPTION_TYPE},
};

const hk_pattern_t hk_pattern_alltoallv = {
    SHARED_DATA,
    .name = "alltoallv",
    .summary = "every rank sends a different block to every other rank, of any sizes",
    .operation = HK_ALLTOALLV,
    .law = HK_LAW_MESSAGES,
    .option = {OPTION_ALGORITHM(HK_ALLTOALLV_ALGORITHMS), OPTION_COUNTS, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_alltoallw = {
    SHARED_DATA,
    .name = "alltoallw",
    .summary = "every rank sends a different block to every other rank, each of its own size and type",
    .operation = HK_ALLTOALLW,
    .law = HK_LAW_MESSAGES,
    .option = {OPTION_ALGORITHM(HK_ALLTOALLV_ALGORITHMS), OPTION_COUNTS, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA, OPTION_TYPE},
};

const hk_pattern_t hk_pattern_reduce_scatter = {
    SHARED_REDUCTION,
    .name = "reduce_scatter",
    .summary = "each rank gets its block of the reduction of all ranks' vectors, of any sizes",
    .operation = HK_REDUCE_SCATTER,
    .option = {OPTION_ALGORITHM(HK_REDUCE_SCATTER_ALGORITHMS), OPTIONS_REDUCTION, OPTION_COUNTS, OPTION_IN_PLACE,
               OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_reduce_scatter_block = {
    SHARED_REDUCTION,
    .name = "reduce_scatter_block",
    .summary = "each rank gets its block of the reduction of all ranks' vectors",
    .operation = HK_REDUCE_SCATTER_BLOCK,
    .option = {OPTION_ALGORITHM(HK_REDUCE_SCATTER_ALGORITHMS), OPTIONS_REDUCTION, OPTION_IN_PLACE, OPTIONS_FORM,
               OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_scan = {
    SHARED_REDUCTION,
    .name = "scan",
    .summary = "rank i gets the reduction of the vectors of ranks 0 to i",
    .operation = HK_SCAN,
    .option = {OPTION_ALGORITHM(HK_SCAN_ALGORITHMS), OPTIONS_REDUCTION, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA},
};

const hk_pattern_t hk_pattern_exscan = {
    SHARED_REDUCTION,
    .name = "exscan",
    .summary = "rank i gets the reduction of the vectors of ranks 0 to i - 1",
    .operation = HK_EXSCAN,
    .option = {OPTION_ALGORITHM(HK_SCAN_ALGORITHMS), OPTIONS_REDUCTION, OPTION_IN_PLACE, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA},
};

const hk_pattern_t hk_pattern_reduce_local = {
    HOOKS_DATA,
    .name = "reduce_local",
    .summary = "a rank combines two vectors; no message",
    .operation = HK_REDUCE_LOCAL,
    .ranks_min = 1,
    .grain_bytes = 8,
    .option = {OPTION_ALGORITHM(HK_REDUCE_LOCAL_ALGORITHMS), OPTIONS_REDUCTION, OPTION_DATA},
};

#define SHARED_NEAR SHARED_DATA, .dimensions = 3

const hk_pattern_t hk_pattern_neighbor_allgather = {
    SHARED_NEAR,
    .name = "neighbor_allgather",
    .summary = "ranks on a periodic grid get a block from each neighbour",
    .operation = HK_NEIGHBOR_ALLGATHER,
    .option = {OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_neighbor_allgatherv = {
    SHARED_NEAR,
    .name = "neighbor_allgatherv",
    .summary = "ranks on a periodic grid get a block from each neighbour, of any sizes",
    .operation = HK_NEIGHBOR_ALLGATHERV,
    .option = {OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA},
};

const hk_pattern_t hk_pattern_neighbor_alltoall = {
    SHARED_NEAR,
    .name = "neighbor_alltoall",
    .summary = "ranks on a periodic grid exchange a different block with each neighbour",
    .operation = HK_NEIGHBOR_ALLTOALL,
    .option = {OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA},
};

const hk_pattern_t hk_pattern_neighbor_alltoallv = {
    SHARED_NEAR,
    .name = "neighbor_alltoallv",
    .summary = "ranks on a periodic grid exchange a different block with each neighbour, of any sizes",
    .operation = HK_NEIGHBOR_ALLTOALLV,
    .option = {OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA},
};

const hk_pattern_t hk_pattern_neighbor_alltoallw = {
    SHARED_NEAR,
    .name = "neighbor_alltoallw",
    .summary = "ranks on a periodic grid exchange a different block with each neighbour, each of its own size and type",
    .operation = HK_NEIGHBOR_ALLTOALLW,
    .option = {OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_FORM, OPTIONS_TIME,
               OPTION_DATA},
};
