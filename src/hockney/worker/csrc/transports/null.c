/* The null transport sends nothing and never waits, so its times are the cost of the harness. */
#include <stdlib.h>

#include "../transport.h"

static hk_status_t null_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    hk_ctx_t *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        return HK_ERR_MEMORY;
    }
    *ctx = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    *ctx_p = ctx;
    return HK_OK;
}

static void null_close(hk_ctx_t *ctx)
{
    free(ctx);
}

static const char *null_library(const hk_ctx_t *ctx)
{
    (void)ctx;
    return "nothing is sent";
}

static hk_status_t null_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)ctx, (void)peer, (void)buf, (void)size_bytes;
    return HK_OK;
}

static hk_status_t null_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    (void)ctx, (void)peer, (void)buf, (void)size_bytes;
    return HK_OK;
}

static hk_status_t null_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    (void)ctx, (void)peer;
    *is_there_p = true;
    return HK_OK;
}

static hk_status_t null_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)ctx, (void)peer, (void)buf, (void)size_bytes, (void)req;
    return HK_OK;
}

static hk_status_t null_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)ctx, (void)peer, (void)buf, (void)size_bytes, (void)req;
    return HK_OK;
}

static hk_status_t null_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)ctx, (void)reqs, (void)count;
    return HK_OK;
}

static hk_status_t null_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    (void)ctx, (void)peer, (void)remote, (void)local, (void)size_bytes;
    return HK_OK;
}

static hk_status_t null_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    (void)ctx, (void)peer, (void)local, (void)remote, (void)size_bytes;
    return HK_OK;
}

static hk_status_t null_quiet(hk_ctx_t *ctx)
{
    (void)ctx;
    return HK_OK;
}

static hk_status_t null_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    (void)ctx, (void)word, (void)value;
    return HK_OK;
}

static hk_status_t null_write(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p)
{
    (void)ctx, (void)peer, (void)buf;
    *moved_p = size_bytes;
    return HK_OK;
}

static hk_status_t null_read(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p)
{
    (void)ctx, (void)peer, (void)buf;
    *moved_p = size_bytes;
    return HK_OK;
}

static hk_status_t null_open_thread(hk_ctx_t *ctx, int number, hk_apart_t apart, hk_match_t match, hk_ctx_t **thread_p)
{
    (void)number, (void)apart, (void)match;
    hk_ctx_t *thread = calloc(1, sizeof *thread);
    if (thread == NULL || thread_p == NULL) {
        free(thread);
        return HK_ERR_MEMORY;
    }
    *thread = *ctx;
    *thread_p = thread;
    return HK_OK;
}

const hk_transport_t hk_transport_null = {
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_STREAM | HK_CAP_PROBE |
            HK_CAP_MULTIPLE,
    .name = "null",
    .summary = "sends nothing: the cost of the harness itself",
    .open = null_open,
    .close = null_close,
    .library = null_library,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .send = null_send,
    .recv = null_recv,
    .probe = null_probe,
    .isend = null_isend,
    .irecv = null_irecv,
    .wait_all = null_wait_all,
    .put = null_put,
    .get = null_get,
    .put_start = null_put,
    .get_start = null_get,
    .quiet = null_quiet,
    .wait_word = null_wait_word,
    .write_some = null_write,
    .read_some = null_read,
    .write_now = null_write,
    .read_now = null_read,
    .open_thread = null_open_thread,
    .close_thread = null_close,
    .now_ns = hk_real_now_ns,
    .compute = hk_real_compute,
};
