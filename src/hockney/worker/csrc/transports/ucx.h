/* UCX: the library below many MPIs. ucx.c sends messages by tag, ucx_am.c by active messages, ucx_put.c has puts and
 * gets. */
#ifndef HK_UCX_H
#define HK_UCX_H

#include <stdbool.h>
#include <ucp/api/ucp.h>

#include "layer.h"

static const ucp_request_param_t hk_ucx_plain = {.op_attr_mask = 0};

/* Variants embed it as the first member of their context. */
typedef struct hk_ucx {
    hk_layer_t layer;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address; /* of the worker */
    size_t address_bytes;
    ucp_ep_h *ep; /* [size]; NULL: of this rank */
} hk_ucx_t;

/* ucx_open.c. Of a kind, whose features are UCP_FEATURE_*. */
hk_status_t hk_ucx_make(hk_ctx_t *ctx, const hk_job_t *job);
hk_status_t hk_ucx_connect(hk_ctx_t *ctx);
void hk_ucx_describe(hk_ctx_t *ctx);
void hk_ucx_drop(hk_ctx_t *ctx);
void hk_ucx_close(hk_ctx_t *ctx);

/* Whether messages may lie in the memory of NVIDIA devices, as a context says that is made for this question. */
bool hk_ucx_has_devices(void);

/* Log a failed call. */
hk_status_t hk_ucx_failed(int rank, const char *call, ucs_status_t status);

static inline hk_ucx_t *hk_ucx_of(hk_ctx_t *ctx)
{
    return (hk_ucx_t *)ctx;
}

static inline void hk_ucx_progress(hk_ctx_t *ctx)
{
    if (ucp_worker_progress(hk_ucx_of(ctx)->worker) == 0) {
        hk_layer_rest(ctx);
    }
}

/* Waits for a request of any call. NULL: it was complete at once. */
static inline hk_status_t hk_ucx_finish(hk_ctx_t *ctx, const char *call, ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_OK;
    if (__builtin_expect(UCS_PTR_IS_PTR(request), 0)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            hk_ucx_progress(ctx);
        }
        ucp_request_free(request);
    } else {
        status = UCS_PTR_RAW_STATUS(request);
    }
    return __builtin_expect(status == UCS_OK, 1) ? HK_OK : hk_layer_lose(ctx, call, ucs_status_string(status));
}

/* Messages by tag (ucx.c), which ucx:put has, too. */
hk_status_t hk_ucx_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_ucx_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_ucx_probe(hk_ctx_t *ctx, int peer, bool *is_there_p);
hk_status_t hk_ucx_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ucx_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ucx_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

#define HK_UCX_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS | HK_CAP_PROBE)
#define HK_UCX_KIND .connect = hk_ucx_connect, .describe = hk_ucx_describe, .progress = hk_ucx_progress
#define HK_UCX_SHARED                                                                                                  \
    .carrier = HK_CARRIER_LIBRARY, .below = "shm", .below_remote = "tcp", .library = hk_layer_library,                 \
    .open = hk_layer_open, .close = hk_ucx_close, .now_ns = hk_real_now_ns, .compute = hk_real_compute
#define HK_UCX_MESSAGES                                                                                                \
    .send = hk_ucx_send, .recv = hk_ucx_recv, .probe = hk_ucx_probe, .isend = hk_ucx_isend, .irecv = hk_ucx_irecv,     \
    .wait_all = hk_ucx_wait_all

#endif
