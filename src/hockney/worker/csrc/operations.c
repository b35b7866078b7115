/* cold */
/* The columns of operations, types and reductions as arrays. */
#include "collective.h"

#define COLUMN_WORD(name, word, ...) word,
#define COLUMN_GIVES(name, word, gives, ...) HK_DATA_##gives,
#define COLUMN_GETS(name, word, gives, gets, ...) HK_DATA_##gets,
#define COLUMN_KINDS(name, word, gives, gets, kinds, ...) kinds,
#define REDUCTION_WORD(name, word) word,
#define COLUMN_BYTES(name, word, bytes) bytes,

const char *const hk_operation_names[HK_OPERATIONS] = {NULL, HK_OPERATIONS_(COLUMN_WORD)};
const hk_data_t hk_gives[HK_OPERATIONS] = {HK_DATA_NOTHING, HK_OPERATIONS_(COLUMN_GIVES)};
const hk_data_t hk_gets[HK_OPERATIONS] = {HK_DATA_NOTHING, HK_OPERATIONS_(COLUMN_GETS)};
const unsigned hk_kinds_of[HK_OPERATIONS] = {HK_PLAIN, HK_OPERATIONS_(COLUMN_KINDS)};
const char *const hk_type_names[HK_TYPES] = {HK_TYPES_(COLUMN_WORD)};
const char *const hk_reduction_names[HK_REDUCTIONS] = {HK_REDUCTIONS_(REDUCTION_WORD)};
const size_t hk_type_bytes[HK_TYPES] = {HK_TYPES_(COLUMN_BYTES)};

uint64_t hk_least_messages(hk_operation_t operation, uint64_t size)
{
    const bool has_blocks = hk_gives[operation] == HK_DATA_BLOCKS || hk_gets[operation] == HK_DATA_BLOCKS;
    return operation == HK_BARRIER                        ? 0
           : operation == HK_REDUCE_LOCAL                 ? 1
           : operation == HK_ALLREDUCE                    ? 2 * (size - 1)
           : has_blocks && !hk_is_a(operation, HK_ROOTED) ? size * (size - 1)
                                                          : size - 1;
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
