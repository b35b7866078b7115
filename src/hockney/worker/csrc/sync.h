/* The barrier between samples. */
#ifndef HK_SYNC_H
#define HK_SYNC_H

#include "transport.h"

/* The transport's barrier, or one over messages. Untimed, between samples. */
hk_status_t hk_sync(hk_ctx_t *ctx);

/* A message of 0 bytes between each two ranks, for libraries that connect them at their first. */
hk_status_t hk_greet_all(hk_ctx_t *ctx);

#endif
