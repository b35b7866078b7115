/* mpi:persistent: each message is a persistent request (MPI_Send_init, MPI_Recv_init), started again for each
 * repetition.
 *
 * Requests are kept by peer, direction, buffer and size. The warm-up creates them at first use, as HK_CAP_KEEPS
 * requires; a counter shows later ones. There are as many requests of one kind as are ever under way at once. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_hooks.h"

/* Memory grows by chunks. With CHUNKS_KEPT or more, idle requests are freed first. */
enum { CHUNK = 1 << 10, CHUNKS_KEPT = 16, BUCKETS = 1 << 12, BUCKET_BITS = 12 };

typedef struct kept {
    MPI_Request request;
    struct kept *next; /* in the bucket of idle ones, or among the unused */
    const void *buf;
    int len;
    int way; /* peer and direction: 2 * peer to send, 2 * peer + 1 to receive */
} kept_t;

typedef struct chunk {
    struct chunk *next;
    kept_t kept[CHUNK];
} chunk_t;

typedef struct persistent_ctx {
    hk_mpi_t mpi;
    kept_t *unused;
    kept_t *idle[BUCKETS];
    chunk_t *chunks;
    size_t chunks_count;
    uint64_t made; /* requests created so far */
} persistent_ctx_t;

/* The content of an hk_req_t. */
typedef struct started {
    kept_t *kept;
} started_t;

_Static_assert(sizeof(started_t) <= sizeof(hk_req_t), "mpi:persistent: a request does not fit hk_req_t");

static persistent_ctx_t *persistent_of(hk_ctx_t *ctx)
{
    return (persistent_ctx_t *)ctx;
}

static inline kept_t **bucket_of(persistent_ctx_t *ctx, const void *buf, int len, int way)
{
    const uint64_t key = (uint64_t)(uintptr_t)buf ^ (uint64_t)(unsigned)len << 40 ^ (uint64_t)(unsigned)way << 20;
    return &ctx->idle[key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BUCKET_BITS)];
}

static void give_unused(persistent_ctx_t *ctx, kept_t *one)
{
    one->next = ctx->unused;
    ctx->unused = one;
}

/* Free requests that are not under way. */
static void forget_idle(persistent_ctx_t *ctx)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (ctx->idle[i] != NULL) {
            kept_t *one = ctx->idle[i];
            ctx->idle[i] = one->next;
            MPI_Request_free(&one->request);
            give_unused(ctx, one);
        }
    }
}

static hk_status_t persistent_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_mpi_create(tp, job, sizeof(persistent_ctx_t), ctx_p);
}

static void persistent_close(hk_ctx_t *base)
{
    persistent_ctx_t *ctx = persistent_of(base);
    forget_idle(ctx);
    while (ctx->chunks != NULL) {
        chunk_t *chunk = ctx->chunks;
        ctx->chunks = chunk->next;
        free(chunk);
    }
    hk_mpi_close(base);
}

static bool persistent_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    if (i > 0) {
        return hk_mpi_counter(ctx, i - 1, counter_p);
    }
    *counter_p = (hk_counter_t){"requests_made", (double)((const persistent_ctx_t *)ctx)->made};
    return true;
}

/* A request must not outlive its buffer. */
static void persistent_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    forget_idle(persistent_of(ctx));
    hk_private_free(ctx, memory, size_bytes);
}

static void add_chunk(persistent_ctx_t *ctx)
{
    chunk_t *chunk = malloc(sizeof *chunk);
    if (chunk == NULL) {
        return;
    }
    for (size_t i = CHUNK; i > 0; i--) {
        give_unused(ctx, &chunk->kept[i - 1]);
    }
    chunk->next = ctx->chunks;
    ctx->chunks = chunk;
    ctx->chunks_count++;
}

__attribute__((cold, noinline)) static kept_t *make(hk_ctx_t *base, const void *buf, int len, int way)
{
    persistent_ctx_t *ctx = persistent_of(base);
    if (ctx->unused == NULL && ctx->chunks_count >= CHUNKS_KEPT) {
        forget_idle(ctx);
    }
    if (ctx->unused == NULL) {
        add_chunk(ctx);
    }
    kept_t *one = ctx->unused;
    if (one == NULL) {
        hk_log(base->rank, "mpi:persistent: no memory for more than %zu requests", ctx->chunks_count * CHUNK);
        return NULL;
    }
    void *writable = (void *)(uintptr_t)buf; /* a receive's buffer was passed without const */
    const int code = way % 2 == 0
                         ? MPI_Send_init(buf, len, MPI_BYTE, way / 2, HK_MPI_TAG, ctx->mpi.comm, &one->request)
                         : MPI_Recv_init(writable, len, MPI_BYTE, way / 2, HK_MPI_TAG, ctx->mpi.comm, &one->request);
    if (code != MPI_SUCCESS) {
        hk_mpi_failed(base->rank, "MPI_Send_init or MPI_Recv_init", code);
        return NULL;
    }
    ctx->unused = one->next;
    ctx->made++;
    one->buf = buf;
    one->len = len;
    one->way = way;
    return one;
}

/* Take an idle request of this kind out of its bucket, or create one; NULL: not possible. */
static inline kept_t *take(hk_ctx_t *ctx, const void *buf, size_t size_bytes, int way)
{
    const int len = (int)size_bytes;
    for (kept_t **link = bucket_of(persistent_of(ctx), buf, len, way); *link != NULL; link = &(*link)->next) {
        kept_t *one = *link;
        if (one->buf == buf && one->len == len && one->way == way) {
            *link = one->next;
            return one;
        }
    }
    return make(ctx, buf, len, way);
}

static inline void put_back(hk_ctx_t *ctx, kept_t *one)
{
    kept_t **bucket = bucket_of(persistent_of(ctx), one->buf, one->len, one->way);
    one->next = *bucket;
    *bucket = one;
}

static inline hk_status_t start(hk_ctx_t *ctx, kept_t *one)
{
    if (one == NULL) {
        return HK_ERR_MEMORY;
    }
    return HK_MPI_CALL(ctx, MPI_Start, &one->request);
}

static inline hk_status_t carry_out(hk_ctx_t *ctx, kept_t *one)
{
    HK_TRY(start(ctx, one));
    const int code = MPI_Wait(&one->request, MPI_STATUS_IGNORE);
    put_back(ctx, one);
    return HK_MPI_CHECKED(ctx, "MPI_Wait", code);
}

static hk_status_t persistent_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return carry_out(ctx, take(ctx, buf, size_bytes, 2 * peer));
}

static hk_status_t persistent_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    return carry_out(ctx, take(ctx, buf, size_bytes, 2 * peer + 1));
}

static hk_status_t persistent_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    started_t *mine = (started_t *)(void *)req->room;
    mine->kept = take(ctx, buf, size_bytes, 2 * peer);
    return start(ctx, mine->kept);
}

static hk_status_t persistent_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    started_t *mine = (started_t *)(void *)req->room;
    mine->kept = take(ctx, buf, size_bytes, 2 * peer + 1);
    return start(ctx, mine->kept);
}

/* Copies the handles to the front of the caller's array, as in hk_mpi_wait_all. A persistent handle does not change
 * when its operation ends. */
static hk_status_t persistent_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    MPI_Request *packed = (MPI_Request *)(void *)reqs;
    for (size_t i = 0; i < count; i++) {
        started_t one;
        memcpy(&one, reqs[i].room, sizeof one);
        packed[i] = one.kept->request;
        put_back(ctx, one.kept);
    }
    return HK_MPI_CALL(ctx, MPI_Waitall, (int)count, packed, MPI_STATUSES_IGNORE);
}

const hk_transport_t hk_transport_mpi_persistent = {
    HK_MPI_SHARED,
    .caps = HK_MPI_CAPS | HK_CAP_KEEPS,
    .name = "mpi:persistent",
    .summary = "persistent requests (MPI_Send_init, MPI_Start), kept for each peer, buffer and length",
    .max_bytes = INT_MAX,
    .open = persistent_open,
    .close = persistent_close,
    .counter = persistent_counter,
    .alloc = hk_private_alloc,
    .free = persistent_free,
    .send = persistent_send,
    .recv = persistent_recv,
    .isend = persistent_isend,
    .irecv = persistent_irecv,
    .wait_all = persistent_wait_all,
    .barrier = hk_mpi_barrier,
};
