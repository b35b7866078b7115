/* Parameter server (M. Li et al., Scaling distributed machine learning with the parameter server, OSDI 2014), with
 * synchronous steps. Each worker computes and pushes a part of its gradient to each server. A server computes
 * weights from all gradients, here their sum, and each worker pulls them. Ranks 0 .. S-1 are servers, the others
 * workers. The time is that of the slowest rank. */
#include <stdio.h>
#include <string.h>

#include "../sync.h"
#include "delay.h"

enum { PARAMSERVER_SERVERS, PARAMSERVER_COMPUTE };

typedef struct paramserver_state {
    hk_delay_t delay;
    int first; /* first rank of the other role */
    bool is_server;
    unsigned char *total; /* of a server: sum of the gradients */
} paramserver_state_t;

static bool paramserver_fits(const hk_run_t *run, char *why, size_t len)
{
    const int servers = (int)run->option[PARAMSERVER_SERVERS];
    snprintf(why, len, "paramserver with servers=%d on %d ranks has no workers: it needs %d or more", servers,
             run->ctx->size, servers + 1);
    return servers < run->ctx->size;
}

/* A server has a gradient from each worker, followed by their sum; a worker has weights from each server. */
static hk_plan_t paramserver_plan(const hk_run_t *run)
{
    const size_t servers = (size_t)run->option[PARAMSERVER_SERVERS];
    const size_t workers = (size_t)run->ctx->size - servers;
    const bool is_server = run->ctx->rank < (int)servers;
    const uint64_t messages = 2 * (uint64_t)servers * workers;
    return (hk_plan_t){.out_bytes = is_server ? 0 : servers * run->bytes,
                       .in_bytes = (is_server ? workers + 1 : servers) * run->bytes,
                       .reqs_count = is_server ? workers : 2 * servers,
                       .state_bytes = sizeof(paramserver_state_t),
                       HK_MOVES(run, messages)};
}

static hk_status_t paramserver_prepare(hk_run_t *run)
{
    paramserver_state_t *state = run->state;
    const int servers = (int)run->option[PARAMSERVER_SERVERS];
    const int workers = run->ctx->size - servers;
    state->is_server = run->ctx->rank < servers;
    state->first = state->is_server ? servers : 0;
    state->total = state->is_server ? run->in + (size_t)workers * run->bytes : NULL;
    const uint64_t compute_ns = state->is_server ? 0 : (uint64_t)run->option[PARAMSERVER_COMPUTE] * 1000;
    return hk_delay_prepare(run->ctx, HK_DELAY_CLOCK, compute_ns, &state->delay);
}

/* Receive the gradients of all workers, add them, and send the sum to each. */
static hk_status_t serve_step(hk_run_t *run)
{
    const paramserver_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t bytes = run->bytes, workers = run->reqs_count;
    for (size_t k = 0; k < workers; k++) {
        HK_TRY(tp->irecv(ctx, state->first + (int)k, run->in + k * bytes, bytes, &run->reqs[k]));
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, workers));
    memcpy(state->total, run->in, bytes);
    for (size_t k = 1; k < workers; k++) {
        hk_combine_of(HK_UINT64, HK_SUM)(state->total, state->total, run->in + k * bytes, bytes);
    }
    for (size_t k = 0; k < workers; k++) {
        HK_TRY(tp->isend(ctx, state->first + (int)k, state->total, bytes, &run->reqs[k]));
    }
    return tp->wait_all(ctx, run->reqs, workers);
}

/* Gradients and weights of a step are under way together: a server answers once it has all gradients. */
static hk_status_t work_step(hk_run_t *run)
{
    paramserver_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t bytes = run->bytes, servers = run->reqs_count / 2;
    state->delay.take(ctx, &state->delay);
    for (size_t k = 0; k < servers; k++) {
        HK_TRY(tp->irecv(ctx, (int)k, run->in + k * bytes, bytes, &run->reqs[k]));
    }
    for (size_t k = 0; k < servers; k++) {
        HK_TRY(tp->isend(ctx, (int)k, run->out + k * bytes, bytes, &run->reqs[servers + k]));
    }
    return tp->wait_all(ctx, run->reqs, run->reqs_count);
}

static hk_status_t paramserver_repeat(hk_run_t *run, uint64_t reps)
{
    const paramserver_state_t *state = run->state;
    hk_status_t (*const step)(hk_run_t *) = state->is_server ? serve_step : work_step;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(step(run));
    }
    return HK_OK;
}

/* A server has each worker's gradient; a worker has the sum of all gradients from each server. */
static bool paramserver_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const paramserver_state_t *state = run->state;
    const size_t servers = (size_t)run->option[PARAMSERVER_SERVERS];
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes};
    if (state->is_server) {
        expected_p->from_rank = state->first + (int)i;
        expected_p->from_offset = (size_t)run->ctx->rank * run->bytes;
        return i < run->reqs_count;
    }
    expected_p->from_rank = HK_FROM_ALL;
    expected_p->type = HK_UINT64;
    expected_p->first_rank = (int)servers;
    expected_p->from_offset = i * run->bytes;
    return i < servers;
}

const hk_pattern_t hk_pattern_paramserver = {
    .name = "paramserver",
    .kind = HK_KIND_APPLICATION,
    .summary = "workers push gradients to parameter servers, which add them up and send the sum back; slowest rank",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .law = HK_LAW_MESSAGES,
    .stream = true,
    .grain_bytes = sizeof(uint64_t),
    .option = {{"servers", NULL, 1, 1, 1048575, "number of servers, from rank 0 on; the others are workers"},
               {"delay_us", NULL, 0, 0, 1000000, "computation of each worker before a step, in us; 0: none"}},
    .fits = paramserver_fits,
    .plan = paramserver_plan,
    .prepare = paramserver_prepare,
    .repeat = paramserver_repeat,
    .expected = paramserver_expected,
    .counter = hk_state_counter,
};
