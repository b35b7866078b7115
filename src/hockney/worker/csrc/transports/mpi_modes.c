/* MPI's send modes as transports: synchronous, ready and buffered. Other hooks are those of mpi.c. */
#include <mpi.h>
#include <string.h>

#include "mpi_hooks.h"

/* ---- synchronous: a send returns once its receive has begun ------------------------------------------------------ */

static hk_status_t sync_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Ssend, buf, (int)size_bytes, MPI_BYTE, peer, HK_MPI_TAG, hk_mpi_comm(ctx));
}

static hk_status_t sync_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Issend, buf, (int)size_bytes, MPI_BYTE, peer, HK_MPI_TAG, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

const hk_transport_t hk_transport_mpi_sync = {
    HK_MPI_PLAIN,
    HK_MPI_PLAIN_RECEIVES,
    .caps = HK_MPI_CAPS | HK_CAP_SYNCHRONOUS,
    .name = "mpi:sync",
    .summary = "synchronous sends (MPI_Ssend): each returns once its receive has begun",
    .send = sync_send,
    .isend = sync_isend,
};

/* ---- ready: a send may start only after its receive is posted ---------------------------------------------------- */

/* The receiver posts its receive and then sends a go-ahead, a message of 0 bytes, which the sender receives before
 * MPI_Rsend.
 *
 * The n-th message between two ranks has the n-th tag. The k-th go-ahead belongs to the k-th message. So a send that
 * gets its go-ahead before an older send starts still matches its receive. */
enum { TAG_GO = 2, TAG_FIRST = 16, TAGS = 1 << 14 }; /* MPI guarantees tags up to 32767 */

typedef struct ready_req {
    MPI_Request data;
    MPI_Request go;
    struct ready_req *next; /* in the list of sends that wait for a go-ahead */
    const void *buf;
    int len, peer, tag;
    char nothing; /* buffer of a message of 0 bytes */
} ready_req_t;

typedef struct ready_ctx {
    hk_mpi_t mpi;
    ready_req_t *deferred; /* started sends without a go-ahead, oldest first */
    unsigned started[];    /* [size] sends to each rank, then [size] receives from each */
} ready_ctx_t;

_Static_assert(sizeof(ready_req_t) <= sizeof(hk_req_t), "mpi:ready: a request does not fit hk_req_t");

static int next_send_tag(hk_ctx_t *ctx, int peer)
{
    return TAG_FIRST + (int)(((ready_ctx_t *)ctx)->started[peer]++ % TAGS);
}

static int next_recv_tag(hk_ctx_t *ctx, int peer)
{
    return TAG_FIRST + (int)(((ready_ctx_t *)ctx)->started[ctx->size + peer]++ % TAGS);
}

static hk_status_t ready_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    const size_t counts = 2 * (size_t)job->size;
    return hk_mpi_create(tp, job, sizeof(ready_ctx_t) + counts * sizeof(unsigned), ctx_p);
}

/* Start each deferred send whose go-ahead has arrived. */
static hk_status_t start_ready(hk_ctx_t *ctx)
{
    ready_req_t **link = &((ready_ctx_t *)ctx)->deferred;
    while (*link != NULL) {
        ready_req_t *one = *link;
        int has_come = 0;
        HK_TRY(HK_MPI_CALL(ctx, MPI_Test, &one->go, &has_come, MPI_STATUS_IGNORE));
        if (has_come) {
            HK_TRY(HK_MPI_CALL(ctx, MPI_Irsend, one->buf, one->len, MPI_BYTE, one->peer, one->tag, hk_mpi_comm(ctx),
                               &one->data));
            *link = one->next;
        } else {
            link = &one->next;
        }
    }
    return HK_OK;
}

/* Wait for one request. Meanwhile start deferred sends, because their receivers may have to act first. */
static hk_status_t ready_wait(hk_ctx_t *ctx, MPI_Request *request)
{
    int is_done = 0;
    while (!is_done && ((ready_ctx_t *)ctx)->deferred != NULL) {
        HK_TRY(start_ready(ctx));
        HK_TRY(HK_MPI_CALL(ctx, MPI_Test, request, &is_done, MPI_STATUS_IGNORE));
    }
    return is_done ? HK_OK : HK_MPI_CALL(ctx, MPI_Wait, request, MPI_STATUS_IGNORE);
}

static hk_status_t ready_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    char nothing = 0;
    MPI_Request go;
    const int tag = next_send_tag(ctx, peer);
    HK_TRY(HK_MPI_CALL(ctx, MPI_Irecv, &nothing, 0, MPI_BYTE, peer, TAG_GO, hk_mpi_comm(ctx), &go));
    HK_TRY(ready_wait(ctx, &go));
    return HK_MPI_CALL(ctx, MPI_Rsend, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx));
}

static hk_status_t ready_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const char nothing = 0;
    MPI_Request request;
    HK_TRY(HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, peer, next_recv_tag(ctx, peer), hk_mpi_comm(ctx),
                       &request));
    HK_TRY(HK_MPI_CALL(ctx, MPI_Send, &nothing, 0, MPI_BYTE, peer, TAG_GO, hk_mpi_comm(ctx)));
    return ready_wait(ctx, &request);
}

/* The next call that waits starts the send, once the go-ahead is there. */
static hk_status_t ready_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    ready_req_t *mine = (ready_req_t *)(void *)req->room;
    ready_req_t **link = &((ready_ctx_t *)ctx)->deferred;
    mine->data = MPI_REQUEST_NULL;
    mine->next = NULL;
    mine->buf = buf;
    mine->len = (int)size_bytes;
    mine->peer = peer;
    mine->tag = next_send_tag(ctx, peer);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = mine;
    return HK_MPI_CALL(ctx, MPI_Irecv, &mine->nothing, 0, MPI_BYTE, peer, TAG_GO, hk_mpi_comm(ctx), &mine->go);
}

static hk_status_t ready_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    ready_req_t *mine = (ready_req_t *)(void *)req->room;
    mine->nothing = 0;
    HK_TRY(HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, peer, next_recv_tag(ctx, peer), hk_mpi_comm(ctx),
                       &mine->data));
    return HK_MPI_CALL(ctx, MPI_Isend, &mine->nothing, 0, MPI_BYTE, peer, TAG_GO, hk_mpi_comm(ctx), &mine->go);
}

/* Packed as in hk_mpi_wait_all. Each slot holds two requests, and their packed places never lie after it. */
static hk_status_t ready_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    MPI_Request *packed = (MPI_Request *)(void *)reqs;
    while (((ready_ctx_t *)ctx)->deferred != NULL) {
        HK_TRY(start_ready(ctx));
    }
    for (size_t i = 0; i < count; i++) {
        ready_req_t one;
        memcpy(&one, reqs[i].room, sizeof one);
        packed[2 * i] = one.data;
        packed[2 * i + 1] = one.go;
    }
    return HK_MPI_CALL(ctx, MPI_Waitall, 2 * (int)count, packed, MPI_STATUSES_IGNORE);
}

const hk_transport_t hk_transport_mpi_ready = {
    HK_MPI_SHARED,
    HK_MPI_PLAIN_MEMORY,
    /* a probe would wait for a message that is only sent after its receive is posted */
    .caps = (HK_MPI_CAPS & ~HK_CAP_PROBE) | HK_CAP_SYNCHRONOUS,
    .name = "mpi:ready",
    .summary = "ready sends (MPI_Rsend), each after the receiver's go-ahead, a message of 0 bytes",
    .max_bytes = INT_MAX,
    .open = ready_open,
    .close = hk_mpi_close,
    .send = ready_send,
    .recv = ready_recv,
    .isend = ready_isend,
    .irecv = ready_irecv,
    .wait_all = ready_wait_all,
    .barrier = hk_mpi_barrier,
    .counter = hk_mpi_counter,
};

/* ---- buffered: a send copies its message into an attached buffer ------------------------------------------------ */

enum {
    BUFFERED_MAX_BYTES = 16 << 20,
    BUFFER_BYTES = 2 * BUFFERED_MAX_BYTES + (1 << 20),
    GRAIN_BYTES = 64,
};

typedef struct buffered_ctx {
    hk_mpi_t mpi;
    void *buffer;
    size_t used_bytes; /* by all messages since the buffer was last known to be empty */
} buffered_ctx_t;

static hk_status_t buffered_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    hk_ctx_t *base;
    HK_TRY(hk_mpi_create(tp, job, sizeof(buffered_ctx_t), &base));
    buffered_ctx_t *ctx = (buffered_ctx_t *)base;
    ctx->buffer = hk_private_alloc(base, BUFFER_BYTES);
    if (ctx->buffer == NULL) {
        hk_mpi_close(base);
        return HK_ERR_MEMORY;
    }
    memset(ctx->buffer, 0, BUFFER_BYTES); /* touches the pages: a first touch costs more than the copy, and libraries
                                             use the whole buffer */
    const int code = MPI_Buffer_attach(ctx->buffer, BUFFER_BYTES);
    if (code != MPI_SUCCESS) {
        hk_private_free(base, ctx->buffer, BUFFER_BYTES);
        hk_mpi_close(base);
        return hk_mpi_failed(job->rank, "MPI_Buffer_attach", code);
    }
    *ctx_p = base;
    return HK_OK;
}

static void buffered_close(hk_ctx_t *base)
{
    buffered_ctx_t *ctx = (buffered_ctx_t *)base;
    void *buffer = NULL;
    int size_bytes = 0;
    MPI_Buffer_detach(&buffer, &size_bytes);
    hk_private_free(base, ctx->buffer, BUFFER_BYTES);
    hk_mpi_close(base);
}

/* Detaching waits until all messages in the buffer are delivered. */
__attribute__((cold, noinline)) static hk_status_t drain(hk_ctx_t *base)
{
    buffered_ctx_t *ctx = (buffered_ctx_t *)base;
    void *buffer = NULL;
    int size_bytes = 0;
    ctx->used_bytes = 0;
    HK_TRY(HK_MPI_CALL(base, MPI_Buffer_detach, &buffer, &size_bytes));
    return HK_MPI_CALL(base, MPI_Buffer_attach, ctx->buffer, BUFFER_BYTES);
}

/* Make room for one more message. A library may lose a message that exceeds its buffer (Open MPI 4.1 has already
 * counted it then) and does not report the free space. So this counts the bytes. When the buffer might be full, it
 * waits until the buffer is empty and starts again. */
static inline hk_status_t make_room(hk_ctx_t *base, size_t size_bytes)
{
    buffered_ctx_t *ctx = (buffered_ctx_t *)base;
    const size_t need_bytes = (size_bytes + MPI_BSEND_OVERHEAD + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    if (__builtin_expect(ctx->used_bytes + need_bytes > BUFFER_BYTES, 0)) {
        HK_TRY(drain(base));
    }
    ctx->used_bytes += need_bytes;
    return HK_OK;
}

static hk_status_t buffered_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    HK_TRY(make_room(ctx, size_bytes));
    return HK_MPI_CALL(ctx, MPI_Bsend, buf, (int)size_bytes, MPI_BYTE, peer, HK_MPI_TAG, hk_mpi_comm(ctx));
}

static hk_status_t buffered_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    HK_TRY(make_room(ctx, size_bytes));
    return HK_MPI_CALL(ctx, MPI_Ibsend, buf, (int)size_bytes, MPI_BYTE, peer, HK_MPI_TAG, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

const hk_transport_t hk_transport_mpi_buffered = {
    HK_MPI_SHARED,
    HK_MPI_PLAIN_MEMORY,
    HK_MPI_PLAIN_RECEIVES,
    .caps = HK_MPI_CAPS,
    .name = "mpi:buffered",
    .summary = "buffered sends (MPI_Bsend) through an attached buffer of 33 MiB",
    .max_bytes = BUFFERED_MAX_BYTES,
    .open = buffered_open,
    .close = buffered_close,
    .send = buffered_send,
    .isend = buffered_isend,
    .barrier = hk_mpi_barrier,
    .counter = hk_mpi_counter,
};
