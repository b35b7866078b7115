/* cold */
#include "arrived.h"

bool hk_has_arrived(const hk_ctx_t *ctx, const unsigned char *in, const hk_expected_t *block, uint64_t seed,
                    size_t *wrong_p)
{
    if (block->from_rank == HK_FROM_ALL) {
        const hk_reduced_t reduced = hk_reduced_of(ctx, block);
        return hk_payload_check_reduced(in, block->size_bytes, &reduced, block->from_offset, seed, wrong_p);
    }
    return hk_payload_check(in, block->size_bytes, block->from_rank, block->from_offset, seed, wrong_p);
}

hk_fault_t hk_fault_at(const hk_ctx_t *ctx, const unsigned char *in, const hk_expected_t *block, uint64_t seed,
                       size_t wrong)
{
    const size_t offset = block->from_offset + wrong;
    const hk_reduced_t reduced = hk_reduced_of(ctx, block);
    return (hk_fault_t){.rank = ctx->rank,
                        .from = block->from_rank,
                        .offset = wrong,
                        .expected = block->from_rank == HK_FROM_ALL ? hk_payload_reduced_byte(offset, &reduced, seed)
                                                                    : hk_payload_byte(offset, block->from_rank, seed),
                        .found = in[wrong]};
}
