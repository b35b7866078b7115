/* The collective patterns: a row for each operation. */
#include "collective_core.h"

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
    {"data", "warm|fresh", 0, 0, 0,                                                                             \
     "fresh: other buffers in each repetition, up to 1,024: those of long messages do not fit the caches"}
#define OPTION_ROOT {"root", NULL, 0, 0, 4095, "the rank that gives or gets all"}
#define OPTION_IN_PLACE {"inplace", "no|yes", 0, 0, 0, "a rank gives and gets in one buffer"}
#define OPTION_COUNTS                                                                                           \
    {"counts", "equal|linear|one-big", HK_COUNTS_EQUAL, 0, 0,                                                   \
     "sizes of blocks: equal, block i (i + 1) times as large as block 0, or all in the last one"}
#define OPTION_TYPE {"dtype", HK_TYPE_WORDS, HK_UINT8, 0, 0, "the type of elements"}
#define OPTIONS_REDUCTION                                                                                       \
    {"dtype", HK_TYPE_WORDS, HK_UINT64, 0, 0, "the type of elements"},                                             \
    {"op", HK_REDUCTION_WORDS, HK_SUM, 0, 0, "the reduction"}
#define OPTION_BYTES_OF                                                                                             \
    {"bytes_of", "block|vector", 0, 0, 0, "what has the message size: a block, or the vector of all blocks, as in OSU"}
#define OPTION_DISTANCES                                                                                        \
    {"distances", "grid" HK_LIST, 0, 0, 0, "neighbours on the grid, or at distances: +1-1, or a file of them"}
#define OPTIONS_GRID HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), {"nz", NULL, 1, 0, 1048576, "same"}, OPTION_DISTANCES
/* Of all operations on data between ranks, and of those that may be in place. */
#define OPTIONS_CALL OPTIONS_FORM, OPTIONS_TIME, OPTION_DATA
#define OPTIONS_COPY OPTION_IN_PLACE, OPTIONS_CALL, OPTION_TYPE
#define OPTIONS_SUM OPTION_IN_PLACE, OPTIONS_CALL

#define HOOKS                                                                                                   \
    .kind = HK_KIND_COLLECTIVE, .timed = HK_TIMED_SLOWEST, .stream = true, .fits = hk_collective_fits,          \
    .native = hk_collective_native, .plan = hk_collective_plan, .prepare = hk_collective_prepare,               \
    .finish = hk_collective_finish, .repeat = hk_collective_repeat, .counter = hk_collective_counter
#define HOOKS_DATA HOOKS, .grain = hk_collective_grain, .fill = hk_collective_fill, .expected = hk_collective_expected
#define BETWEEN_RANKS HOOKS_DATA, .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 2
#define OF_EACH_TO_EACH BETWEEN_RANKS, .law = HK_LAW_MESSAGES
#define OF_REDUCTIONS BETWEEN_RANKS, .grain_bytes = 8
#define OF_NEIGHBOURS BETWEEN_RANKS, .dimensions = 3
#define IN_ONE_RANK HOOKS_DATA, .ranks_min = 1, .grain_bytes = 8
#define WITHOUT_DATA HOOKS, .needs = HK_CAP_SEND /* a token at a time */, .ranks_min = 2, .law = HK_LAW_ROUNDS, .unsized = true

#define ROW(key, OPERATION, shared, text, ...)                                                                  \
    const hk_pattern_t hk_pattern_##key = {                                                                     \
        shared, .name = #key, .summary = text, .operation = HK_##OPERATION, .option = {__VA_ARGS__}};

ROW(barrier, BARRIER, WITHOUT_DATA, "no rank continues before all have arrived",
    OPTION_ALGORITHM(HK_BARRIER_ALGORITHMS), OPTIONS_FORM, OPTIONS_TIME)
ROW(bcast, BCAST, BETWEEN_RANKS, "all ranks get the root's vector",
    OPTION_ALGORITHM(HK_BCAST_ALGORITHMS), OPTION_ROOT, OPTIONS_CALL, OPTION_TYPE)
ROW(reduce, REDUCE, OF_REDUCTIONS, "the root gets the reduction of all ranks' vectors",
    OPTION_ALGORITHM(HK_REDUCE_ALGORITHMS), OPTION_ROOT, OPTIONS_REDUCTION, OPTIONS_SUM)
ROW(allreduce, ALLREDUCE, OF_REDUCTIONS, "all ranks get the reduction of all ranks' vectors",
    OPTION_ALGORITHM(HK_ALLREDUCE_ALGORITHMS), OPTIONS_REDUCTION, OPTIONS_SUM)
ROW(gather, GATHER, BETWEEN_RANKS, "the root gets a block from each rank",
    OPTION_ALGORITHM(HK_GATHER_ALGORITHMS), OPTION_ROOT, OPTIONS_COPY)
ROW(gatherv, GATHERV, BETWEEN_RANKS, "the root gets a block from each rank, of any sizes",
    OPTION_ALGORITHM(HK_GATHER_ALGORITHMS), OPTION_ROOT, OPTION_COUNTS, OPTIONS_COPY)
ROW(scatter, SCATTER, BETWEEN_RANKS, "each rank gets a block from the root",
    OPTION_ALGORITHM(HK_SCATTER_ALGORITHMS), OPTION_ROOT, OPTIONS_COPY)
ROW(scatterv, SCATTERV, BETWEEN_RANKS, "each rank gets a block from the root, of any sizes",
    OPTION_ALGORITHM(HK_SCATTER_ALGORITHMS), OPTION_ROOT, OPTION_COUNTS, OPTIONS_COPY)
ROW(allgather, ALLGATHER, BETWEEN_RANKS, "all ranks get a block from each rank",
    OPTION_ALGORITHM(HK_ALLGATHER_ALGORITHMS), OPTIONS_COPY)
ROW(allgatherv, ALLGATHERV, BETWEEN_RANKS, "all ranks get a block from each rank, of any sizes",
    OPTION_ALGORITHM(HK_ALLGATHER_ALGORITHMS), OPTION_COUNTS, OPTIONS_COPY)
ROW(alltoall, ALLTOALL, OF_EACH_TO_EACH, "every rank sends a different block to every other rank",
    OPTION_ALGORITHM(HK_ALLTOALL_ALGORITHMS), OPTIONS_COPY)
ROW(alltoallv, ALLTOALLV, OF_EACH_TO_EACH, "every rank sends a different block to every other rank, of any sizes",
    OPTION_ALGORITHM(HK_ALLTOALLV_ALGORITHMS), OPTION_COUNTS, OPTIONS_COPY)
ROW(alltoallw, ALLTOALLW, OF_EACH_TO_EACH,
    "every rank sends a different block to every other rank, each of its own size and type",
    OPTION_ALGORITHM(HK_ALLTOALLV_ALGORITHMS), OPTION_COUNTS, OPTIONS_COPY)
ROW(reduce_scatter, REDUCE_SCATTER, OF_REDUCTIONS,
    "each rank gets its block of the reduction of all ranks' vectors, of any sizes",
    OPTION_ALGORITHM(HK_REDUCE_SCATTER_ALGORITHMS), OPTIONS_REDUCTION, OPTION_BYTES_OF, OPTION_COUNTS, OPTIONS_SUM)
ROW(reduce_scatter_block, REDUCE_SCATTER_BLOCK, OF_REDUCTIONS,
    "each rank gets its block of the reduction of all ranks' vectors",
    OPTION_ALGORITHM(HK_REDUCE_SCATTER_ALGORITHMS), OPTIONS_REDUCTION, OPTION_BYTES_OF, OPTIONS_SUM)
ROW(scan, SCAN, OF_REDUCTIONS, "rank i gets the reduction of the vectors of ranks 0 to i",
    OPTION_ALGORITHM(HK_SCAN_ALGORITHMS), OPTIONS_REDUCTION, OPTIONS_SUM)
ROW(exscan, EXSCAN, OF_REDUCTIONS, "rank i gets the reduction of the vectors of ranks 0 to i - 1",
    OPTION_ALGORITHM(HK_SCAN_ALGORITHMS), OPTIONS_REDUCTION, OPTIONS_SUM)
ROW(reduce_local, REDUCE_LOCAL, IN_ONE_RANK, "a rank combines two vectors; no message",
    OPTION_ALGORITHM(HK_REDUCE_LOCAL_ALGORITHMS), OPTIONS_REDUCTION, OPTION_DATA)
ROW(neighbor_allgather, NEIGHBOR_ALLGATHER, OF_NEIGHBOURS,
    "ranks on a periodic grid get a block from each neighbour",
    OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTIONS_CALL)
ROW(neighbor_allgatherv, NEIGHBOR_ALLGATHERV, OF_NEIGHBOURS,
    "ranks on a periodic grid get a block from each neighbour, of any sizes",
    OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_CALL)
ROW(neighbor_alltoall, NEIGHBOR_ALLTOALL, OF_NEIGHBOURS,
    "ranks on a periodic grid exchange a different block with each neighbour",
    OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTIONS_CALL)
ROW(neighbor_alltoallv, NEIGHBOR_ALLTOALLV, OF_NEIGHBOURS,
    "ranks on a periodic grid exchange a different block with each neighbour, of any sizes",
    OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_CALL)
ROW(neighbor_alltoallw, NEIGHBOR_ALLTOALLW, OF_NEIGHBOURS,
    "ranks on a periodic grid exchange a different block with each neighbour, each of its own size and type",
    OPTIONS_GRID, OPTION_ALGORITHM(HK_NEIGHBOR_ALGORITHMS), OPTION_COUNTS, OPTIONS_CALL)
// clang-format on
