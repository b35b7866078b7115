/* mpi:threads: a launch that asks for MPI_THREAD_MULTIPLE. A rank that calls from one thread does as over mpi, so that
 * the two show what the level costs. Each thread of a pattern has its own context: on a separate communicator, on the
 * job's with a separate tag, or with one tag for all. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_hooks.h"

enum { THREAD_TAG = 16 }; /* of thread 0; ranks themselves use HK_MPI_TAG */

typedef struct thread_ctx {
    hk_mpi_t mpi;
    int tag;
    bool owns_comm;
} thread_ctx_t;

static inline int thread_tag(const hk_ctx_t *ctx)
{
    return ((const thread_ctx_t *)ctx)->tag;
}

static hk_status_t thread_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Send, buf, (int)size_bytes, MPI_BYTE, peer, thread_tag(ctx), hk_mpi_comm(ctx));
}

static hk_status_t thread_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Isend, buf, (int)size_bytes, MPI_BYTE, peer, thread_tag(ctx), hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

/* For each way to match: the hooks recv and irecv. */
#define THREAD_RECEIVES(name, source, tag)                                                                             \
    static hk_status_t thread_recv_##name(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)                       \
    {                                                                                                                  \
        (void)peer;                                                                                                    \
        return HK_MPI_CALL(ctx, MPI_Recv, buf, (int)size_bytes, MPI_BYTE, source, tag, hk_mpi_comm(ctx),               \
                           MPI_STATUS_IGNORE);                                                                         \
    }                                                                                                                  \
    static hk_status_t thread_irecv_##name(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)       \
    {                                                                                                                  \
        (void)peer;                                                                                                    \
        return HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, source, tag, hk_mpi_comm(ctx),              \
                           hk_mpi_request(req));                                                                       \
    }
THREAD_RECEIVES(all, peer, thread_tag(ctx))
THREAD_RECEIVES(any_source, MPI_ANY_SOURCE, thread_tag(ctx))
THREAD_RECEIVES(any_tag, peer, MPI_ANY_TAG)
THREAD_RECEIVES(any, MPI_ANY_SOURCE, MPI_ANY_TAG)

/* Those of the job's own context, but for messages and threads of threads. */
#define THREAD_TABLE(suffix)                                                                                           \
    {                                                                                                                  \
        HK_MPI_SHARED,                                                                                                 \
        .parts = HK_MPI_PARTS_TABLE,                                                                                   \
        .caps = (HK_MPI_CAPS & ~HK_CAP_PROBE) | HK_MPI_CAP_PARTS,                                                      \
        .name = "mpi:threads",                                                                                         \
        .max_bytes = INT_MAX,                                                                                          \
        .send = thread_send,                                                                                           \
        .isend = thread_isend,                                                                                         \
        .recv = thread_recv_##suffix,                                                                                  \
        .irecv = thread_irecv_##suffix,                                                                                \
        .wait_all = hk_mpi_wait_all,                                                                                   \
        .barrier = hk_mpi_barrier,                                                                                     \
        .counter = hk_mpi_counter,                                                                                     \
    }
static const hk_transport_t thread_tables[HK_MATCHES] = {[HK_MATCH_ALL] = THREAD_TABLE(all),
                                                         [HK_MATCH_ANY_SOURCE] = THREAD_TABLE(any_source),
                                                         [HK_MATCH_ANY_TAG] = THREAD_TABLE(any_tag),
                                                         [HK_MATCH_ANY] = THREAD_TABLE(any)};

/* Intel MPI gives threads separate resources if it knows the thread of each communicator; IMB-MT names it, too. */
static void thread_name_comm(MPI_Comm comm, int number)
{
    MPI_Info info;
    char text[16];
    if (MPI_Info_create(&info) == MPI_SUCCESS) {
        (void)snprintf(text, sizeof text, "%d", number);
        MPI_Info_set(info, "thread_id", text);
        MPI_Comm_set_info(comm, info);
        MPI_Info_free(&info);
    }
}

static hk_status_t threads_open_thread(hk_ctx_t *base, int number, hk_apart_t apart, hk_match_t match,
                                       hk_ctx_t **thread_p)
{
    thread_ctx_t *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        hk_log(base->rank, "mpi:threads: no memory for a thread's context");
    }
    const hk_status_t status = hk_mpi_agree(base, thread != NULL && thread_p != NULL ? HK_OK : HK_ERR_MEMORY);
    if (status != HK_OK || thread == NULL || thread_p == NULL) {
        free(thread);
        return status;
    }
    thread->mpi.base = *base;
    thread->mpi.base.tp = &thread_tables[match];
    thread->mpi.comm = hk_mpi_comm(base);
    thread->tag = THREAD_TAG + (apart == HK_APART_TAG ? number : 0);
    if (apart == HK_APART_COMM) {
        const int code = MPI_Comm_dup(hk_mpi_comm(base), &thread->mpi.comm);
        if (code != MPI_SUCCESS) {
            free(thread);
            return hk_mpi_failed(base->rank, "MPI_Comm_dup", code);
        }
        MPI_Comm_set_errhandler(thread->mpi.comm, MPI_ERRORS_RETURN);
        thread_name_comm(thread->mpi.comm, number);
        thread->owns_comm = true;
    }
    *thread_p = &thread->mpi.base;
    return HK_OK;
}

static void threads_close_thread(hk_ctx_t *base)
{
    thread_ctx_t *thread = (thread_ctx_t *)base;
    if (thread->owns_comm) {
        MPI_Comm_free(&thread->mpi.comm);
    }
    free(thread);
}

const hk_transport_t hk_transport_mpi_threads = {
    HK_MPI_PLAIN,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .parts = HK_MPI_PARTS_TABLE,
    .caps = HK_MPI_CAPS | HK_MPI_CAP_PARTS | HK_CAP_MULTIPLE,
    .name = "mpi:threads",
    .summary = "mpi with MPI_THREAD_MULTIPLE, for patterns with threads; other patterns show its cost",
    .open_thread = threads_open_thread,
    .close_thread = threads_close_thread,
};
