/* Hooks of the OpenSHMEM transports that are not in shmem.c. */
#ifndef HK_SHMEM_HOOKS_H
#define HK_SHMEM_HOOKS_H

#include <shmem.h>

#include "../transport.h"

/* Came with OpenSHMEM 1.5. */
#if defined(SHMEM_MAJOR_VERSION) && SHMEM_MAJOR_VERSION * 100 + SHMEM_MINOR_VERSION >= 105
#define HK_SHMEM_HAS_SIGNAL 1
#else
#define HK_SHMEM_HAS_SIGNAL 0
#endif

/* shmem_collectives.c */
bool hk_shmem_has_call(const hk_transport_t *tp, const struct hk_call *call, char *why, size_t len);
size_t hk_shmem_call_bytes(const struct hk_call *call);
hk_status_t hk_shmem_make_call(hk_ctx_t *ctx, struct hk_call *call);
void hk_shmem_drop_call(hk_ctx_t *ctx, struct hk_call *call);

/* shmem_atomics.c */
hk_status_t hk_shmem_put_start(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes);
hk_status_t hk_shmem_get_start(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes);
hk_status_t hk_shmem_put_signal(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                                uint64_t *signal, uint64_t value);
bool hk_shmem_has_atomic(const hk_transport_t *tp, const struct hk_atomic *atomic, char *why, size_t len);
hk_status_t hk_shmem_make_atomic(hk_ctx_t *ctx, struct hk_atomic *atomic);
hk_status_t hk_shmem_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used);

#endif
