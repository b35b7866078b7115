/* Portable collectives over two-sided messages: used where a transport has none of its own, and wherever a pattern
 * asks for them by name. */
#ifndef HK_COLLECTIVES_H
#define HK_COLLECTIVES_H

#include "transport.h"

/* Dissemination barrier: ceil(log2 P) rounds of one message each way (Hensgen, Finkel and Manber 1988). */
hk_status_t hk_portable_barrier(hk_ctx_t *ctx);

/* All messages under way at once; none goes to oneself, so the own block of `in` stays as it is. `reqs` is room for
 * 2 (P - 1) requests. */
hk_status_t hk_portable_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t len_bytes, hk_req_t *reqs);

/* The same one exchange at a time: in step s with the ranks s further on and s before. `reqs` is room for 2. */
hk_status_t hk_pairwise_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t len_bytes, hk_req_t *reqs);

/* Recursive doubling: log2 P rounds in which pairs exchange what they have and add it up (R. Thakur, R. Rabenseifner,
 * W. Gropp, Optimization of collective communication operations in MPICH, 2005); ranks beyond a power of two hand
 * theirs to one of the others before, and get the sum after. `work` is room for len_bytes. */
hk_status_t hk_portable_allreduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t len_bytes);

/* To and from rank 0 along a binomial tree: the sum into its `in`, which then comes into that of every rank. In a
 * reduction the others' `in` holds what they have added up on the way. */
hk_status_t hk_portable_reduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t len_bytes);
hk_status_t hk_portable_broadcast(hk_ctx_t *ctx, void *in, size_t len_bytes);

/* Word by word of 8 bytes, modulo 2^64. The buffers are those of a point, so words are in their places. */
void hk_add_words(void *sum, const void *left, const void *right, size_t len_bytes);

/* The transport's own barrier, or the portable one: what keeps ranks together between samples, untimed. */
hk_status_t hk_sync(hk_ctx_t *ctx);

#endif
