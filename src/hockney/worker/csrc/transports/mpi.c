/* MPI: one worker executable for each library, started by the mpiexec of that library.
 *
 * The timed hooks are the plain calls of any MPI program, on a separate communicator. They contain nothing else,
 * because the worker must stay within 2 % of a bare ping-pong. */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi_hooks.h"

enum { TAG = HK_MPI_TAG };

_Static_assert(sizeof(MPI_Request) <= sizeof(hk_req_t), "mpi: a request does not fit hk_req_t");

/* Out of line and cold, so that the hooks stay a compare and a jump. */
__attribute__((cold, noinline)) hk_status_t hk_mpi_failed(int rank, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "no text";
    int len = 0;
    int class = MPI_ERR_OTHER;
    MPI_Error_string(code, text, &len);
    MPI_Error_class(code, &class);
    hk_log(rank, "%s failed: %s", call, text);
    switch (class) {
    case MPI_ERR_NO_MEM:
        return HK_ERR_MEMORY;
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_RANK:
    case MPI_ERR_TAG:
        return HK_ERR_ARGUMENT;
    default:
#if defined(MPIX_ERR_PROC_FAILED)
        return class == MPIX_ERR_PROC_FAILED ? HK_ERR_PEER : HK_ERR_SYSTEM;
#else
        return HK_ERR_SYSTEM;
#endif
    }
}

hk_status_t hk_mpi_agree(hk_ctx_t *ctx, hk_status_t mine)
{
    const int my = (int)mine;
    int worst = my;
    const hk_status_t met = HK_MPI_CALL(ctx, MPI_Allreduce, &my, &worst, 1, MPI_INT, MPI_MAX, hk_mpi_comm(ctx));
    return met == HK_OK ? (hk_status_t)worst : met;
}

/* ---- the timed hooks -------------------------------------------------------------------------------------------- */

hk_status_t hk_mpi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Send, buf, (int)size_bytes, MPI_BYTE, peer, TAG, hk_mpi_comm(ctx));
}

hk_status_t hk_mpi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Recv, buf, (int)size_bytes, MPI_BYTE, peer, TAG, hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

hk_status_t hk_mpi_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    int is_there = 0;
    const int code = MPI_Iprobe(peer, TAG, hk_mpi_comm(ctx), &is_there, MPI_STATUS_IGNORE);
    *is_there_p = is_there != 0;
    return HK_MPI_CHECKED(ctx, "MPI_Iprobe", code);
}

hk_status_t hk_mpi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Isend, buf, (int)size_bytes, MPI_BYTE, peer, TAG, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

hk_status_t hk_mpi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, peer, TAG, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

/* MPI_Waitall needs an array of requests. They are packed at the front of the caller's array. Packed request i never
 * lies after slot i, so packing overwrites no unread request. */
hk_status_t hk_mpi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    MPI_Request *packed = (MPI_Request *)(void *)reqs;
    for (size_t i = 1; i < count; i++) {
        memcpy(&packed[i], reqs[i].room, sizeof(MPI_Request));
    }
    return HK_MPI_CALL(ctx, MPI_Waitall, (int)count, packed, MPI_STATUSES_IGNORE);
}

hk_status_t hk_mpi_barrier(hk_ctx_t *ctx)
{
    return HK_MPI_CALL(ctx, MPI_Barrier, hk_mpi_comm(ctx));
}

/* ---- open and close --------------------------------------------------------------------------------------------- */

hk_status_t hk_mpi_create(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, hk_ctx_t **ctx_p)
{
    hk_mpi_t *ctx = calloc(1, ctx_bytes);
    if (ctx == NULL) {
        return hk_fail(HK_ERR_MEMORY, job->rank, "%s: no memory for a context", tp->name);
    }
    ctx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &ctx->comm);
    if (code != MPI_SUCCESS) {
        free(ctx);
        return hk_mpi_failed(job->rank, "MPI_Comm_dup", code);
    }
    MPI_Comm_set_errhandler(ctx->comm, MPI_ERRORS_RETURN);
    if (job->rank == 0) { /* rank 0 answers for all ranks */
        hk_mpi_name(ctx->library, sizeof ctx->library);
    }
    *ctx_p = &ctx->base;
    return HK_OK;
}

hk_status_t hk_mpi_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_mpi_create(tp, job, sizeof(hk_mpi_t), ctx_p);
}

void hk_mpi_close(hk_ctx_t *base)
{
    hk_mpi_t *ctx = (hk_mpi_t *)base;
    MPI_Comm_free(&ctx->comm);
    free(ctx);
}

const char *hk_mpi_library(const hk_ctx_t *ctx)
{
    return ((const hk_mpi_t *)ctx)->library;
}

/* ---- how a library waits ---------------------------------------------------------------------------------------- */

/* A library's calls of sched_yield lead here: the loader prefers the program's own function to the C library's. CPU
 * times do not show them: Linux divides user from system time by ticks, in proportion over a thread's whole life. */
#ifdef SYS_sched_yield
static atomic_ullong yields;

int sched_yield(void)
{
    atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
    return (int)syscall(SYS_sched_yield);
}

bool hk_mpi_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    (void)ctx;
    *counter_p = (hk_counter_t){"yields", (double)atomic_load_explicit(&yields, memory_order_relaxed)};
    return i == 0;
}
#else
bool hk_mpi_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    (void)ctx;
    (void)i;
    (void)counter_p;
    return false;
}
#endif
