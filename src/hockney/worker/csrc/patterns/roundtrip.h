/* Round trips of one message between two ranks, as ping-pong, bisection and rounds make them. */
#ifndef HK_ROUNDTRIP_H
#define HK_ROUNDTRIP_H

#include "../pattern.h"
#include "roles.h"

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

/* An empty round trip, so that the peer is there when the clock starts. Where other ranks are farther away, one of two
 * leaves the barrier long before the other: in a job with one link of 6 ms, a link of 2 ms seemed to take 4.2. A
 * barrier of two ranks brings them together by itself. */
static inline hk_status_t hk_meet(const hk_run_t *run, int peer, bool begins)
{
    hk_run_t empty = *run;
    empty.bytes = 0;
    return peer < 0 || run->ctx->size == 2 ? HK_OK : hk_round_trips(&empty, peer, begins, 1);
}

/* The same between the source and the target; `option` are those of the roles. */
static inline hk_status_t hk_roles_meet(const hk_run_t *run, const int64_t *option)
{
    const int rank = run->ctx->rank;
    return hk_meet(run, hk_role_peer(rank, option), rank == hk_source(option));
}

#endif
