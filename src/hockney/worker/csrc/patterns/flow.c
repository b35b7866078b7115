#include "flow.h"

enum { PLACES_BYTES = 256 * 1024 }; /* fits into the second-level cache of current CPUs */

size_t hk_flow_places(size_t bytes, size_t window)
{
    const size_t fitting = bytes == 0 ? window : PLACES_BYTES / bytes;
    return fitting == 0 ? 1 : fitting < window ? fitting : window;
}

hk_plan_t hk_flow_plan(const hk_run_t *run, int flows)
{
    const uint64_t window = (uint64_t)run->option[HK_FLOW_WINDOW];
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = hk_flow_places(run->bytes, window) * run->bytes,
                       .reqs_count = window,
                       .bytes_per_rep = (uint64_t)flows * window * run->bytes,
                       .messages_per_rep = (uint64_t)flows * window,
                       .divisor = window};
}

/* `computes` is a constant in each call, so the loop without computation contains no test. */
static inline hk_status_t send_each(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay, const bool computes)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(send(ctx, peer, run->out, run->bytes));
        if (computes) {
            delay->take(ctx, delay);
        }
    }
    return HK_OK;
}

static inline hk_status_t receive_each(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay, const bool computes)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(recv(ctx, peer, run->in, run->bytes));
        if (computes) {
            delay->take(ctx, delay);
        }
    }
    return HK_OK;
}

static hk_status_t send_windows(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        for (size_t k = 0; k < run->reqs_count; k++) {
            HK_TRY(tp->isend(ctx, peer, run->out, run->bytes, &run->reqs[k]));
        }
        HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    }
    return HK_OK;
}

static hk_status_t receive_windows(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t places = hk_flow_places(run->bytes, run->reqs_count);
    for (uint64_t i = 0; i < reps; i++) {
        for (size_t k = 0, place = 0; k < run->reqs_count; k++) {
            HK_TRY(tp->irecv(ctx, peer, run->in + place * run->bytes, run->bytes, &run->reqs[k]));
            place = place + 1 < places ? place + 1 : 0; /* k % places without a division per message */
        }
        HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    }
    return HK_OK;
}

hk_status_t hk_flow_send(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay)
{
    HK_TRY(delay != NULL          ? send_each(run, peer, reps, delay, true)
           : run->reqs_count == 1 ? send_each(run, peer, reps, NULL, false)
                                  : send_windows(run, peer, reps));
    if (run->option[HK_FLOW_UNTIL] == HK_UNTIL_ACKED) {
        HK_TRY(run->ctx->tp->recv(run->ctx, peer, run->in, 0));
    }
    return HK_OK;
}

hk_status_t hk_flow_receive(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay)
{
    HK_TRY(delay != NULL          ? receive_each(run, peer, reps, delay, true)
           : run->reqs_count == 1 ? receive_each(run, peer, reps, NULL, false)
                                  : receive_windows(run, peer, reps));
    if (run->option[HK_FLOW_UNTIL] == HK_UNTIL_ACKED) {
        HK_TRY(run->ctx->tp->send(run->ctx, peer, run->out, 0));
    }
    return HK_OK;
}

/* ---- from rank 0 to all others ----------------------------------------------------------------------------------- */

hk_plan_t hk_flow_root_plan(const hk_run_t *run)
{
    const uint64_t receivers = (uint64_t)run->ctx->size - 1;
    const bool source = run->ctx->rank == 0;
    return (hk_plan_t){.out_bytes = source ? run->bytes : 0,
                       .in_bytes = source ? 0 : run->bytes,
                       .reqs_count = source ? receivers : 0,
                       .bytes_per_rep = receivers * run->bytes,
                       .messages_per_rep = receivers,
                       .divisor = 1};
}

static hk_status_t send_all(hk_run_t *run, size_t stride_bytes)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0; k < run->reqs_count; k++) {
        HK_TRY(tp->isend(ctx, (int)k + 1, run->out + k * stride_bytes, run->bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

hk_status_t hk_flow_from_root(hk_run_t *run, size_t stride_bytes, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    if (ctx->rank == 0) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(send_all(run, stride_bytes));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(ctx->tp->recv(ctx, 0, run->in, run->bytes));
        }
    }
    return HK_OK;
}

hk_status_t hk_flow_acknowledge_root(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    if (run->option[HK_FLOW_UNTIL] != HK_UNTIL_ACKED) {
        return HK_OK;
    }
    if (ctx->rank > 0) {
        return ctx->tp->send(ctx, 0, run->out, 0);
    }
    for (int rank = 1; rank < ctx->size; rank++) {
        HK_TRY(ctx->tp->recv(ctx, rank, run->in, 0));
    }
    return HK_OK;
}
