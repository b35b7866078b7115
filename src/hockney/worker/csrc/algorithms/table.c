/* cold */
#include "algorithms.h"

// clang-format off
#define ALGORITHM_LISTS(X)                                 \
    X(HK_BARRIER_ALGORITHMS, barrier)            \
    X(HK_BCAST_ALGORITHMS, bcast)                \
    X(HK_REDUCE_ALGORITHMS, reduce)              \
    X(HK_ALLREDUCE_ALGORITHMS, allreduce)        \
    X(HK_GATHER_ALGORITHMS, gather)              \
    X(HK_SCATTER_ALGORITHMS, scatter)            \
    X(HK_ALLGATHER_ALGORITHMS, allgather)        \
    X(HK_ALLTOALL_ALGORITHMS, alltoall)          \
    X(HK_ALLTOALLV_ALGORITHMS, alltoallv)        \
    X(HK_REDUCE_SCATTER_ALGORITHMS, reduce_scatter) \
    X(HK_SCAN_ALGORITHMS, scan)                  \
    X(HK_REDUCE_LOCAL_ALGORITHMS, reduce_local)  \
    X(HK_NEIGHBOR_ALGORITHMS, neighbor)
// clang-format on

#define ALGORITHM_DECLARE(word, function, room, reqs, sizes) hk_status_t function(hk_ctx_t *ctx, hk_call_t *call);
#define ALGORITHM_DECLARE_NONE(word, first, second, room)
#define ALGORITHM_DECLARE_ALL(LIST, key) LIST(ALGORITHM_DECLARE, ALGORITHM_DECLARE_NONE)
#define ALGORITHM_ROW(word, function, room, reqs, sizes)                                                               \
    {word, function, HK_ROOM_##room, HK_REQS_##reqs, HK_SIZES_##sizes, {HK_NO_OPERATION}},
#define ALGORITHM_PARTS_ROW(word, first, second, room)                                                                 \
    {word, NULL, HK_ROOM_##room, HK_REQS_PAIR, HK_SIZES_ANY, {HK_##first, HK_##second}},
#define ALGORITHM_TABLE(LIST, key)                                                                                     \
    static const hk_algorithm_t key##_algorithms[] = {LIST(ALGORITHM_ROW, ALGORITHM_PARTS_ROW){.name = NULL}};

ALGORITHM_LISTS(ALGORITHM_DECLARE_ALL)
ALGORITHM_LISTS(ALGORITHM_TABLE)

#define ALGORITHMS_OF(name, word, gives, gets, kinds, key) key##_algorithms,

const hk_algorithm_t *hk_algorithms_of(hk_operation_t operation)
{
    static const hk_algorithm_t *const lists[HK_OPERATIONS] = {NULL, HK_OPERATIONS_(ALGORITHMS_OF)};
    return lists[operation];
}

bool hk_algorithm_takes(const hk_algorithm_t *algorithm, int size, const char **what_p)
{
    static const char *const words[] = {"", "an even number of ranks", "a power of two of ranks"};
    *what_p = words[algorithm->sizes];
    return algorithm->sizes == HK_SIZES_ANY || (algorithm->sizes == HK_SIZES_EVEN && size % 2 == 0) ||
           (algorithm->sizes == HK_SIZES_POWER_OF_TWO && (size & (size - 1)) == 0);
}
