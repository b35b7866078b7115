/* hk_payload_check finds a wrong byte at its place, also in an incomplete last word, for any start of the block. */
#include "check.h"
#include "payload.h"

enum { RANK = 3, SEED = 7, LONGEST = 24 };

static const hk_payload_ranks_t ranks = {.first = 0, .end = 4};

static void check_block(const unsigned char *right, size_t size_bytes, size_t from_offset, bool is_sum)
{
    unsigned char block[LONGEST];
    for (size_t at = 0; at <= size_bytes; at++) {
        for (size_t i = 0; i < size_bytes; i++) {
            block[i] = right[from_offset + i] ^ (i == at);
        }
        size_t wrong = LONGEST;
        const bool fine = is_sum ? hk_payload_check_sum(block, size_bytes, ranks, from_offset, SEED, &wrong)
                                 : hk_payload_check(block, size_bytes, RANK, from_offset, SEED, &wrong);
        CHECK(fine == (at == size_bytes) && wrong == (fine ? LONGEST : at));
    }
}

int main(void)
{
    unsigned char filled[LONGEST], sums[LONGEST];
    hk_payload_fill(filled, LONGEST, RANK, SEED);
    for (size_t i = 0; i < LONGEST; i++) {
        CHECK(filled[i] == hk_payload_byte(i, RANK, SEED));
        sums[i] = hk_payload_sum_byte(i, ranks, SEED);
    }
    for (size_t from_offset = 0; from_offset < 8; from_offset++) {
        for (size_t size_bytes = 0; size_bytes <= 16; size_bytes++) {
            check_block(filled, size_bytes, from_offset, false);
            check_block(sums, size_bytes, from_offset, true);
        }
    }
    return 0;
}
