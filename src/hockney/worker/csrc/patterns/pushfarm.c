/* Push farm (ATLAS Com-2.1): for each event the supervisor tells every sender which receiver it belongs to, every
 * sender pushes its fragment there, and the receiver reports to the supervisor when it has them all. Three hops. */
#include "farm.h"

static hk_plan_t pushfarm_plan(const hk_run_t *run)
{
    return hk_farm_plan(run, (size_t)run->option[HK_FARM_SENDERS], 1, run->bytes);
}

static hk_status_t tell_senders(hk_run_t *run, int receiver, hk_req_t *reqs)
{
    (void)receiver; /* the senders count along; what they are told is as long as if it said so */
    hk_ctx_t *ctx = run->ctx;
    const int senders = hk_farm_of(run)->senders;
    hk_status_t status = HK_OK;
    for (int sender = 1; sender <= senders && status == HK_OK; sender++) {
        status = ctx->tp->isend(ctx, sender, run->out, run->bytes, reqs++);
    }
    return status;
}

static hk_status_t pushfarm_prepare(hk_run_t *run)
{
    return hk_farm_prepare(run, (size_t)run->option[HK_FARM_SENDERS], run->bytes, tell_senders);
}

static hk_status_t pushfarm_push(hk_run_t *run, uint64_t events)
{
    const hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    int receiver = farm->next;
    hk_status_t status = HK_OK;
    for (uint64_t i = 0; i < events && status == HK_OK; i++) {
        status = recv(ctx, 0, run->in, run->bytes);
        if (status == HK_OK) {
            status = send(ctx, hk_farm_rank(farm, receiver), run->out, run->bytes);
        }
        receiver = hk_farm_after(farm, receiver);
    }
    return status;
}

static hk_status_t pushfarm_take_event(hk_run_t *run)
{
    hk_farm_t *farm = hk_farm_of(run);
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_status_t status = HK_OK;
    for (size_t k = 0; k < run->reqs_count && status == HK_OK; k++) {
        status = tp->irecv(ctx, (int)k + 1, run->in + k * run->bytes, run->bytes, &run->reqs[k]);
    }
    if (status == HK_OK) {
        status = tp->wait_all(ctx, run->reqs, run->reqs_count);
    }
    farm->delay.take(ctx, &farm->delay);
    return status == HK_OK ? tp->send(ctx, 0, run->out, run->bytes) : status;
}

static hk_status_t pushfarm_repeat(hk_run_t *run, uint64_t reps)
{
    return hk_farm_repeat(run, reps, pushfarm_push, pushfarm_take_event);
}

/* A sender must have what the supervisor said; the rest is the same for both farms. */
static bool pushfarm_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    if (hk_farm_is_sender(run)) {
        *expected_p = (hk_expected_t){.len_bytes = run->bytes, .from_rank = 0};
        return i == 0;
    }
    return hk_farm_expected(run, i, expected_p);
}

const hk_pattern_t hk_pattern_pushfarm = {
    .name = "pushfarm",
    .summary = "rank 0 tells all senders of an event, they push their parts to its receiver, which reports; per event",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 3,
    .ranks_step = 1,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_SENDERS,
    .stream = true,
    .sized = true,
    .senders = "senders",
    .option = {HK_FARM_OPTIONS},
    .fits = hk_farm_fits,
    .plan = pushfarm_plan,
    .prepare = pushfarm_prepare,
    .repeat = pushfarm_repeat,
    .expected = pushfarm_expected,
    .counter = hk_farm_counter,
};
