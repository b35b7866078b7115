/* Puts and gets of UCX: ucp_put_nbx, ucp_get_nbx, on memory that UCX allocates. Messages are those by tag. */
#include <string.h>

#include "regions.h"
#include "ucx.h"

enum { PUT_KEY_MAX_BYTES = 1024 };

typedef struct put_ctx {
    hk_ucx_t ucx;
    hk_regions_t regions;
} put_ctx_t;

static inline put_ctx_t *put_of(hk_ctx_t *ctx)
{
    return (put_ctx_t *)ctx;
}

/* A pointer to an opaque structure of UCX. */
static inline ucp_rkey_h put_key(const hk_region_t *region, int peer)
{
    return (ucp_rkey_h)(uintptr_t)region->spot[peer].key;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* What a rank tells the others of its region. */
typedef struct put_tell {
    uint64_t begin;
    unsigned char key[PUT_KEY_MAX_BYTES]; /* packed */
} put_tell_t;

static hk_status_t put_map(hk_ctx_t *ctx, hk_region_t *region, put_tell_t *mine)
{
    ucp_context_h context = hk_ucx_of(ctx)->context;
    const ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = region->room_bytes + HK_REGION_PAGE_BYTES,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_attr_t found = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucp_mem_h handle = NULL;
    void *key = NULL;
    size_t key_bytes = 0;
    ucs_status_t status = ucp_mem_map(context, &params, &handle);
    if (status == UCS_OK) {
        region->handle = handle;
        status = ucp_mem_query(handle, &found);
    }
    if (status == UCS_OK) {
        status = ucp_rkey_pack(context, handle, &key, &key_bytes);
    }
    if (status != UCS_OK) {
        return hk_ucx_failed(ctx->rank, "allocating memory", status);
    }
    const size_t past_page = (uintptr_t)found.address % HK_REGION_PAGE_BYTES;
    region->memory = (unsigned char *)found.address + (past_page == 0 ? 0 : HK_REGION_PAGE_BYTES - past_page);
    mine->begin = (uintptr_t)region->memory;
    if (key_bytes <= PUT_KEY_MAX_BYTES) {
        memcpy(mine->key, key, key_bytes);
    }
    ucp_rkey_buffer_release(key);
    return key_bytes <= PUT_KEY_MAX_BYTES ? HK_OK : hk_ucx_failed(ctx->rank, "ucp_rkey_pack", UCS_ERR_BUFFER_TOO_SMALL);
}

static hk_status_t put_unpack(hk_ctx_t *ctx, hk_region_t *region, const put_tell_t *all)
{
    for (int peer = 0; peer < ctx->size; peer++) {
        ucp_rkey_h key = NULL;
        if (peer != ctx->rank) {
            const ucs_status_t status = ucp_ep_rkey_unpack(hk_ucx_of(ctx)->ep[peer], all[peer].key, &key);
            if (status != UCS_OK) {
                return hk_ucx_failed(ctx->rank, "ucp_ep_rkey_unpack", status);
            }
        }
        region->spot[peer] = (hk_spot_t){all[peer].begin, (uintptr_t)key};
    }
    return HK_OK;
}

static hk_status_t put_make(hk_ctx_t *ctx, hk_region_t *region)
{
    hk_control_t *control = hk_layer_of(ctx)->control;
    put_tell_t mine = {.begin = 0};
    HK_TRY(hk_control_agree(control, put_map(ctx, region, &mine)));
    put_tell_t *all = hk_control_calloc(control, (size_t)ctx->size, sizeof *all);
    if (all == NULL) {
        return HK_ERR_MEMORY;
    }
    hk_status_t status = hk_control_allgather(control, &mine, sizeof mine, all);
    status = status == HK_OK ? hk_control_agree(control, put_unpack(ctx, region, all)) : status;
    free(all);
    return status;
}

static void put_drop(hk_ctx_t *ctx, hk_region_t *region)
{
    for (int peer = 0; region->spot != NULL && peer < ctx->size; peer++) {
        if (put_key(region, peer) != NULL) {
            ucp_rkey_destroy(put_key(region, peer));
        }
    }
    if (region->handle != NULL) {
        (void)ucp_mem_unmap(hk_ucx_of(ctx)->context, region->handle);
    }
}

static const hk_region_kind_t put_kind = {put_make, put_drop};

static void *put_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    return hk_region_alloc(ctx, &put_of(ctx)->regions, hk_layer_of(ctx)->control, &put_kind, size_bytes);
}

static void put_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
    hk_region_free(ctx, &put_of(ctx)->regions, hk_layer_of(ctx)->control, &put_kind);
}

/* ---- the timed hooks --------------------------------------------------------------------------------------------- */

static inline ucs_status_ptr_t put_begin_put(hk_ctx_t *ctx, int peer, void *remote, const void *local,
                                             size_t size_bytes)
{
    const hk_region_t *region = hk_region_at(&put_of(ctx)->regions, remote);
    return ucp_put_nbx(hk_ucx_of(ctx)->ep[peer], local, size_bytes, hk_region_place(region, peer, remote),
                       put_key(region, peer), &hk_ucx_plain);
}

static inline ucs_status_ptr_t put_begin_get(hk_ctx_t *ctx, int peer, void *local, const void *remote,
                                             size_t size_bytes)
{
    const hk_region_t *region = hk_region_at(&put_of(ctx)->regions, remote);
    return ucp_get_nbx(hk_ucx_of(ctx)->ep[peer], local, size_bytes, hk_region_place(region, peer, remote),
                       put_key(region, peer), &hk_ucx_plain);
}

static hk_status_t put_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_put_nbx", put_begin_put(ctx, peer, remote, local, size_bytes));
}

static hk_status_t put_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    return hk_ucx_finish(ctx, "ucp_get_nbx", put_begin_get(ctx, peer, local, remote, size_bytes));
}

/* Leaves a started operation to UCX; quiet waits for all. */
static inline hk_status_t put_leave(hk_ctx_t *ctx, const char *call, ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request); /* it ends all the same */
        return HK_OK;
    }
    return hk_ucx_finish(ctx, call, request);
}

static hk_status_t put_start(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    return put_leave(ctx, "ucp_put_nbx", put_begin_put(ctx, peer, remote, local, size_bytes));
}

static hk_status_t get_start(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    return put_leave(ctx, "ucp_get_nbx", put_begin_get(ctx, peer, local, remote, size_bytes));
}

static hk_status_t put_quiet(hk_ctx_t *ctx)
{
    return hk_ucx_finish(ctx, "ucp_worker_flush_nbx", ucp_worker_flush_nbx(hk_ucx_of(ctx)->worker, &hk_ucx_plain));
}

/* Where no memory is shared, UCX carries out a put while its target is in one of its calls. */
static hk_status_t put_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    while (!hk_word_is(word, value)) {
        hk_ucx_progress(ctx);
    }
    return HK_OK;
}

static const hk_layer_kind_t put_of_ucx = {HK_UCX_KIND, .ctx_bytes = sizeof(put_ctx_t),
                                           .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA, .make = hk_ucx_make,
                                           .drop = hk_ucx_drop};

const hk_transport_t hk_transport_ucx_put = {
    HK_UCX_SHARED,
    HK_UCX_MESSAGES,
    .caps = HK_UCX_CAPS | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED,
    .name = "ucx:put",
    .summary = "puts and gets (ucp_put_nbx, ucp_get_nbx) on memory that UCX allocates; messages as ucx",
    .own = &put_of_ucx,
    .alloc = put_alloc,
    .free = put_free,
    .put = put_put,
    .get = put_get,
    .put_start = put_start,
    .get_start = get_start,
    .quiet = put_quiet,
    .wait_word = put_wait_word,
};
