/* libfabric (OFI): the library below many MPIs, whose providers move the bytes. Shared by its transports.
 *
 * ofi.c sends messages by tag, ofi_write.c has puts and gets. Most providers work only within the library's calls, so a
 * rank that has finished goes on with them until all have (hk_control_t). */
#ifndef HK_OFI_H
#define HK_OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdbool.h>

#include "../control.h"
#include "../transport.h"

enum { HK_OFI_LIBRARY_MAX = 192, HK_OFI_COMPLETIONS = 8 };

/* Variants embed it as the first member of their context. */
typedef struct hk_ofi {
    hk_ctx_t base;
    hk_control_t *control;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    fi_addr_t *addr; /* [size] */
    size_t inject_bytes;
    bool gives_way; /* oversubscribed */
    bool is_broken; /* a message has failed, which was logged */
    char library[HK_OFI_LIBRARY_MAX];
} hk_ofi_t;

/* A started operation. The first part is the provider's. */
typedef struct hk_ofi_req {
    struct fi_context context;
    bool is_done;
} hk_ofi_req_t;

_Static_assert(sizeof(hk_ofi_req_t) <= sizeof(hk_req_t), "ofi: a request does not fit hk_req_t");

/* ofi_open.c. A context of ctx_bytes, zero after the common part, on all ranks or on none. `caps`: besides FI_TAGGED.
 */
hk_status_t hk_ofi_open(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, uint64_t caps,
                        hk_ctx_t **ctx_p);
void hk_ofi_close(hk_ctx_t *ctx);
const char *hk_ofi_library(const hk_ctx_t *ctx);

/* Log a failed call. Out of line and cold, so that hooks stay a compare and a jump. */
hk_status_t hk_ofi_failed(int rank, const char *call, ssize_t code);

/* Log what fi_cq_read has failed with: that of an operation, if there is one. */
hk_status_t hk_ofi_lost(hk_ofi_t *ofi, ssize_t code);

static inline hk_ofi_t *hk_ofi_of(hk_ctx_t *ctx)
{
    return (hk_ofi_t *)ctx;
}

/* One look at what is complete, which also lets messages move. With more ranks than CPUs one in vain gives the CPU to
 * another rank. */
static inline hk_status_t hk_ofi_look(hk_ofi_t *ofi)
{
    struct fi_cq_entry done[HK_OFI_COMPLETIONS];
    const ssize_t count = fi_cq_read(ofi->cq, done, HK_OFI_COMPLETIONS);
    for (ssize_t i = 0; i < count; i++) {
        ((hk_ofi_req_t *)done[i].op_context)->is_done = true;
    }
    if (__builtin_expect(count < 0 && count != -FI_EAGAIN, 0)) {
        return hk_ofi_lost(ofi, count);
    }
    if (count <= 0 && ofi->gives_way) {
        (void)sched_yield();
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
            return hk_ofi_failed((ofi)->base.rank, #call, hk_code);                                                    \
        }                                                                                                              \
    } while (0)

/* Messages by tag (ofi.c), which ofi:write has, too. */
hk_status_t hk_ofi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_ofi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_ofi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ofi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_ofi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

#define HK_OFI_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS)
#define HK_OFI_SHARED                                                                                                  \
    .carrier = HK_CARRIER_LIBRARY, .close = hk_ofi_close, .library = hk_ofi_library, .send = hk_ofi_send,              \
    .recv = hk_ofi_recv, .isend = hk_ofi_isend, .irecv = hk_ofi_irecv, .wait_all = hk_ofi_wait_all,                    \
    .now_ns = hk_real_now_ns, .compute = hk_real_compute

#endif
