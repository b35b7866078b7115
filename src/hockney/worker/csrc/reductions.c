/* Arithmetic of portable reductions: a loop for each type and reduction, which the compiler vectorises. */
#include "collective.h"

/* Signed sums and products wrap, as MPI libraries let them: the arithmetic is unsigned. Types shorter than int are
 * promoted, so results are cast back. */
// NOLINTBEGIN(bugprone-macro-parentheses): types cannot be in parentheses
#define LOOP(name, type, expression)                                                                                   \
    static void name(void *result, const void *left, const void *right, size_t size_bytes)                             \
    {                                                                                                                  \
        type *results = result;                                                                                        \
        const type *lefts = left, *rights = right;                                                                     \
        for (size_t i = 0; i < size_bytes / sizeof(type); i++) {                                                       \
            const type a = lefts[i], b = rights[i];                                                                    \
            results[i] = (type)(expression);                                                                           \
        }                                                                                                              \
    }

// NOLINTEND(bugprone-macro-parentheses)
/* wide: an unsigned type that holds a product. */
#define WHOLE(word, type, wide)                                                                                        \
    LOOP(word##_sum, type, (wide)a + (wide)b)                                                                          \
    LOOP(word##_prod, type, (wide)a *(wide)b)                                                                          \
    LOOP(word##_min, type, a < b ? a : b)                                                                              \
    LOOP(word##_max, type, a > b ? a : b)                                                                              \
    LOOP(word##_band, type, a &b)                                                                                      \
    LOOP(word##_bor, type, a | b)                                                                                      \
    LOOP(word##_bxor, type, a ^ b)
#define REAL(word, type)                                                                                               \
    LOOP(word##_sum, type, a + b)                                                                                      \
    LOOP(word##_prod, type, a *b)                                                                                      \
    LOOP(word##_min, type, a < b ? a : b)                                                                              \
    LOOP(word##_max, type, a > b ? a : b)

WHOLE(uint8, uint8_t, uint32_t)
WHOLE(int8, int8_t, uint32_t)
WHOLE(uint16, uint16_t, uint32_t)
WHOLE(int16, int16_t, uint32_t)
WHOLE(uint32, uint32_t, uint32_t)
WHOLE(int32, int32_t, uint32_t)
WHOLE(uint64, uint64_t, uint64_t)
WHOLE(int64, int64_t, uint64_t)
REAL(float32, float)
REAL(float64, double)

#define REAL_ROW(word) {word##_sum, word##_prod, word##_min, word##_max, NULL, NULL, NULL}
#define WHOLE_ROW(word) {word##_sum, word##_prod, word##_min, word##_max, word##_band, word##_bor, word##_bxor}

hk_combine_t hk_combine_of(hk_type_t type, hk_reduction_t reduction)
{
    static const hk_combine_t rows[HK_TYPES][HK_REDUCTIONS] = {
        [HK_UINT8] = WHOLE_ROW(uint8),    [HK_INT8] = WHOLE_ROW(int8),     [HK_UINT16] = WHOLE_ROW(uint16),
        [HK_INT16] = WHOLE_ROW(int16),    [HK_UINT32] = WHOLE_ROW(uint32), [HK_INT32] = WHOLE_ROW(int32),
        [HK_UINT64] = WHOLE_ROW(uint64),  [HK_INT64] = WHOLE_ROW(int64),   [HK_FLOAT32] = REAL_ROW(float32),
        [HK_FLOAT64] = REAL_ROW(float64),
    };
    return rows[type][reduction];
}
