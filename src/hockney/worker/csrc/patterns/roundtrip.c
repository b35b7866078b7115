#include "roundtrip.h"

hk_status_t hk_round_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t (*const send)(hk_ctx_t *, int, const void *, size_t) = ctx->tp->send;
    hk_status_t (*const recv)(hk_ctx_t *, int, void *, size_t) = ctx->tp->recv;
    const size_t bytes = run->bytes;
    if (begins) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(send(ctx, peer, run->out, bytes));
            HK_TRY(recv(ctx, peer, run->in, bytes));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(recv(ctx, peer, run->in, bytes));
            HK_TRY(send(ctx, peer, run->out, bytes));
        }
    }
    return HK_OK;
}

hk_status_t hk_exchanges(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->isend(ctx, peer, run->out, run->bytes, run->reqs));
        HK_TRY(tp->recv(ctx, peer, run->in, run->bytes));
        HK_TRY(tp->wait_all(ctx, run->reqs, 1));
    }
    return HK_OK;
}

hk_status_t hk_posted_exchanges(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->irecv(ctx, peer, run->in, run->bytes, run->reqs));
        HK_TRY(tp->send(ctx, peer, run->out, run->bytes));
        HK_TRY(tp->wait_all(ctx, run->reqs, 1));
    }
    return HK_OK;
}

hk_status_t hk_meet(const hk_run_t *run, int peer, bool begins)
{
    hk_run_t empty = *run;
    empty.bytes = 0;
    return peer < 0 ? HK_OK : hk_round_trips(&empty, peer, begins, 1);
}

hk_status_t hk_roles_meet_in(const hk_run_t *run, const int64_t *option)
{
    const int rank = run->ctx->rank;
    return hk_meet(run, hk_role_peer(rank, option), rank == hk_source(option));
}

hk_status_t hk_roles_meet(hk_run_t *run)
{
    return hk_roles_meet_in(run, run->option);
}

/* A sleep may end tens of microseconds late, so the end of a wait is busy. The rest sleeps, because a process that
 * transfers the message may need this CPU. */
static void wait_until(hk_ctx_t *ctx, uint64_t end_ns)
{
    const hk_transport_t *tp = ctx->tp;
    const uint64_t awake_ns = (tp->caps & HK_CAP_VIRTUAL) != 0 ? 0 : 200 * 1000;
    void (*const sleep)(hk_ctx_t *, uint64_t) = tp->sleep != NULL ? tp->sleep : hk_real_sleep;
    uint64_t now_ns = tp->now_ns(ctx);
    if (end_ns > now_ns + awake_ns) {
        sleep(ctx, end_ns - now_ns - awake_ns);
        now_ns = tp->now_ns(ctx);
    }
    if (end_ns > now_ns) {
        tp->compute(ctx, end_ns - now_ns);
    }
}

hk_status_t hk_start_together(hk_run_t *run)
{
    return run->ctx->rank > 1 ? HK_OK : hk_start_pair(run, 1 - run->ctx->rank, run->ctx->rank == 0);
}

hk_status_t hk_shortest_trip(hk_run_t *run, int peer, bool begins, int trips, uint64_t *least_ns_p)
{
    hk_ctx_t *ctx = run->ctx;
    uint64_t least_ns = UINT64_MAX;
    HK_TRY(hk_round_trips(run, peer, begins, 1));
    for (int trip = 0; trip < trips; trip++) {
        const uint64_t start_ns = ctx->tp->now_ns(ctx);
        HK_TRY(hk_round_trips(run, peer, begins, 1));
        const uint64_t trip_ns = ctx->tp->now_ns(ctx) - start_ns;
        least_ns = trip_ns < least_ns ? trip_ns : least_ns;
    }
    *least_ns_p = least_ns;
    return HK_OK;
}

hk_status_t hk_start_pair(hk_run_t *run, int peer, bool begins)
{
    enum { TRIPS = 3 };
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const uint64_t longer = (tp->caps & HK_CAP_SYNCHRONOUS) != 0 ? 1 : 0;
    hk_run_t empty = *run;
    empty.bytes = 0;
    uint64_t least_ns = 0;
    HK_TRY(hk_shortest_trip(&empty, peer, begins, TRIPS, &least_ns));
    if (begins) {
        const uint64_t word_ns = tp->now_ns(ctx);
        HK_TRY(tp->send(ctx, peer, run->out, 0));
        wait_until(ctx, word_ns + (1 + longer) * least_ns / 2);
    } else {
        HK_TRY(tp->recv(ctx, peer, run->in, 0));
        wait_until(ctx, tp->now_ns(ctx) + longer * least_ns / 2);
    }
    return HK_OK;
}
