#include "roundtrip.h"

hk_status_t hk_round_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
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

hk_status_t hk_meet(const hk_run_t *run, int peer, bool begins)
{
    hk_run_t empty = *run;
    empty.bytes = 0;
    return peer < 0 || run->ctx->size == 2 ? HK_OK : hk_round_trips(&empty, peer, begins, 1);
}

hk_status_t hk_roles_meet(const hk_run_t *run, const int64_t *option)
{
    const int rank = run->ctx->rank;
    return hk_meet(run, hk_role_peer(rank, option), rank == hk_source(option));
}
