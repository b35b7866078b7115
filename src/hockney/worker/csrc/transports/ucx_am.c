/* UCX messages as active messages: ucp_am_send_nbx calls a function of the receiver, which has no tags to match.
 *
 * The head of a message has its sender and its number. Each peer has a ring of entries by this number, which either the
 * receive or the message finds first. */
#include <stdlib.h>
#include <string.h>

#include "ucx.h"

enum { AM_ID = 1, AM_RING_ENTRIES = 256 /* a power of two; it grows as messages or receives wait */ };

typedef enum am_stage { AM_EMPTY, AM_POSTED, AM_ARRIVED, AM_FETCHABLE } am_stage_t;

typedef struct am_head {
    uint32_t rank, number;
} am_head_t;

/* A started send or receive. */
typedef struct am_req {
    void *buf;
    size_t size_bytes;
    ucs_status_ptr_t request; /* of UCX, while it moves data; NULL: none */
    bool is_done;             /* of a receive: the message is here, or `request` brings it */
    am_head_t head;           /* of a send: UCX may read it until the end */
} am_req_t;

_Static_assert(sizeof(am_req_t) <= sizeof(hk_req_t), "ucx:am: a request does not fit hk_req_t");

/* One message to come. UCX lets a receiver keep the memory of all messages but the shortest, which are copied. */
typedef struct am_entry {
    am_stage_t stage;
    uint32_t number;
    am_req_t *req;     /* AM_POSTED */
    size_t size_bytes; /* of the message */
    void *data; /* AM_ARRIVED: UCX's memory, `copy`, or NULL for 0 bytes; AM_FETCHABLE: the handle of a rendezvous */
    unsigned char *copy;
    size_t copy_bytes;
} am_entry_t;

typedef struct am_peer {
    am_entry_t *ring;
    uint32_t entries;
    uint32_t sent, posted; /* the numbers of the next message and of the next receive */
} am_peer_t;

typedef struct am_ctx {
    hk_ucx_t ucx;
    am_peer_t *peer; /* [size] */
    const char *why; /* a message is lost, or wrong; NULL: none */
} am_ctx_t;

static const char am_poor[] = "there is no memory for those that wait";

static inline am_ctx_t *am_of(hk_ctx_t *ctx)
{
    return (am_ctx_t *)ctx;
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

/* Numbers that differ in the ring differ in a larger one, too. False: there is no memory. */
__attribute__((cold, noinline)) static bool am_grow(am_peer_t *peer)
{
    const uint32_t entries = peer->entries * 2;
    am_entry_t *ring = calloc(entries, sizeof *ring);
    for (uint32_t i = 0; ring != NULL && i < peer->entries; i++) {
        const am_entry_t *entry = &peer->ring[i];
        ring[(entry->stage == AM_EMPTY ? i : entry->number) & (entries - 1)] = *entry;
    }
    if (ring != NULL) {
        free(peer->ring);
        peer->ring = ring;
        peer->entries = entries;
    }
    return ring != NULL;
}

/* The entry of a message: empty, or with its receive or itself. NULL: there is no memory. */
static inline am_entry_t *am_entry(am_peer_t *peer, uint32_t number)
{
    am_entry_t *entry = &peer->ring[number & (peer->entries - 1)];
    while (__builtin_expect(entry->stage != AM_EMPTY && entry->number != number, 0)) {
        if (!am_grow(peer)) {
            return NULL;
        }
        entry = &peer->ring[number & (peer->entries - 1)];
    }
    entry->number = number;
    return entry;
}

/* False: there is no memory. */
static bool am_copy(am_entry_t *entry, const void *data, size_t size_bytes)
{
    if (size_bytes > entry->copy_bytes) {
        free(entry->copy);
        entry->copy = malloc(size_bytes); /* kept for later ones */
        entry->copy_bytes = entry->copy == NULL ? 0 : size_bytes;
    }
    if (entry->copy != NULL) {
        memcpy(entry->copy, data, size_bytes);
    }
    entry->data = entry->copy;
    return entry->data != NULL;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Whether a message is what the receive awaits. */
static inline bool am_fits(am_ctx_t *am, am_req_t *req, size_t size_bytes)
{
    req->is_done = true;
    if (__builtin_expect(size_bytes != req->size_bytes, 0)) {
        am->why = "it has another size than its receive";
        return false;
    }
    return true;
}

static inline void am_fetch(am_ctx_t *am, am_req_t *req, void *handle, size_t size_bytes)
{
    if (am_fits(am, req, size_bytes)) {
        req->request = ucp_am_recv_data_nbx(am->ucx.worker, handle, req->buf, size_bytes, &hk_ucx_plain);
    }
}

static inline void am_take(am_ctx_t *am, am_req_t *req, const void *data, size_t size_bytes)
{
    if (am_fits(am, req, size_bytes) && size_bytes > 0) {
        memcpy(req->buf, data, size_bytes);
    }
}

/* UCX calls it within ucp_worker_progress. UCS_INPROGRESS: it keeps the data for us. */
static ucs_status_t am_arrive(void *argument, const void *head, size_t head_bytes, void *data, size_t size_bytes,
                              const ucp_am_recv_param_t *param)
{
    am_ctx_t *am = argument;
    am_head_t from;
    memcpy(&from, head, head_bytes);
    const bool is_fetchable = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    const bool may_stay = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    am_entry_t *entry = am_entry(&am->peer[from.rank], from.number);
    if (entry == NULL) {
        am->why = am_poor;
        return UCS_OK;
    }
    if (entry->stage == AM_POSTED) {
        entry->stage = AM_EMPTY;
        if (is_fetchable) {
            am_fetch(am, entry->req, data, size_bytes);
            return UCS_INPROGRESS;
        }
        am_take(am, entry->req, data, size_bytes);
        return UCS_OK;
    }
    entry->stage = is_fetchable ? AM_FETCHABLE : AM_ARRIVED;
    entry->size_bytes = size_bytes;
    entry->data = size_bytes > 0 ? data : NULL;
    if (is_fetchable || (may_stay && size_bytes > 0)) {
        return UCS_INPROGRESS;
    }
    if (size_bytes > 0 && !am_copy(entry, data, size_bytes)) {
        am->why = am_poor;
    }
    return UCS_OK;
}

static inline hk_status_t am_start_receive(hk_ctx_t *ctx, int from, am_req_t *req)
{
    am_ctx_t *am = am_of(ctx);
    am_peer_t *peer = &am->peer[from];
    am_entry_t *entry = am_entry(peer, peer->posted);
    if (__builtin_expect(entry == NULL, 0)) {
        return hk_layer_lose(ctx, "a receive", am_poor);
    }
    peer->posted++;
    const am_stage_t stage = entry->stage;
    entry->stage = stage == AM_EMPTY ? AM_POSTED : AM_EMPTY;
    entry->req = req;
    if (stage == AM_FETCHABLE) {
        am_fetch(am, req, entry->data, entry->size_bytes);
    } else if (stage == AM_ARRIVED) {
        am_take(am, req, entry->data, entry->size_bytes);
        if (entry->data != NULL && entry->data != entry->copy) {
            ucp_am_data_release(am->ucx.worker, entry->data);
        }
    }
    return HK_OK;
}

static inline hk_status_t am_finish(hk_ctx_t *ctx, am_req_t *req)
{
    am_ctx_t *am = am_of(ctx);
    while (!req->is_done && am->why == NULL) {
        hk_ucx_progress(ctx);
    }
    return __builtin_expect(am->why == NULL, 1) ? hk_ucx_finish(ctx, "an active message", req->request)
                                                : hk_layer_lose(ctx, "an active message", am->why);
}

/* ---- the hooks --------------------------------------------------------------------------------------------------- */

static inline void am_start_send(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes, am_req_t *req)
{
    am_ctx_t *am = am_of(ctx);
    *req = (am_req_t){.is_done = true, .head = {(uint32_t)ctx->rank, am->peer[to].sent++}};
    req->request = ucp_am_send_nbx(am->ucx.ep[to], AM_ID, &req->head, sizeof req->head, buf, size_bytes, &hk_ucx_plain);
}

static hk_status_t am_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    am_req_t req;
    am_start_send(ctx, peer, buf, size_bytes, &req);
    return hk_ucx_finish(ctx, "ucp_am_send_nbx", req.request);
}

static hk_status_t am_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    am_req_t req = {.buf = buf, .size_bytes = size_bytes};
    HK_TRY(am_start_receive(ctx, peer, &req));
    return am_finish(ctx, &req);
}

static hk_status_t am_probe(hk_ctx_t *ctx, int from, bool *is_there_p)
{
    const am_peer_t *peer = &am_of(ctx)->peer[from];
    hk_ucx_progress(ctx);
    const am_entry_t *entry = &peer->ring[peer->posted & (peer->entries - 1)];
    *is_there_p = entry->number == peer->posted && (entry->stage == AM_ARRIVED || entry->stage == AM_FETCHABLE);
    return HK_OK;
}

static hk_status_t am_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    am_start_send(ctx, peer, buf, size_bytes, (am_req_t *)(void *)req->room);
    return HK_OK;
}

static hk_status_t am_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    am_req_t *mine = (am_req_t *)(void *)req->room;
    *mine = (am_req_t){.buf = buf, .size_bytes = size_bytes};
    return am_start_receive(ctx, peer, mine);
}

static hk_status_t am_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        HK_TRY(am_finish(ctx, (am_req_t *)(void *)reqs[i].room));
    }
    return HK_OK;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void am_drop(hk_ctx_t *ctx)
{
    am_ctx_t *am = am_of(ctx);
    hk_ucx_drop(ctx); /* first: messages may come until then */
    for (int peer = 0; am->peer != NULL && peer < ctx->size; peer++) {
        for (uint32_t i = 0; am->peer[peer].ring != NULL && i < am->peer[peer].entries; i++) {
            free(am->peer[peer].ring[i].copy);
        }
        free(am->peer[peer].ring);
    }
    free(am->peer);
}

/* Before ranks know each other's addresses, so that no message comes too early. */
static hk_status_t am_make(hk_ctx_t *ctx, const hk_job_t *job)
{
    am_ctx_t *am = am_of(ctx);
    HK_TRY(hk_ucx_make(ctx, job));
    bool has_room = (am->peer = calloc((size_t)ctx->size, sizeof *am->peer)) != NULL;
    for (int peer = 0; has_room && peer < ctx->size; peer++) {
        am->peer[peer].entries = AM_RING_ENTRIES;
        am->peer[peer].ring = calloc(AM_RING_ENTRIES, sizeof(am_entry_t));
        has_room = am->peer[peer].ring != NULL;
    }
    if (!has_room) {
        return hk_fail(HK_ERR_MEMORY, ctx->rank, "ucx:am: no memory for messages of %d ranks", ctx->size);
    }
    const ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = am_arrive,
        .arg = am,
    };
    const ucs_status_t status = ucp_worker_set_am_recv_handler(am->ucx.worker, &param);
    return status == UCS_OK ? HK_OK : hk_ucx_failed(ctx->rank, "ucp_worker_set_am_recv_handler", status);
}

static const hk_layer_kind_t am_kind = {HK_UCX_KIND, .ctx_bytes = sizeof(am_ctx_t), .features = UCP_FEATURE_AM,
                                        .make = am_make, .drop = am_drop};

const hk_transport_t hk_transport_ucx_am = {
    HK_UCX_SHARED,           .caps = HK_UCX_CAPS,
    .name = "ucx:am",        .summary = "active messages (ucp_am_send_nbx)",
    .own = &am_kind,         .alloc = hk_private_alloc,
    .free = hk_private_free, .send = am_send,
    .recv = am_recv,         .probe = am_probe,
    .isend = am_isend,       .irecv = am_irecv,
    .wait_all = am_wait_all,
};
