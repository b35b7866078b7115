/* Pull farm (ATLAS Com-2.2): for each event the supervisor sends a message to the receiver. The receiver requests
 * the fragments of all senders, receives them, and reports to the supervisor. Four hops. */
#include "farm.h"

/* A sender serves events in order, so with several in flight a request may wait for that of an earlier event. */
static hk_status_t serve(hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    int receiver = farm->next;
    for (uint64_t i = 0; i < events; i++) {
        const int rank = hk_farm_rank(farm, receiver);
        HK_TRY(recv(ctx, rank, run->in, run->bytes));
        HK_TRY(send(ctx, rank, run->out, run->bytes));
        receiver = hk_farm_after(farm, receiver);
    }
    return HK_OK;
}

static hk_status_t pullfarm_take_event(hk_run_t *run)
{
    hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t bytes = run->bytes;
    const size_t senders = run->reqs_count / 2;
    HK_TRY(tp->recv(ctx, 0, run->in + senders * bytes, bytes));
    for (size_t k = 0; k < senders; k++) {
        HK_TRY(tp->irecv(ctx, (int)k + 1, run->in + k * bytes, bytes, &run->reqs[k]));
    }
    for (size_t k = 0; k < senders; k++) {
        HK_TRY(tp->isend(ctx, (int)k + 1, run->out, bytes, &run->reqs[senders + k]));
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    farm->delay.take(ctx, &farm->delay);
    return tp->send(ctx, 0, run->out, bytes);
}

static const hk_farm_kind_t pullfarm = {.asks_receiver = true,
                                        .per_sender = 2,
                                        .start = hk_farm_notify_receiver,
                                        .serve = serve,
                                        .take = pullfarm_take_event};

/* A sender has the request of the last event's receiver; a receiver has the supervisor's message. */
static bool pullfarm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const hk_farm_t *farm = hk_farm_of(run);
    if (hk_farm_is_sender(run)) {
        const int last = (farm->next + farm->receivers - 1) % farm->receivers;
        *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = hk_farm_rank(farm, last)};
        return i == 0;
    }
    if (run->ctx->rank > 0 && i == (size_t)farm->senders) {
        hk_expected_t fragment;
        *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = 0};
        return hk_farm_expected(run, 0, &fragment); /* only a receiver that had an event */
    }
    return hk_farm_expected(run, i, expected_p);
}

const hk_pattern_t hk_pattern_pullfarm = {
    .name = "pullfarm",
    .kind = HK_KIND_FARM,
    .summary = "rank 0 notifies an event's receiver, which requests all fragments and reports; time per event",
    .law = HK_LAW_SENDERS,
    .own = &pullfarm,
    .option = {HK_FARM_OPTIONS},
    .expected = pullfarm_expected,
    HK_FARM_FIXED,
};
