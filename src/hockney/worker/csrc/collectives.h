/* Portable collectives over two-sided messages: used where a transport has none of its own, and wherever a pattern
 * asks for them by name. The same signatures as the transport's hooks, so that a pattern picks one before its loop. */
#ifndef HK_COLLECTIVES_H
#define HK_COLLECTIVES_H

#include "transport.h"

/* Dissemination barrier: ceil(log2 P) rounds of one message each way (Hensgen, Finkel and Manber 1988). */
hk_status_t hk_portable_barrier(hk_ctx_t *ctx);

/* The transport's own barrier, or the portable one: what keeps ranks together between samples, untimed. */
hk_status_t hk_sync(hk_ctx_t *ctx);

#endif
