/* libfabric's messages by tag: fi_tsend and fi_trecv, and fi_tinject for those that it copies at once, as MPIs do. */
#include "ofi.h"

#include <rdma/fi_tagged.h>

/* *req may be reused at once if the message is one that is copied. */
static inline hk_status_t ofi_start_send(hk_ofi_t *ofi, int peer, const void *buf, size_t size_bytes, hk_ofi_req_t *req)
{
    const uint64_t tag = (uint64_t)(unsigned)ofi->layer.base.rank; /* receives name the sender by it */
    req->is_done = size_bytes <= ofi->inject_bytes;
    if (req->is_done) {
        HK_OFI_CALL(ofi, fi_tinject, ofi->ep, buf, size_bytes, ofi->addr[peer], tag);
    } else {
        HK_OFI_CALL(ofi, fi_tsend, ofi->ep, buf, size_bytes, NULL, ofi->addr[peer], tag, req);
    }
    return HK_OK;
}

static inline hk_status_t ofi_start_receive(hk_ofi_t *ofi, int peer, void *buf, size_t size_bytes, hk_ofi_req_t *req)
{
    req->is_done = false;
    HK_OFI_CALL(ofi, fi_trecv, ofi->ep, buf, size_bytes, NULL, FI_ADDR_UNSPEC, (uint64_t)(unsigned)peer, 0, req);
    return HK_OK;
}

static inline hk_ofi_req_t *ofi_req(hk_req_t *req)
{
    return (hk_ofi_req_t *)(void *)req->room;
}

hk_status_t hk_ofi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    hk_ofi_req_t req;
    HK_TRY(ofi_start_send(hk_ofi_of(ctx), peer, buf, size_bytes, &req));
    return hk_ofi_finish(hk_ofi_of(ctx), &req);
}

hk_status_t hk_ofi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    hk_ofi_req_t req;
    HK_TRY(ofi_start_receive(hk_ofi_of(ctx), peer, buf, size_bytes, &req));
    return hk_ofi_finish(hk_ofi_of(ctx), &req);
}

hk_status_t hk_ofi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    return ofi_start_send(hk_ofi_of(ctx), peer, buf, size_bytes, ofi_req(req));
}

hk_status_t hk_ofi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    return ofi_start_receive(hk_ofi_of(ctx), peer, buf, size_bytes, ofi_req(req));
}

hk_status_t hk_ofi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        HK_TRY(hk_ofi_finish(hk_ofi_of(ctx), ofi_req(&reqs[i])));
    }
    return HK_OK;
}

static const hk_layer_kind_t ofi_kind = {HK_OFI_KIND, .ctx_bytes = sizeof(hk_ofi_t)};

const hk_transport_t hk_transport_ofi = {
    HK_OFI_SHARED,           .caps = HK_OFI_CAPS,
    .name = "ofi",           .summary = "messages by tag (fi_tsend, fi_tinject)",
    .own = &ofi_kind,        .alloc = hk_private_alloc,
    .free = hk_private_free,
};
