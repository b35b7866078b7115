#include "flow.h"

#include <stdio.h>

enum { PLACES_BYTES = 256 * 1024 }; /* fits into the second-level cache of current CPUs */
enum { ANSWER_BYTES = 1 };

size_t hk_flow_places(size_t bytes, size_t window)
{
    const size_t fitting = bytes == 0 ? window : PLACES_BYTES / bytes;
    return fitting == 0 ? 1 : fitting < window ? fitting : window;
}

static bool is_answered(const hk_run_t *run)
{
    return run->option[HK_FLOW_ANSWER] == HK_ANSWER_WINDOW;
}

hk_plan_t hk_flow_plan(const hk_run_t *run, int flows, bool both)
{
    const uint64_t window = (uint64_t)run->option[HK_FLOW_WINDOW], ways = both ? 2 : 1;
    const size_t in_bytes = hk_flow_places(run->bytes, window) * run->bytes;
    const size_t answer_bytes = is_answered(run) ? ANSWER_BYTES : 0;
    return (hk_plan_t){.out_bytes = run->bytes > answer_bytes ? run->bytes : answer_bytes,
                       .in_bytes = in_bytes + answer_bytes,
                       .reqs_count = ways * window,
                       HK_MOVES(run, ways * (uint64_t)flows * window),
                       .divisor = ways * window};
}

bool hk_flow_fits(const hk_run_t *run, char *why, size_t len)
{
    snprintf(why, len, "with answer=window each window ends with its answer: leave until=sent out");
    return !is_answered(run) || run->option[HK_FLOW_UNTIL] == HK_UNTIL_ACKED;
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

/* The answer to a window lies after the messages. */
static inline unsigned char *answer_at(const hk_run_t *run, size_t window)
{
    return run->in + hk_flow_places(run->bytes, window) * run->bytes;
}

/* `answered` is a constant in each call, as `computes` is. */
static inline hk_status_t send_windows(hk_run_t *run, int peer, uint64_t reps, const bool answered)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *answer = answer_at(run, run->reqs_count);
    for (uint64_t i = 0; i < reps; i++) {
        for (size_t k = 0; k < run->reqs_count; k++) {
            HK_TRY(tp->isend(ctx, peer, run->out, run->bytes, &run->reqs[k]));
        }
        HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
        if (answered) {
            HK_TRY(tp->recv(ctx, peer, answer, ANSWER_BYTES));
        }
    }
    return HK_OK;
}

hk_status_t hk_flow_send_windows(hk_run_t *run, int peer, uint64_t reps, bool answered)
{
    return answered ? send_windows(run, peer, reps, true) : send_windows(run, peer, reps, false);
}

/* Starts the receives of a window. */
static inline hk_status_t receive_window(hk_run_t *run, int peer, size_t window, size_t places)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (size_t k = 0, place = 0; k < window; k++) {
        HK_TRY(tp->irecv(ctx, peer, run->in + place * run->bytes, run->bytes, &run->reqs[k]));
        place = place + 1 < places ? place + 1 : 0; /* k % places without a division per message */
    }
    return HK_OK;
}

static inline hk_status_t receive_windows(hk_run_t *run, int peer, uint64_t reps, const bool answered)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t places = hk_flow_places(run->bytes, run->reqs_count);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(receive_window(run, peer, run->reqs_count, places));
        HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
        if (answered) {
            HK_TRY(tp->send(ctx, peer, run->out, ANSWER_BYTES));
        }
    }
    return HK_OK;
}

hk_status_t hk_flow_receive_windows(hk_run_t *run, int peer, uint64_t reps, bool answered)
{
    return answered ? receive_windows(run, peer, reps, true) : receive_windows(run, peer, reps, false);
}

static inline hk_status_t both_windows(hk_run_t *run, int peer)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t window = run->reqs_count / 2;
    HK_TRY(receive_window(run, peer, window, hk_flow_places(run->bytes, window)));
    for (size_t k = 0; k < window; k++) {
        HK_TRY(tp->isend(ctx, peer, run->out, run->bytes, &run->reqs[window + k]));
    }
    return tp->wait_all(ctx, run->reqs, 2 * window);
}

/* Whether an acknowledgement follows. */
static bool is_acknowledged(const hk_run_t *run)
{
    return run->option[HK_FLOW_UNTIL] == HK_UNTIL_ACKED && !is_answered(run);
}

hk_status_t hk_flow_send(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay)
{
    const bool answered = is_answered(run);
    HK_TRY(delay != NULL                     ? send_each(run, peer, reps, delay, true)
           : answered || run->reqs_count > 1 ? hk_flow_send_windows(run, peer, reps, answered)
                                             : send_each(run, peer, reps, NULL, false));
    return is_acknowledged(run) ? run->ctx->tp->recv(run->ctx, peer, run->in, 0) : HK_OK;
}

hk_status_t hk_flow_receive(hk_run_t *run, int peer, uint64_t reps, hk_delay_t *delay)
{
    const bool answered = is_answered(run);
    HK_TRY(delay != NULL                     ? receive_each(run, peer, reps, delay, true)
           : answered || run->reqs_count > 1 ? hk_flow_receive_windows(run, peer, reps, answered)
                                             : receive_each(run, peer, reps, NULL, false));
    return is_acknowledged(run) ? run->ctx->tp->send(run->ctx, peer, run->out, 0) : HK_OK;
}

/* `begins` and `answered` are constants in each call. */
static inline hk_status_t send_both(hk_run_t *run, int peer, uint64_t reps, const bool begins, const bool answered)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    unsigned char *answer = answer_at(run, run->reqs_count / 2);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(both_windows(run, peer));
        if (answered) {
            HK_TRY(begins ? tp->recv(ctx, peer, answer, ANSWER_BYTES) : tp->send(ctx, peer, run->out, ANSWER_BYTES));
        }
    }
    return HK_OK;
}

hk_status_t hk_flow_exchange_windows(hk_run_t *run, int peer, bool begins, uint64_t reps, bool answered)
{
    return !answered ? send_both(run, peer, reps, false, false)
           : begins  ? send_both(run, peer, reps, true, true)
                     : send_both(run, peer, reps, false, true);
}

hk_status_t hk_flow_both(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    HK_TRY(hk_flow_exchange_windows(run, peer, begins, reps, is_answered(run)));
    if (!is_acknowledged(run)) {
        return HK_OK;
    }
    return begins ? tp->recv(ctx, peer, run->in, 0) : tp->send(ctx, peer, run->out, 0);
}
