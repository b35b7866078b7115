/* libfabric (OFI): the library below many MPIs, whose providers move the bytes. ofi.c sends messages by tag,
 * ofi_write.c has puts and gets. */
#ifndef HK_OFI_H
#define HK_OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>

#include "layer.h"

enum { HK_OFI_COMPLETIONS = 8 };

#define HK_OFI_VARIABLE "HOCKNEY_OFI_PROVIDER" /* of all ranks, as libfabric calls it: tcp;ofi_rxm */

/* Variants embed it as the first member of their context. */
typedef struct hk_ofi {
    hk_layer_t layer;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    fi_addr_t *addr; /* [size] */
    size_t inject_bytes;
} hk_ofi_t;

/* A started operation. The first part is the provider's. */
typedef struct hk_ofi_req {
    struct fi_context context;
    bool is_done;
} hk_ofi_req_t;

_Static_assert(sizeof(hk_ofi_req_t) <= sizeof(hk_req_t), "ofi: a request does not fit hk_req_t");

/* ofi_open.c. Of a kind, whose features are FI_…, besides FI_TAGGED. */
hk_status_t hk_ofi_make(hk_ctx_t *ctx, const hk_job_t *job);
hk_status_t hk_ofi_connect(hk_ctx_t *ctx);
void hk_ofi_describe(hk_ctx_t *ctx);
void hk_ofi_progress(hk_ctx_t *ctx);
void hk_ofi_drop(hk_ctx_t *ctx);

/* Log a failed call. */
hk_status_t hk_ofi_failed(int rank, const char *call, ssize_t code);

/* As hk_layer_lose, with `code` of a call. */
hk_status_t hk_ofi_lose(hk_ofi_t *ofi, const char *call, ssize_t code);

static inline hk_ofi_t *hk_ofi_of(hk_ctx_t *ctx)
{
    return (hk_ofi_t *)ctx;
}

/* One look at what is complete, which also lets messages move. */
static inline hk_status_t hk_ofi_look(hk_ofi_t *ofi)
{
    struct fi_cq_entry done[HK_OFI_COMPLETIONS];
    const ssize_t count = fi_cq_read(ofi->cq, done, HK_OFI_COMPLETIONS);
    for (ssize_t i = 0; i < count; i++) {
        ((hk_ofi_req_t *)done[i].op_context)->is_done = true;
    }
    if (__builtin_expect(count < 0 && count != -FI_EAGAIN, 0)) {
        return hk_ofi_lose(ofi, "fi_cq_read", count);
    }
    if (count <= 0) {
        hk_layer_rest(&ofi->layer.base);
    }
    return HK_OK;
}

static inline hk_status_t hk_ofi_finish(hk_ofi_t *ofi, const hk_ofi_req_t *req)
{
    while (!req->is_done) {
        HK_TRY(hk_ofi_look(ofi));
    }
    return HK_OK;
}

/* Repeats a call while the provider's queues are full. */
#define HK_OFI_CALL(ofi, call, ...)                                                                                    \
    do {                                                                                                               \
        ssize_t hk_code;                                                                                               \
        while ((hk_code = call(__VA_ARGS__)) == -FI_EAGAIN) {                                                          \
            HK_TRY(hk_ofi_look(ofi));                                                                                  \
        }                                                                                                              \
        if (__builtin_expect(hk_code != 0, 0)) {                                                                       \
            return hk_ofi_lose((ofi), #call, hk_code);                                                                 \
        }                                                                                                              \
    } while (0)

/* Messages by tag (ofi.c), which ofi:write has, too. */
hk_status_t hk_ofi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_ofi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_ofi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ofi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ofi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

#define HK_OFI_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS)
#define HK_OFI_KIND                                                                                                    \
    .make = hk_ofi_make, .connect = hk_ofi_connect, .describe = hk_ofi_describe, .progress = hk_ofi_progress,          \
    .drop = hk_ofi_drop
#define HK_OFI_SHARED                                                                                                  \
    .carrier = HK_CARRIER_LIBRARY, .open = hk_layer_open, .close = hk_layer_close, .library = hk_layer_library,        \
    .send = hk_ofi_send, .recv = hk_ofi_recv, .isend = hk_ofi_isend, .irecv = hk_ofi_irecv,                            \
    .wait_all = hk_ofi_wait_all, .now_ns = hk_real_now_ns, .compute = hk_real_compute

#endif
