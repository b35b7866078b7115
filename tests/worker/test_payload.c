/* hk_payload_check finds a wrong byte at its place, also in an incomplete last word, for any start of the block. Those
 * of reductions accept what the compiler's arithmetic makes of the ranks' elements in any order, and nothing else. */
#include "check.h"
#include "payload.h"

enum { RANK = 3, SEED = 7, LONGEST = 24, RANKS = 5, BYTES = 512 };

static void check_blocks(void)
{
    unsigned char filled[LONGEST], block[LONGEST];
    hk_payload_fill(filled, LONGEST, RANK, SEED);
    for (size_t from_offset = 0; from_offset < 9; from_offset++) {
        const size_t size_bytes = LONGEST - from_offset;
        for (size_t at = 0; at <= size_bytes; at++) {
            for (size_t i = 0; i < size_bytes; i++) {
                block[i] = filled[from_offset + i] ^ (i == at);
            }
            size_t wrong = LONGEST;
            const bool fine = hk_payload_check(block, size_bytes, RANK, from_offset, SEED, &wrong);
            CHECK(fine == (at == size_bytes) && wrong == (fine ? LONGEST : at));
        }
    }
    for (size_t i = 0; i < LONGEST; i++) {
        CHECK(filled[i] == hk_payload_byte(i, RANK, SEED));
    }
}

/* The elements of all ranks combined from the last to the first, as portable algorithms do it. */
static void combine_all(unsigned char *result, hk_type_t type, hk_reduction_t reduction)
{
    _Alignas(16) unsigned char next[BYTES];
    hk_payload_fill_type(result, BYTES, type, reduction, RANKS - 1, SEED);
    for (int rank = RANKS - 2; rank >= 0; rank--) {
        hk_payload_fill_type(next, BYTES, type, reduction, rank, SEED);
        hk_combine_of(type, reduction)(result, next, result, BYTES);
    }
}

static void check_reduction(hk_type_t type, hk_reduction_t reduction)
{
    _Alignas(16) unsigned char result[BYTES];
    const size_t element = hk_type_bytes[type];
    const bool is_real = type == HK_FLOAT32 || type == HK_FLOAT64;
    const hk_reduced_t reduced = {type, reduction, 0, RANKS};
    size_t wrong = BYTES;
    combine_all(result, type, reduction);
    CHECK(hk_payload_check_reduced(result, BYTES, &reduced, 0, SEED, &wrong) && wrong == BYTES);
    CHECK(hk_payload_check_reduced(result + 8 * element, 8 * element, &reduced, 8 * element, SEED, &wrong));
    /* The highest byte of a number holds its sign, the lowest of a whole number is exact, too. */
    for (size_t at = is_real ? element - 1 : 0; at < BYTES; at += element) {
        result[at] ^= 0x80;
        CHECK(!hk_payload_check_reduced(result, BYTES, &reduced, 0, SEED, &wrong) && wrong / element == at / element);
        result[at] ^= 0x80;
    }
    const hk_reduced_t fewer = {type, reduction, 0, RANKS - 1};
    CHECK(!hk_payload_check_reduced(result, BYTES, &fewer, 0, SEED, &wrong));
}

/* Half precision has no arithmetic here: what is written is read again. */
static void check_halves(hk_type_t type)
{
    unsigned char one[64];
    size_t wrong = 0;
    const hk_reduced_t alone = {type, HK_SUM, RANK, RANK + 1};
    hk_payload_fill_type(one, sizeof one, type, HK_SUM, RANK, SEED);
    CHECK(hk_payload_check_reduced(one, sizeof one, &alone, 0, SEED, &wrong));
    one[1] ^= 0x80; /* a sign; no element of the payload is 0 */
    CHECK(!hk_payload_check_reduced(one, sizeof one, &alone, 0, SEED, &wrong) && wrong == 1);
}

int main(void)
{
    check_blocks();
    for (int type = 0; type < HK_TYPES; type++) {
        for (int reduction = 0; reduction < HK_REDUCTIONS; reduction++) {
            if (hk_combine_of((hk_type_t)type, (hk_reduction_t)reduction) != NULL) {
                check_reduction((hk_type_t)type, (hk_reduction_t)reduction);
            }
        }
    }
    check_halves(HK_FLOAT16);
    check_halves(HK_BFLOAT16);
    return 0;
}
