/* The hooks of shm:sleep that differ from those of channel_message.h. */
#ifndef HK_TRANSPORTS_CHANNEL_SLEEP_H
#define HK_TRANSPORTS_CHANNEL_SLEEP_H

#include <stdio.h>

#include "channel_message.h"

/* What this rank's last ring told a peer. */
struct hk_rung {
    uint32_t sent, taken;
};

/* A rank's doorbell, behind its flags of the barrier. */
typedef struct hk_bell {
    _Atomic uint32_t rings, is_asleep;
} hk_bell_t;

bool hk_channel_can_sleep(const hk_transport_t *tp, char *why, size_t len, const char **how_p);

/* channel->rest */
void hk_channel_sleep(hk_channel_t *channel, bool has_moved);

hk_status_t hk_channel_sleep_send(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes);
hk_status_t hk_channel_sleep_recv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes);
hk_status_t hk_channel_sleep_isend(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_channel_sleep_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);
hk_status_t hk_channel_sleep_probe(hk_ctx_t *ctx, int from, bool *is_there_p);
hk_status_t hk_channel_sleep_barrier(hk_ctx_t *ctx);

#endif
