/* The transport of a simulated machine. */
#include <stdio.h>
#include <string.h>

#include "../algorithms/algorithms.h"
#include "engine.h"
#include "tcp.h"

static hk_sim_req_t *req_of(hk_req_t *req)
{
    return (hk_sim_req_t *)(void *)req;
}

/* Ranks are created with their machine (job.c), all at once. */
static hk_status_t sim_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    (void)ctx_p;
    return hk_fail(HK_ERR_UNSUPPORTED, job->rank, "%s is no transport between processes", tp->name);
}

static void sim_close(hk_ctx_t *ctx)
{
    (void)ctx;
}

static const char *sim_library(const hk_ctx_t *ctx)
{
    return ((const hk_sim_rank_t *)(const void *)ctx)->sim->library;
}

static bool sim_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    return hk_tcp_counter((const hk_sim_rank_t *)(const void *)ctx, i, counter_p);
}

static hk_status_t sim_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    hk_sim_req_t req;
    hk_sim_send(hk_sim_rank_of(ctx), peer, buf, size_bytes, &req);
    hk_sim_finish(&req, HK_WAIT_SEND, peer);
    return HK_OK;
}

static hk_status_t sim_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    hk_sim_req_t req;
    hk_sim_recv(hk_sim_rank_of(ctx), peer, buf, size_bytes, &req);
    hk_sim_finish(&req, HK_WAIT_RECV, peer);
    return HK_OK;
}

static hk_status_t sim_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    *is_there_p = hk_sim_probe(hk_sim_rank_of(ctx), peer);
    return HK_OK;
}

static hk_status_t sim_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_sim_send(hk_sim_rank_of(ctx), peer, buf, size_bytes, req_of(req));
    return HK_OK;
}

static hk_status_t sim_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_sim_recv(hk_sim_rank_of(ctx), peer, buf, size_bytes, req_of(req));
    return HK_OK;
}

static hk_status_t sim_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    hk_sim_finish_all(hk_sim_rank_of(ctx), reqs, count);
    return HK_OK;
}

// NOLINTBEGIN(bugprone-macro-parentheses): types cannot be in parentheses
/* The hooks of streams; `waits`: until at least one byte has moved. */
#define SIM_STREAM_HOOK(name, call, buffer_t, waits)                                                                   \
    static hk_status_t name(hk_ctx_t *ctx, int peer, buffer_t *buf, size_t size_bytes, size_t *moved_p)                \
    {                                                                                                                  \
        *moved_p = call(hk_sim_rank_of(ctx), peer, buf, size_bytes, waits);                                            \
        return HK_OK;                                                                                                  \
    }
// NOLINTEND(bugprone-macro-parentheses)
SIM_STREAM_HOOK(sim_write_some, hk_sim_write, const void, true)
SIM_STREAM_HOOK(sim_read_some, hk_sim_read, void, true)
SIM_STREAM_HOOK(sim_write_now, hk_sim_write, const void, false)
SIM_STREAM_HOOK(sim_read_now, hk_sim_read, void, false)

static hk_status_t sim_barrier(hk_ctx_t *ctx)
{
    hk_sim_barrier(hk_sim_rank_of(ctx));
    return HK_OK;
}

/* A machine may have an exchange of all with all of its own: messages to all others at once, and a copy of
 * the rank's own block. */
static bool sim_has_call(const hk_transport_t *tp, const hk_call_t *call, char *why, size_t len)
{
    const bool has_operation = call->operation == HK_ALLTOALL && tp->variant != HK_SIM_NO_ALLTOALL;
    (void)snprintf(why, len, "%s of its own", hk_operation_names[call->operation]);
    return has_operation && call->form == HK_BLOCKING && !call->in_place;
}

static hk_status_t call_alltoall(hk_ctx_t *ctx, hk_call_t *call)
{
    hk_call_t messages = *call;
    messages.reqs = call->own;
    HK_TRY(hk_alltoall_flat(ctx, &messages));
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    hk_sim_work(rank, hk_ps(rank->sim->model->own_block_per_byte_ns * (double)call->bytes));
    if (rank->sim->carries) {
        memcpy(call->in + call->in_at[call->rank], call->out + call->out_at[call->rank], call->bytes);
    }
    return HK_OK;
}

static size_t sim_call_bytes(const hk_call_t *call)
{
    return 2 * (size_t)call->size * sizeof(hk_req_t);
}

static hk_status_t sim_make_call(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx;
    call->run = call_alltoall;
    return HK_OK;
}

static void sim_drop_call(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx, (void)call;
}

static uint64_t sim_now_ns(hk_ctx_t *ctx)
{
    return (hk_sim_rank_of(ctx)->now_ps + 500) / 1000;
}

/* The time of a program's loop of duration_ns on this machine. */
static uint64_t loop_ps(const hk_sim_rank_t *rank, uint64_t duration_ns)
{
    const hk_model_t *model = rank->sim->model;
    return hk_ps(model->compute_fixed_ns + model->compute_factor * (double)duration_ns);
}

static void sim_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    hk_sim_work(hk_sim_rank_of(ctx), loop_ps(hk_sim_rank_of(ctx), duration_ns));
}

static void sim_overlap(hk_ctx_t *ctx, uint64_t duration_ns, hk_req_t *req, bool (*next)(void *arg), void *arg)
{
    hk_sim_overlap(hk_sim_rank_of(ctx), loop_ps(hk_sim_rank_of(ctx), duration_ns), req_of(req), next, arg);
}

/* One turn takes 1 ns. */
static void sim_spin(hk_ctx_t *ctx, uint64_t turns)
{
    hk_sim_work(hk_sim_rank_of(ctx), hk_ps((double)turns));
}

static void sim_sleep(hk_ctx_t *ctx, uint64_t duration_ns)
{
    hk_sim_rank_t *rank = hk_sim_rank_of(ctx);
    rank->now_ps = hk_sum_ps(rank->now_ps, hk_ps((double)duration_ns));
}

static void sim_cpu_ns(hk_ctx_t *ctx, uint64_t *user_ns_p, uint64_t *system_ns_p)
{
    *user_ns_p = (hk_sim_rank_of(ctx)->cpu_ps + 500) / 1000;
    *system_ns_p = 0;
}

const hk_transport_t hk_transport_sim = {
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_ONE_SIDED | HK_CAP_STREAM | HK_CAP_PROBE | HK_CAP_VIRTUAL,
    .name = "sim",
    .flops_per_s = 1, /* a model may be without this and other parts */
    .summary = "a model of a machine, on a virtual clock",
    .open = sim_open,
    .close = sim_close,
    .library = sim_library,
    .counter = sim_counter,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .send = sim_send,
    .recv = sim_recv,
    .probe = sim_probe,
    .isend = sim_isend,
    .irecv = sim_irecv,
    .wait_all = sim_wait_all,
    .put = hk_sim_put,
    .get = hk_sim_get,
    .quiet = hk_sim_quiet,
    .wait_word = hk_sim_wait_word,
    .write_some = sim_write_some,
    .read_some = sim_read_some,
    .write_now = sim_write_now,
    .read_now = sim_read_now,
    .barrier = sim_barrier,
    .has_call = sim_has_call,
    .call_bytes = sim_call_bytes,
    .make_call = sim_make_call,
    .drop_call = sim_drop_call,
    .now_ns = sim_now_ns,
    .compute = sim_compute,
    .spin = sim_spin,
    .sleep = sim_sleep,
    .overlap = sim_overlap,
    .cpu_ns = sim_cpu_ns,
};
