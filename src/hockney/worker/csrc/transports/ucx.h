/* UCX: the library below many MPIs. Shared by its transports: the context, and how requests complete.
 *
 * ucx.c sends messages by tag, ucx_am.c by active messages, ucx_put.c has puts and gets. UCX carries messages only
 * within its calls, so a rank that has finished goes on with them until all have (hk_control_t). */
#ifndef HK_UCX_H
#define HK_UCX_H

#include <sched.h>
#include <stdbool.h>
#include <ucp/api/ucp.h>

#include "../control.h"
#include "../transport.h"

enum { HK_UCX_LIBRARY_MAX = 256 };

static const ucp_request_param_t hk_ucx_plain = {.op_attr_mask = 0};

/* Variants embed it as the first member of their context. */
typedef struct hk_ucx {
    hk_ctx_t base;
    hk_control_t *control;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address; /* of the worker */
    size_t address_bytes;
    ucp_ep_h *ep;   /* [size]; NULL: of this rank */
    bool gives_way; /* oversubscribed */
    char library[HK_UCX_LIBRARY_MAX];
} hk_ucx_t;

/* ucx_open.c. A context of ctx_bytes, zero after the common part, on all ranks or on none. `features`: UCP_FEATURE_*.
 * `prepare`, or NULL: what the variant needs before a message may arrive. */
hk_status_t hk_ucx_open(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, uint64_t features,
                        hk_status_t (*prepare)(hk_ctx_t *ctx), hk_ctx_t **ctx_p);
void hk_ucx_close(hk_ctx_t *ctx);
const char *hk_ucx_library(const hk_ctx_t *ctx);

/* Log a failed call. Out of line and cold, so that hooks stay a compare and a jump. */
hk_status_t hk_ucx_failed(int rank, const char *call, ucs_status_t status);

static inline hk_ucx_t *hk_ucx_of(hk_ctx_t *ctx)
{
    return (hk_ucx_t *)ctx;
}

/* One call that lets messages move; with more ranks than CPUs a call in vain gives the CPU to another rank. */
static inline void hk_ucx_progress(hk_ctx_t *ctx)
{
    if (ucp_worker_progress(hk_ucx_of(ctx)->worker) == 0 && hk_ucx_of(ctx)->gives_way) {
        (void)sched_yield();
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
    return __builtin_expect(status == UCS_OK, 1) ? HK_OK : hk_ucx_failed(ctx->rank, call, status);
}

/* Messages by tag (ucx.c), which ucx:put has, too. */
hk_status_t hk_ucx_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_ucx_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_ucx_probe(hk_ctx_t *ctx, int peer, bool *is_there_p);
hk_status_t hk_ucx_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ucx_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ucx_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

#define HK_UCX_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS | HK_CAP_PROBE)
#define HK_UCX_SHARED                                                                                                  \
    .carrier = HK_CARRIER_LIBRARY, .below = "shm", .below_remote = "tcp", .library = hk_ucx_library,                   \
    .now_ns = hk_real_now_ns, .compute = hk_real_compute
#define HK_UCX_MESSAGES                                                                                                \
    .send = hk_ucx_send, .recv = hk_ucx_recv, .probe = hk_ucx_probe, .isend = hk_ucx_isend, .irecv = hk_ucx_irecv,     \
    .wait_all = hk_ucx_wait_all

#endif
