/* Portable collectives over two-sided messages, for transports without their own, and for patterns that request
 * them. */
#ifndef HK_COLLECTIVES_H
#define HK_COLLECTIVES_H

#include "transport.h"

/* Dissemination barrier: ceil(log2 P) rounds of one message each way (Hensgen, Finkel and Manber 1988). */
hk_status_t hk_portable_barrier(hk_ctx_t *ctx);

/* All messages at once. A rank sends none to itself, so its own block of `in` does not change. `reqs` has room for 2
 * (P - 1) requests. */
hk_status_t hk_portable_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t size_bytes, hk_req_t *reqs);

/* The same with one exchange at a time: step s sends to the rank s after this one and receives from the rank s
 * before it. `reqs` has room for 2. */
hk_status_t hk_pairwise_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t size_bytes, hk_req_t *reqs);

/* Recursive doubling: in log2 P rounds pairs exchange and add their sums (R. Thakur, R. Rabenseifner, W. Gropp,
 * Optimization of collective communication operations in MPICH, 2005). Ranks beyond a power of two send their vector
 * to another rank before, and receive the sum after. `work` has room for size_bytes. */
hk_status_t hk_portable_allreduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes);

/* A reduction to rank 0 along a binomial tree, and a broadcast from rank 0. In a reduction `in` of the other ranks
 * holds partial sums. */
hk_status_t hk_portable_reduce(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes);
hk_status_t hk_portable_broadcast(hk_ctx_t *ctx, void *in, size_t size_bytes);

/* Adds words of 8 bytes, modulo 2^64. The buffers are aligned to words. */
void hk_add_words(void *sum, const void *left, const void *right, size_t size_bytes);

/* The transport's barrier, or the portable one. Untimed, between samples. */
hk_status_t hk_sync(hk_ctx_t *ctx);

#endif
