/* libfabric's messages by tag: fi_tsend and fi_trecv, and fi_tinject for those that it copies at once, as MPIs do. */
#include "ofi.h"

#include <rdma/fi_tagged.h>

/* A tag of libfabric: the sender's rank, and below it the message's tag. Providers have 40 bits or more. */
enum { OFI_ANY = -1, OFI_TAG_BITS = 16 };
#define OFI_TAG_MASK ((UINT64_C(1) << OFI_TAG_BITS) - 1)

_Static_assert(HK_TAG_MAX < 1 << OFI_TAG_BITS, "ofi: a tag has too many bits");

static inline uint64_t ofi_tag(int rank, int tag)
{
    return (uint64_t)(unsigned)rank << OFI_TAG_BITS | (unsigned)tag;
}

/* *req may be NULL if the message is one that is copied at once. */
static inline hk_status_t ofi_start_send(hk_ofi_t *ofi, int peer, int tag, const void *buf, size_t size_bytes,
                                     hk_ofi_req_t *req)
{
    const uint64_t its_tag = ofi_tag(ofi->base.rank, tag);
    req->is_done = size_bytes <= ofi->inject_bytes;
    if (req->is_done) {
        HK_OFI_CALL(ofi, fi_tinject, ofi->ep, buf, size_bytes, ofi->addr[peer], its_tag);
    } else {
        HK_OFI_CALL(ofi, fi_tsend, ofi->ep, buf, size_bytes, NULL, ofi->addr[peer], its_tag, req);
    }
    return HK_OK;
}

static inline hk_status_t ofi_start_receive(hk_ofi_t *ofi, int peer, int tag, void *buf, size_t size_bytes,
                                        hk_ofi_req_t *req)
{
    const uint64_t ignored = (peer == OFI_ANY ? ~OFI_TAG_MASK : 0) | (tag == OFI_ANY ? OFI_TAG_MASK : 0);
    req->is_done = false;
    HK_OFI_CALL(ofi, fi_trecv, ofi->ep, buf, size_bytes, NULL, FI_ADDR_UNSPEC, ofi_tag(peer, tag) & ~ignored, ignored,
                req);
    return HK_OK;
}

static inline hk_ofi_req_t *ofi_req(hk_req_t *req)
{
    return (hk_ofi_req_t *)(void *)req->room;
}

static hk_status_t ofi_send_tagged(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes)
{
    hk_ofi_req_t req;
    HK_TRY(ofi_start_send(hk_ofi_of(ctx), peer, tag, buf, size_bytes, &req));
    return hk_ofi_finish(hk_ofi_of(ctx), &req);
}

static hk_status_t ofi_recv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes)
{
    hk_ofi_req_t req;
    HK_TRY(ofi_start_receive(hk_ofi_of(ctx), peer, tag, buf, size_bytes, &req));
    return hk_ofi_finish(hk_ofi_of(ctx), &req);
}

static hk_status_t ofi_irecv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes, hk_req_t *req)
{
    return ofi_start_receive(hk_ofi_of(ctx), peer, tag, buf, size_bytes, ofi_req(req));
}

hk_status_t hk_ofi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return ofi_send_tagged(ctx, peer, 0, buf, size_bytes);
}

hk_status_t hk_ofi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    return ofi_recv_tagged(ctx, peer, 0, buf, size_bytes);
}

hk_status_t hk_ofi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    return ofi_start_send(hk_ofi_of(ctx), peer, 0, buf, size_bytes, ofi_req(req));
}

hk_status_t hk_ofi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    return ofi_start_receive(hk_ofi_of(ctx), peer, 0, buf, size_bytes, ofi_req(req));
}

hk_status_t hk_ofi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        HK_TRY(hk_ofi_finish(hk_ofi_of(ctx), ofi_req(&reqs[i])));
    }
    return HK_OK;
}

static hk_status_t ofi_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_ofi_open(tp, job, sizeof(hk_ofi_t), 0, ctx_p);
}

const hk_transport_t hk_transport_ofi = {
    HK_OFI_SHARED,
    .caps = HK_OFI_CAPS | HK_CAP_MATCHING,
    .name = "ofi",
    .summary = "messages by tag (fi_tsend, fi_tinject)",
    .open = ofi_open,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .any_source = OFI_ANY,
    .any_tag = OFI_ANY,
    .send_tagged = ofi_send_tagged,
    .recv_tagged = ofi_recv_tagged,
    .irecv_tagged = ofi_irecv_tagged,
};
