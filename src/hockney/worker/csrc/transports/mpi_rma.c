/* mpi:rma: one-sided MPI in passive target mode. Each allocation is a separate window, locked for all ranks until it
 * is freed. put is MPI_Put, get is MPI_Get, and quiet is MPI_Win_flush_all. Two-sided messages are those of mpi. */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi_hooks.h"

enum {
    WINDOWS_MAX = 16,
    POLLS = 16, /* of a word between two calls that let the library make progress */
};

typedef struct window {
    MPI_Win win;
    unsigned char *memory; /* this rank's, page-aligned */
    size_t room_bytes;     /* from there, more than was asked for: a put of nothing lies within, too */
    MPI_Aint *begins;      /* [size] start of the memory in each rank's part of the window */
    bool is_dirty;         /* puts may be under way */
} window_t;

typedef struct rma_ctx {
    hk_mpi_t mpi;
    bool gives_way; /* oversubscribed */
    size_t windows_count;
    window_t window[WINDOWS_MAX];
} rma_ctx_t;

static rma_ctx_t *rma_of(hk_ctx_t *ctx)
{
    return (rma_ctx_t *)ctx;
}

static hk_status_t rma_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    HK_TRY(hk_mpi_create(tp, job, sizeof(rma_ctx_t), ctx_p));
    rma_of(*ctx_p)->gives_way = job->oversubscribed != 0;
    return HK_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Prepare a new window: check that loads see puts without further calls, set the error handler, lock, and exchange
 * the addresses. */
static int set_up(hk_ctx_t *ctx, window_t *made)
{
    int *model = NULL;
    int has_model = 0;
    const MPI_Aint mine = made->begins[ctx->rank];
    MPI_Win_set_errhandler(made->win, MPI_ERRORS_RETURN);
    MPI_Win_get_attr(made->win, MPI_WIN_MODEL, (void *)&model, &has_model);
    if (!has_model || *model != MPI_WIN_UNIFIED) {
        hk_log(ctx->rank, "mpi:rma: this library's windows have separate copies, so a rank cannot wait for a word");
        return MPI_ERR_OTHER;
    }
    const int code = MPI_Allgather(&mine, 1, MPI_AINT, made->begins, 1, MPI_AINT, hk_mpi_comm(ctx));
    return code == MPI_SUCCESS ? MPI_Win_lock_all(MPI_MODE_NOCHECK, made->win) : code;
}

static void *rma_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    rma_ctx_t *rma = rma_of(ctx);
    const long page = sysconf(_SC_PAGESIZE);
    const size_t page_bytes = page > 0 ? (size_t)page : 4096;
    void *base = NULL;
    window_t made = {.begins = calloc((size_t)ctx->size, sizeof(MPI_Aint))};
    if (rma->windows_count == WINDOWS_MAX || made.begins == NULL) {
        hk_log(ctx->rank, "mpi:rma: no room for more than %zu windows", rma->windows_count);
        free(made.begins);
        return NULL;
    }
    /* MPICH 4.0.2 uses a wrong address in windows whose size is not a multiple of 16. */
    made.room_bytes = (size_bytes / page_bytes + 1) * page_bytes;
    const size_t whole = made.room_bytes + page_bytes;
    int code = MPI_Win_allocate((MPI_Aint)whole, 1, MPI_INFO_NULL, hk_mpi_comm(ctx), (void *)&base, &made.win);
    if (code != MPI_SUCCESS) {
        hk_mpi_failed(ctx->rank, "MPI_Win_allocate", code);
        free(made.begins);
        return NULL;
    }
    const size_t past_page = (uintptr_t)base % page_bytes;
    made.begins[ctx->rank] = past_page == 0 ? 0 : (MPI_Aint)(page_bytes - past_page);
    made.memory = (unsigned char *)base + made.begins[ctx->rank];
    code = set_up(ctx, &made);
    if (code != MPI_SUCCESS) {
        hk_mpi_failed(ctx->rank, "setting up a window", code);
        MPI_Win_free(&made.win);
        free(made.begins);
        return NULL;
    }
    rma->window[rma->windows_count++] = made;
    return made.memory;
}

static void rma_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    rma_ctx_t *rma = rma_of(ctx);
    window_t *last = &rma->window[--rma->windows_count];
    (void)memory;
    (void)size_bytes;
    MPI_Win_unlock_all(last->win);
    MPI_Win_free(&last->win);
    free(last->begins);
}

/* The window that contains an address; there are two or three. */
static inline window_t *window_at(hk_ctx_t *ctx, const void *address)
{
    window_t *window = rma_of(ctx)->window;
    while ((uintptr_t)address - (uintptr_t)window->memory >= window->room_bytes) {
        window++;
    }
    return window;
}

static inline MPI_Aint place_in(const window_t *window, int peer, const void *address)
{
    return window->begins[peer] + ((const unsigned char *)address - window->memory);
}

/* ---- the timed hooks --------------------------------------------------------------------------------------------- */

/* Flushes locally: `local` may be used again on return, as with puts of other libraries. */
static hk_status_t rma_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    window_t *window = window_at(ctx, remote);
    const int len = (int)size_bytes;
    window->is_dirty = true;
    int code = MPI_Put(local, len, MPI_BYTE, peer, place_in(window, peer, remote), len, MPI_BYTE, window->win);
    if (code == MPI_SUCCESS) {
        code = MPI_Win_flush_local(peer, window->win);
    }
    return HK_MPI_CHECKED(ctx, "MPI_Put", code);
}

static hk_status_t rma_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    const window_t *window = window_at(ctx, remote);
    const int len = (int)size_bytes;
    int code = MPI_Get(local, len, MPI_BYTE, peer, place_in(window, peer, remote), len, MPI_BYTE, window->win);
    if (code == MPI_SUCCESS) {
        code = MPI_Win_flush_local(peer, window->win);
    }
    return HK_MPI_CHECKED(ctx, "MPI_Get", code);
}

static hk_status_t rma_quiet(hk_ctx_t *ctx)
{
    rma_ctx_t *rma = rma_of(ctx);
    int code = MPI_SUCCESS;
    for (size_t i = 0; i < rma->windows_count && code == MPI_SUCCESS; i++) {
        if (rma->window[i].is_dirty) {
            rma->window[i].is_dirty = false;
            code = MPI_Win_flush_all(rma->window[i].win);
        }
    }
    return HK_MPI_CHECKED(ctx, "MPI_Win_flush_all", code);
}

/* In the unified model a load eventually sees a put. But some libraries execute a put only while its target is
 * inside an MPI call. */
static hk_status_t rma_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    const _Atomic uint64_t *seen = (const _Atomic uint64_t *)(const void *)word;
    const bool gives_way = rma_of(ctx)->gives_way;
    for (;;) {
        for (int i = 0; i < POLLS; i++) {
            if (atomic_load_explicit(seen, memory_order_acquire) == value) {
                return HK_OK;
            }
        }
        int is_there = 0;
        const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, hk_mpi_comm(ctx), &is_there, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            return hk_mpi_failed(ctx->rank, "MPI_Iprobe", code);
        }
        if (gives_way) {
            sched_yield();
        }
    }
}

/* Completes the puts of all ranks. */
static hk_status_t rma_barrier(hk_ctx_t *ctx)
{
    HK_TRY(rma_quiet(ctx));
    return hk_mpi_barrier(ctx);
}

const hk_transport_t hk_transport_mpi_rma = {
    HK_MPI_SHARED,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .caps = HK_MPI_CAPS | HK_CAP_ONE_SIDED,
    .name = "mpi:rma",
    .summary = "one-sided MPI (MPI_Put, MPI_Get, MPI_Win_flush); two-sided messages as mpi sends them",
    .max_bytes = INT_MAX,
    .open = rma_open,
    .close = hk_mpi_close,
    .alloc = rma_alloc,
    .free = rma_free,
    .put = rma_put,
    .get = rma_get,
    .quiet = rma_quiet,
    .wait_word = rma_wait_word,
    .barrier = rma_barrier,
    .counter = hk_mpi_counter,
};
