/* Round trips of one message between two ranks, as ping-pong, bisection and rounds make them. */
#ifndef HK_ROUNDTRIP_H
#define HK_ROUNDTRIP_H

#include "../pattern.h"

/* One side of `reps` round trips with `peer`. Each side sends its own buffer, so a transport can't answer with what is
 * still in its cache from receiving. */
static inline hk_status_t hk_round_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    const size_t bytes = run->bytes;
    hk_status_t status = HK_OK;
    if (begins) {
        for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
            status = send(ctx, peer, run->out, bytes);
            if (status == HK_OK) {
                status = recv(ctx, peer, run->in, bytes);
            }
        }
    } else {
        for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
            status = recv(ctx, peer, run->in, bytes);
            if (status == HK_OK) {
                status = send(ctx, peer, run->out, bytes);
            }
        }
    }
    return status;
}

#endif
