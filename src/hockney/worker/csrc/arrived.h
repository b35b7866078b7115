/* Whether the data of a verified repetition has arrived. */
#ifndef HK_ARRIVED_H
#define HK_ARRIVED_H

#include "measure.h"
#include "payload.h"

/* Whether a block that a rank must have received is right. False: *wrong_p is the first wrong index in the block. */
bool hk_has_arrived(const hk_ctx_t *ctx, const unsigned char *in, const hk_expected_t *block, uint64_t seed,
                    size_t *wrong_p);

/* The fault at this index of a block. */
hk_fault_t hk_fault_at(const hk_ctx_t *ctx, const unsigned char *in, const hk_expected_t *block, uint64_t seed,
                       size_t wrong);

/* The ranks whose elements such a block reduces. */
static inline hk_reduced_t hk_reduced_of(const hk_ctx_t *ctx, const hk_expected_t *block)
{
    const int end = block->end_rank > 0 ? block->end_rank : ctx->size;
    return (hk_reduced_t){block->type, block->reduction, block->first_rank, end};
}

#endif
