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

/* Few elements of 8 or 16 bits say whether a rank's are missing: with a chance of 1 in 256 they do not. */
static void check_few(hk_type_t type, hk_reduction_t reduction)
{
    enum { SEEDS = 400, UNNOTICED = 12 };
    int unnoticed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned char one[16];
        size_t wrong = 0;
        const size_t bytes = 8 * hk_type_bytes[type];
        const hk_reduced_t both = {type, reduction, 0, 2};
        hk_payload_fill_type(one, bytes, type, reduction, 1, seed);
        unnoticed += hk_payload_check_reduced(one, bytes, &both, 0, seed, &wrong);
    }
    CHECK(unnoticed <= UNNOTICED);
}

/* Products of 4,096 ranks stay in range, and elements that are multiplied again and again, too. */
static void check_products(void)
{
    const hk_reduced_t many = {HK_FLOAT16, HK_PROD, 0, 4096};
    for (size_t at = 1; at < 64; at += sizeof(uint16_t)) {
        const int exponent = hk_payload_reduced_byte(at, &many, SEED) >> 2 & 31;
        CHECK(exponent > 0 && exponent < 31);
    }
    float one[8];
    hk_payload_fill_type((unsigned char *)one, sizeof one, HK_FLOAT32, HK_PROD, RANK, 0);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        CHECK(one[i] * one[i] == 1);
    }
}

int main(void)
{
    check_blocks();
    check_products();
    for (hk_type_t type = HK_UINT8; type <= HK_INT16; type++) {
        check_few(type, HK_SUM);
        check_few(type, HK_PROD);
    }
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
