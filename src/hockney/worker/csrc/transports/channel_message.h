/* The hooks that move messages through a channel. With HK_CAP_SYNCHRONOUS in tp's capabilities every send waits
 * until its message is taken. */
#ifndef HK_TRANSPORTS_CHANNEL_MESSAGE_H
#define HK_TRANSPORTS_CHANNEL_MESSAGE_H

#include "channel.h"

hk_status_t hk_channel_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_channel_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_channel_probe(hk_ctx_t *ctx, int peer, bool *is_there_p);
hk_status_t hk_channel_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_channel_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_channel_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

/* One-sided access and barrier (channel_shared.c). */
hk_status_t hk_channel_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes);
hk_status_t hk_channel_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes);
hk_status_t hk_channel_quiet(hk_ctx_t *ctx);
hk_status_t hk_channel_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value);
hk_status_t hk_channel_barrier(hk_ctx_t *ctx);

/* Signals, windows and atomic operations (channel_atomics.c). */
hk_status_t hk_channel_put_signal(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                                  uint64_t *signal, uint64_t value);
hk_status_t hk_channel_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used);
bool hk_channel_has_atomic(const hk_transport_t *tp, const struct hk_atomic *atomic, char *why, size_t len);
hk_status_t hk_channel_make_atomic(hk_ctx_t *ctx, struct hk_atomic *atomic);

/* Called by a wait that has polled longer than its patience. Makes progress on other requests of this rank, for
 * which a peer may wait, and rests from time to time. */
hk_status_t hk_channel_idle(hk_channel_t *channel, uint64_t polls);

/* Call between two polls. *polls_p counts them from 0. */
static inline hk_status_t hk_channel_spin(hk_channel_t *channel, uint64_t *polls_p)
{
    hk_pause();
    if (HK_LIKELY(++*polls_p < channel->patience)) {
        return HK_OK;
    }
    return hk_channel_idle(channel, *polls_p);
}

#endif
