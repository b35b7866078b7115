/* UCX messages by tag: ucp_tag_send_nbx and ucp_tag_recv_nbx, as MPIs over UCX use them. */
#include <stdio.h>
#include <string.h>

#include "ucx.h"

/* A tag of UCX has 64 bits: the sender's rank, and below it the message's tag. */
enum { UCX_ANY = -1, UCX_RANK_AT = 32 };
#define UCX_ALL_BITS (~(ucp_tag_t)0)
#define UCX_TAG_BITS ((ucp_tag_t)UINT32_MAX)

static inline ucp_tag_t ucx_tag(int rank, int tag)
{
    return (ucp_tag_t)(unsigned)rank << UCX_RANK_AT | (unsigned)tag;
}

static inline ucs_status_ptr_t ucx_start_send(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes)
{
    return ucp_tag_send_nbx(hk_ucx_of(ctx)->ep[peer], buf, size_bytes, ucx_tag(ctx->rank, tag), &hk_ucx_plain);
}

static inline ucs_status_ptr_t ucx_start_receive(hk_ctx_t *ctx, ucp_tag_t tag, ucp_tag_t mask, void *buf,
                                                 size_t size_bytes)
{
    return ucp_tag_recv_nbx(hk_ucx_of(ctx)->worker, buf, size_bytes, tag, mask, &hk_ucx_plain);
}

/* What a receive of any rank, or with any tag, compares. */
static inline ucp_tag_t ucx_mask(int peer, int tag)
{
    return (peer == UCX_ANY ? 0 : ~UCX_TAG_BITS) | (tag == UCX_ANY ? 0 : UCX_TAG_BITS);
}

/* A request that is complete is NULL; a failed one stays for wait_all, which logs it. */
static inline void ucx_keep(hk_req_t *req, ucs_status_ptr_t request)
{
    memcpy(req->room, &request, sizeof request);
}

hk_status_t hk_ucx_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_tag_send_nbx", ucx_start_send(ctx, peer, 0, buf, size_bytes));
}

hk_status_t hk_ucx_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_tag_recv_nbx",
                         ucx_start_receive(ctx, ucx_tag(peer, 0), UCX_ALL_BITS, buf, size_bytes));
}

hk_status_t hk_ucx_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    ucp_tag_recv_info_t info;
    hk_ucx_progress(ctx);
    *is_there_p = ucp_tag_probe_nb(hk_ucx_of(ctx)->worker, ucx_tag(peer, 0), UCX_ALL_BITS, 0, &info) != NULL;
    return HK_OK;
}

hk_status_t hk_ucx_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    ucx_keep(req, ucx_start_send(ctx, peer, 0, buf, size_bytes));
    return HK_OK;
}

hk_status_t hk_ucx_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    ucx_keep(req, ucx_start_receive(ctx, ucx_tag(peer, 0), UCX_ALL_BITS, buf, size_bytes));
    return HK_OK;
}

hk_status_t hk_ucx_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ucs_status_ptr_t request;
        memcpy(&request, reqs[i].room, sizeof request);
        HK_TRY(hk_ucx_finish(ctx, "a message by tag", request));
    }
    return HK_OK;
}

static hk_status_t ucx_send_tagged(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_tag_send_nbx", ucx_start_send(ctx, peer, tag, buf, size_bytes));
}

static hk_status_t ucx_recv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_tag_recv_nbx",
                         ucx_start_receive(ctx, ucx_tag(peer, tag), ucx_mask(peer, tag), buf, size_bytes));
}

static hk_status_t ucx_irecv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes, hk_req_t *req)
{
    ucx_keep(req, ucx_start_receive(ctx, ucx_tag(peer, tag), ucx_mask(peer, tag), buf, size_bytes));
    return HK_OK;
}

static bool ucx_lacks(const hk_transport_t *tp, uint32_t needs, char *why, size_t len)
{
    (void)tp;
    if ((needs & HK_CAP_DEVICES) == 0 || hk_ucx_has_devices()) {
        return false;
    }
    (void)snprintf(why, len, "UCX %s has no usable CUDA module here; `ucx_info -d` lists its transports",
                   ucp_get_version_string());
    return true;
}

static const hk_layer_kind_t ucx_kind = {HK_UCX_KIND, .ctx_bytes = sizeof(hk_ucx_t), .features = UCP_FEATURE_TAG,
                                         .make = hk_ucx_make, .drop = hk_ucx_drop};

const hk_transport_t hk_transport_ucx = {
    HK_UCX_SHARED,
    HK_UCX_MESSAGES,
    .caps = HK_UCX_CAPS | HK_CAP_MATCHING | HK_CAP_DEVICES,
    .lacks = ucx_lacks,
    .name = "ucx",
    .summary = "messages by tag (ucp_tag_send_nbx)",
    .own = &ucx_kind,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .any_source = UCX_ANY,
    .any_tag = UCX_ANY,
    .send_tagged = ucx_send_tagged,
    .recv_tagged = ucx_recv_tagged,
    .irecv_tagged = ucx_irecv_tagged,
};
