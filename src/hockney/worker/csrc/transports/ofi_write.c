/* Puts and gets of libfabric: fi_write and fi_read on registered memory. Messages are those by tag.
 *
 * A put is complete when its data has arrived (FI_DELIVERY_COMPLETE), so `quiet` waits for those that were started. */
#include <stdio.h>
#include <string.h>

#include "ofi.h"
#include "regions.h"

#include <rdma/fi_rma.h>

enum { WRITE_STARTED_MAX = 64 };

typedef struct write_ctx {
    hk_ofi_t ofi;
    hk_regions_t regions;
    size_t started_count; /* since quiet; a request is used again when it is done */
    hk_ofi_req_t started[WRITE_STARTED_MAX];
} write_ctx_t;

static inline write_ctx_t *write_of(hk_ctx_t *ctx)
{
    return (write_ctx_t *)ctx;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static hk_status_t write_register(hk_ctx_t *ctx, hk_region_t *region, hk_spot_t *mine)
{
    const hk_ofi_t *ofi = hk_ofi_of(ctx);
    const uint64_t mode = (uint64_t)ofi->info->domain_attr->mr_mode;
    const uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    const uint64_t wanted_key = write_of(ctx)->regions.count + 1; /* for providers that do not choose it themselves */
    struct fid_mr *mr = NULL;
    region->memory = hk_private_alloc(ctx, region->room_bytes);
    if (region->memory == NULL) {
        return HK_ERR_MEMORY;
    }
    int code = fi_mr_reg(ofi->domain, region->memory, region->room_bytes, access, 0, wanted_key, 0, &mr, NULL);
    if (code == 0) {
        region->handle = mr;
        code = (mode & FI_MR_ENDPOINT) != 0 ? fi_mr_bind(mr, &ofi->ep->fid, 0) : 0;
        code = code == 0 && (mode & FI_MR_ENDPOINT) != 0 ? fi_mr_enable(mr) : code;
    }
    if (code != 0) {
        return hk_ofi_failed(ctx->rank, "fi_mr_reg", code);
    }
    *mine = (hk_spot_t){(mode & FI_MR_VIRT_ADDR) != 0 ? (uintptr_t)region->memory : 0, fi_mr_key(mr)};
    return HK_OK;
}

static hk_status_t write_make(hk_ctx_t *ctx, hk_region_t *region)
{
    hk_control_t *control = hk_layer_of(ctx)->control;
    hk_spot_t mine = {0};
    HK_TRY(hk_control_agree(control, write_register(ctx, region, &mine)));
    return hk_control_allgather(control, &mine, sizeof mine, region->spot);
}

static void write_drop(hk_ctx_t *ctx, hk_region_t *region)
{
    struct fid_mr *mr = region->handle;
    if (mr != NULL) {
        (void)fi_close(&mr->fid);
    }
    if (region->memory != NULL) {
        hk_private_free(ctx, region->memory, region->room_bytes);
    }
}

static const hk_region_kind_t write_kind = {write_make, write_drop};

static void *write_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    return hk_region_alloc(ctx, &write_of(ctx)->regions, hk_layer_of(ctx)->control, &write_kind, size_bytes);
}

static void write_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
    hk_region_free(ctx, &write_of(ctx)->regions, hk_layer_of(ctx)->control, &write_kind);
}

/* ---- the timed hooks --------------------------------------------------------------------------------------------- */

/* `is_get` is a constant in each call. */
static inline hk_status_t write_begin(hk_ctx_t *ctx, int peer, const void *remote, void *local, size_t size_bytes,
                                      const bool is_get, hk_ofi_req_t *req)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    const hk_region_t *region = hk_region_at(&write_of(ctx)->regions, remote);
    const uint64_t place = hk_region_place(region, peer, remote), key = region->spot[peer].key;
    req->is_done = size_bytes == 0;
    if (!req->is_done && is_get) {
        HK_OFI_CALL(ofi, fi_read, ofi->ep, local, size_bytes, NULL, ofi->addr[peer], place, key, req);
    } else if (!req->is_done) {
        HK_OFI_CALL(ofi, fi_write, ofi->ep, local, size_bytes, NULL, ofi->addr[peer], place, key, req);
    }
    return HK_OK;
}

static inline hk_status_t write_whole(hk_ctx_t *ctx, int peer, const void *remote, void *local, size_t size_bytes,
                                      const bool is_get)
{
    hk_ofi_req_t req;
    HK_TRY(write_begin(ctx, peer, remote, local, size_bytes, is_get, &req));
    return hk_ofi_finish(hk_ofi_of(ctx), &req);
}

static hk_status_t write_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    return write_whole(ctx, peer, remote, (void *)(uintptr_t)local, size_bytes, false);
}

static hk_status_t write_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    return write_whole(ctx, peer, remote, local, size_bytes, true);
}

/* Takes a free request: the oldest one, once it is done. */
static inline hk_status_t write_start(hk_ctx_t *ctx, int peer, const void *remote, void *local, size_t size_bytes,
                                      const bool is_get)
{
    write_ctx_t *write = write_of(ctx);
    hk_ofi_req_t *req = &write->started[write->started_count % WRITE_STARTED_MAX];
    HK_TRY(write->started_count++ < WRITE_STARTED_MAX ? HK_OK : hk_ofi_finish(&write->ofi, req));
    return write_begin(ctx, peer, remote, local, size_bytes, is_get, req);
}

static hk_status_t write_put_start(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    return write_start(ctx, peer, remote, (void *)(uintptr_t)local, size_bytes, false);
}

static hk_status_t write_get_start(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    return write_start(ctx, peer, remote, local, size_bytes, true);
}

static hk_status_t write_quiet(hk_ctx_t *ctx)
{
    write_ctx_t *write = write_of(ctx);
    for (size_t i = 0; i < write->started_count && i < WRITE_STARTED_MAX; i++) {
        HK_TRY(hk_ofi_finish(&write->ofi, &write->started[i]));
    }
    write->started_count = 0;
    return HK_OK;
}

/* Most providers carry out a put while its target is in one of their calls. */
static hk_status_t write_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    while (!hk_word_is(word, value)) {
        HK_TRY(hk_ofi_look(hk_ofi_of(ctx)));
    }
    return HK_OK;
}

static bool write_is_here(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    (void)tp;
    const char *provider = getenv(HK_OFI_VARIABLE);
    *how_p = "use ofi@tcp-rxm:write";
    (void)snprintf(why, len, "libfabric's udp;ofi_rxd stalls where two ranks write to each other");
    return provider == NULL || strcmp(provider, "udp;ofi_rxd") != 0;
}

static const hk_layer_kind_t write_of_ofi = {HK_OFI_KIND, .ctx_bytes = sizeof(write_ctx_t), .features = FI_RMA};

const hk_transport_t hk_transport_ofi_write = {
    HK_OFI_SHARED,
    .caps = HK_OFI_CAPS | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED,
    .name = "ofi:write",
    .summary = "puts and gets (fi_write, fi_read) on registered memory; messages as ofi",
    .own = &write_of_ofi,
    .is_here = write_is_here,
    .alloc = write_alloc,
    .free = write_free,
    .put = write_put,
    .get = write_get,
    .put_start = write_put_start,
    .get_start = write_get_start,
    .quiet = write_quiet,
    .wait_word = write_wait_word,
};
