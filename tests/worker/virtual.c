/* A transport for tests only: threads on a virtual clock, so all times are known exactly.
 *
 *   HOCKNEY_VIRTUAL="300 200 1000 2 0 0"  a send occupies its rank for 300 ns, a receive for 200 ns; a message is under
 *                                         way for 1000 ns, and 2 ns more for each byte. Rank r's clock is r times the
 *                                         fifth number ahead; messages to a lower rank take the sixth longer. Without
 *                                         it, all is 0.
 *
 * Every rank has a separate clock. A message of 8 bytes precedes each message and carries its arrival time.
 * Sends return at once. Receives of a wait_all complete in the order of their start. A probe waits until the peer's
 * thread has sent the message, and then returns whether it has arrived by this rank's clock. So a pattern must not
 * probe for a message that depends on its own next actions. Built into a separate worker with
 * -DHK_EXTRA_TRANSPORTS(X)=X(virtual). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "transports/channel.h"

extern const hk_transport_t hk_transport_threads;

enum { OPEN_MAX = 1024, PEERS_MAX = 64 };

typedef struct virtual_ctx {
    hk_ctx_t base;
    hk_ctx_t *threads;
    uint64_t clock_ns, send_ns, recv_ns, way_ns, byte_ns, ahead_ns, upward_ns;
    hk_req_t reqs[2 * OPEN_MAX]; /* of the arrival times and the messages under way */
    uint64_t arrival_ns[OPEN_MAX];
    bool receives[OPEN_MAX];
    size_t open;
    uint64_t probed_ns[PEERS_MAX]; /* arrival of the probed message; 0: none */
} virtual_ctx_t;

static virtual_ctx_t *virtual_of(hk_ctx_t *ctx)
{
    return (virtual_ctx_t *)(void *)ctx;
}

static uint64_t leave(virtual_ctx_t *ctx, int peer, size_t size_bytes)
{
    ctx->clock_ns += ctx->send_ns;
    const uint64_t more_ns = peer < ctx->base.rank ? ctx->upward_ns : 0;
    return ctx->clock_ns + ctx->way_ns + more_ns + ctx->byte_ns * size_bytes;
}

static void take(virtual_ctx_t *ctx, uint64_t arrival_ns)
{
    ctx->clock_ns = (arrival_ns > ctx->clock_ns ? arrival_ns : ctx->clock_ns) + ctx->recv_ns;
}

static hk_status_t virtual_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    virtual_ctx_t *self = virtual_of(ctx);
    (void)reqs, (void)count;
    const hk_status_t status = hk_transport_threads.wait_all(self->threads, self->reqs, 2 * self->open);
    for (size_t i = 0; i < self->open; i++) {
        if (self->receives[i]) {
            take(self, self->arrival_ns[i]);
        }
    }
    self->open = 0;
    return status;
}

static hk_status_t start(virtual_ctx_t *self, int peer, void *buf, size_t size_bytes, bool receives)
{
    const hk_transport_t *tp = &hk_transport_threads;
    const size_t i = self->open++;
    if (self->open > OPEN_MAX) {
        hk_log(self->base.rank, "virtual: more than %d messages under way", OPEN_MAX);
        return HK_ERR_MEMORY;
    }
    self->receives[i] = receives;
    uint64_t *arrival_ns = &self->arrival_ns[i];
    hk_req_t *req = &self->reqs[2 * i];
    if (receives) {
        const hk_status_t status = tp->irecv(self->threads, peer, arrival_ns, sizeof *arrival_ns, req);
        return status == HK_OK ? tp->irecv(self->threads, peer, buf, size_bytes, req + 1) : status;
    }
    *arrival_ns = leave(self, peer, size_bytes);
    const hk_status_t status = tp->isend(self->threads, peer, arrival_ns, sizeof *arrival_ns, req);
    return status == HK_OK ? tp->isend(self->threads, peer, buf, size_bytes, req + 1) : status;
}

static hk_status_t virtual_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)req;
    return start(virtual_of(ctx), peer, (void *)(uintptr_t)buf, size_bytes, false);
}

static hk_status_t virtual_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)req;
    return start(virtual_of(ctx), peer, buf, size_bytes, true);
}

static hk_status_t virtual_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    virtual_ctx_t *self = virtual_of(ctx);
    const hk_transport_t *tp = &hk_transport_threads;
    const uint64_t arrival_ns = leave(self, peer, size_bytes);
    const hk_status_t status = tp->send(self->threads, peer, &arrival_ns, sizeof arrival_ns);
    return status == HK_OK ? tp->send(self->threads, peer, buf, size_bytes) : status;
}

static hk_status_t virtual_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    virtual_ctx_t *self = virtual_of(ctx);
    const hk_transport_t *tp = &hk_transport_threads;
    uint64_t arrival_ns = self->probed_ns[peer];
    self->probed_ns[peer] = 0;
    hk_status_t status = HK_OK;
    if (arrival_ns == 0) {
        status = tp->recv(self->threads, peer, &arrival_ns, sizeof arrival_ns);
    }
    if (status == HK_OK) {
        status = tp->recv(self->threads, peer, buf, size_bytes);
    }
    take(self, arrival_ns);
    return status;
}

static hk_status_t virtual_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    virtual_ctx_t *self = virtual_of(ctx);
    uint64_t *arrival_ns = &self->probed_ns[peer];
    hk_status_t status = HK_OK;
    if (*arrival_ns == 0) {
        status = hk_transport_threads.recv(self->threads, peer, arrival_ns, sizeof *arrival_ns);
    }
    *is_there_p = *arrival_ns <= self->clock_ns;
    return status;
}

static uint64_t virtual_now_ns(hk_ctx_t *ctx)
{
    return virtual_of(ctx)->clock_ns + virtual_of(ctx)->ahead_ns * (uint64_t)ctx->rank;
}

static void virtual_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    virtual_of(ctx)->clock_ns += duration_ns;
}

static void virtual_close(hk_ctx_t *ctx)
{
    hk_transport_threads.close(virtual_of(ctx)->threads);
    free(ctx);
}

static const char *virtual_library(const hk_ctx_t *ctx)
{
    (void)ctx;
    return "threads on a virtual clock";
}

static void *virtual_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    return hk_transport_threads.alloc(virtual_of(ctx)->threads, size_bytes);
}

static void virtual_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    hk_transport_threads.free(virtual_of(ctx)->threads, memory, size_bytes);
}

static hk_status_t virtual_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    virtual_ctx_t *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        return HK_ERR_MEMORY;
    }
    ctx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    uint64_t *const costs[] = {&ctx->send_ns, &ctx->recv_ns,  &ctx->way_ns,
                               &ctx->byte_ns, &ctx->ahead_ns, &ctx->upward_ns};
    const char *at = getenv("HOCKNEY_VIRTUAL");
    for (size_t i = 0; at != NULL && i < sizeof costs / sizeof costs[0]; i++) {
        char *end = NULL;
        *costs[i] = strtoull(at, &end, 10);
        at = end;
    }
    const hk_status_t status = hk_transport_threads.open(&hk_transport_threads, job, &ctx->threads);
    if (status != HK_OK) {
        free(ctx);
        return status;
    }
    *ctx_p = &ctx->base;
    return HK_OK;
}

const hk_transport_t hk_transport_virtual = {
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_THREADS | HK_CAP_PROBE,
    .name = "virtual",
    .summary = "threads on a virtual clock",
    .prepare = hk_channel_prepare,
    .release = hk_channel_release,
    .open = virtual_open,
    .close = virtual_close,
    .library = virtual_library,
    .alloc = virtual_alloc,
    .free = virtual_free,
    .send = virtual_send,
    .recv = virtual_recv,
    .probe = virtual_probe,
    .isend = virtual_isend,
    .irecv = virtual_irecv,
    .wait_all = virtual_wait_all,
    .now_ns = virtual_now_ns,
    .compute = virtual_compute,
    .spin = virtual_compute,
    .sleep = virtual_compute,
};
