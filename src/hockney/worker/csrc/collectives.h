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

/* The transport's own barrier, or the portable one: what keeps ranks together between samples, untimed. */
hk_status_t hk_sync(hk_ctx_t *ctx);

#endif
