/* cold */
/* The words of collective operations, types and reductions, and what kinds of operations there are. */
#include "collective.h"

#define OPERATION_WORD(name, word) word,
#define TYPE_WORD(name, word, bytes) word,
#define TYPE_BYTES(name, word, bytes) bytes,

const char *const hk_operation_names[HK_OPERATIONS] = {NULL, HK_OPERATIONS_(OPERATION_WORD)};
const char *const hk_type_names[HK_TYPES] = {HK_TYPES_(TYPE_WORD)};
const char *const hk_reduction_names[HK_REDUCTIONS] = {HK_REDUCTIONS_(OPERATION_WORD)};
const size_t hk_type_bytes[HK_TYPES] = {HK_TYPES_(TYPE_BYTES)};

bool hk_has_root(hk_operation_t operation)
{
    switch (operation) {
    case HK_BCAST:
    case HK_REDUCE:
    case HK_GATHER:
    case HK_GATHERV:
    case HK_SCATTER:
    case HK_SCATTERV:
        return true;
    default:
        return false;
    }
}

bool hk_reduces(hk_operation_t operation)
{
    switch (operation) {
    case HK_REDUCE:
    case HK_ALLREDUCE:
    case HK_REDUCE_SCATTER:
    case HK_REDUCE_SCATTER_BLOCK:
    case HK_SCAN:
    case HK_EXSCAN:
    case HK_REDUCE_LOCAL:
        return true;
    default:
        return false;
    }
}

bool hk_is_near(hk_operation_t operation)
{
    return operation >= HK_NEIGHBOR_ALLGATHER && operation < HK_OPERATIONS;
}

bool hk_is_vector(hk_operation_t operation)
{
    switch (operation) {
    case HK_GATHERV:
    case HK_SCATTERV:
    case HK_ALLGATHERV:
    case HK_ALLTOALLV:
    case HK_ALLTOALLW:
    case HK_REDUCE_SCATTER:
    case HK_NEIGHBOR_ALLGATHERV:
    case HK_NEIGHBOR_ALLTOALLV:
    case HK_NEIGHBOR_ALLTOALLW:
        return true;
    default:
        return false;
    }
}

bool hk_has_own(const hk_transport_t *tp, hk_operation_t operation)
{
    char why[80];
    if (operation == HK_BARRIER && tp->barrier != NULL) {
        return true;
    }
    const hk_call_t call = {.operation = operation, .type = HK_UINT64, .size = 2, .bytes = 64};
    return tp->has_call != NULL && tp->has_call(tp, &call, why, sizeof why);
}
