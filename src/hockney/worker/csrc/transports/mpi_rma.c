/* mpi:rma and its variants: one-sided MPI in passive target mode. Each allocation is a separate window of the variant's
 * kind, locked for all ranks until it is freed, but for the epochs of a pattern. put is MPI_Put, get is MPI_Get, and
 * quiet is MPI_Win_flush_all. Two-sided messages are those of mpi. */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi_rma.h"

enum { POLLS = 16 }; /* of a word between two calls that let the library make progress */

static hk_rma_t *rma_of(hk_ctx_t *ctx)
{
    return (hk_rma_t *)ctx;
}

hk_status_t hk_rma_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    HK_TRY(hk_mpi_create(tp, job, sizeof(hk_rma_t), ctx_p));
    hk_rma_t *rma = rma_of(*ctx_p);
    rma->gives_way = job->oversubscribed != 0;
    rma->last = rma->window; /* not in use yet: it has no room */
    return HK_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Prepare a new window: check that loads see puts without further calls, exchange the addresses, and lock. */
static hk_status_t set_up(hk_ctx_t *ctx, hk_window_t *made)
{
    int *model = NULL;
    int has_model = 0;
    const MPI_Aint mine = made->begins[ctx->rank];
    MPI_Win_get_attr(made->win, MPI_WIN_MODEL, (void *)&model, &has_model);
    if (!has_model || *model != MPI_WIN_UNIFIED) {
        return hk_fail(HK_ERR_SYSTEM, ctx->rank,
                       "mpi:rma: this library's windows have separate copies, so a rank cannot wait for a word");
    }
    HK_TRY(HK_MPI_CALL(ctx, MPI_Allgather, &mine, 1, MPI_AINT, made->begins, 1, MPI_AINT, hk_mpi_comm(ctx)));
    const hk_status_t locked = HK_MPI_CALL(ctx, MPI_Win_lock_all, MPI_MODE_NOCHECK, made->win);
    const hk_status_t status = hk_mpi_agree(ctx, locked);
    if (status != HK_OK && locked == HK_OK) {
        MPI_Win_unlock_all(made->win);
    }
    return status;
}

/* Memory of whole pages with room for one more, so that a page begins in it. All ranks get an error if one has one, and
 * none waits for a rank that has given up. */
static hk_status_t make_window(hk_ctx_t *ctx, hk_window_t *made, size_t page_bytes)
{
    const hk_window_kind_t *kind = ctx->tp->own;
    MPI_Aint begin = 0;
    made->begins = calloc((size_t)ctx->size, sizeof(MPI_Aint));
    made->base = kind->takes_memory ? hk_private_alloc(ctx, made->base_bytes) : NULL;
    const bool has_memory = made->begins != NULL && (!kind->takes_memory || made->base != NULL);
    HK_TRY(hk_mpi_agree(ctx, has_memory ? HK_OK : hk_fail(HK_ERR_MEMORY, ctx->rank, "no memory for a window")));
    const int code = kind->make(hk_mpi_comm(ctx), (MPI_Aint)made->base_bytes, &made->base, &made->win);
    HK_TRY(hk_mpi_agree(ctx, HK_MPI_CHECKED(ctx, kind->call, code))); /* no window is freed: all ranks would have to */
    MPI_Win_set_errhandler(made->win, MPI_ERRORS_RETURN);
    const int attached = hk_window_attach(kind, made->win, made->base, made->base_bytes, &begin);
    hk_status_t status = hk_mpi_agree(ctx, HK_MPI_CHECKED(ctx, "MPI_Win_attach", attached));
    if (status == HK_OK) {
        const size_t past_page = (uintptr_t)made->base % page_bytes;
        const size_t skipped = past_page == 0 ? 0 : page_bytes - past_page;
        made->begins[ctx->rank] = begin + (MPI_Aint)skipped;
        made->memory = (unsigned char *)made->base + skipped;
        status = set_up(ctx, made);
    }
    if (status != HK_OK) {
        kind->unmake(attached == MPI_SUCCESS ? made->base : NULL, &made->win);
    }
    return status;
}

static void drop_memory(hk_ctx_t *ctx, hk_window_t *window)
{
    const hk_window_kind_t *kind = ctx->tp->own;
    if (kind->takes_memory && window->base != NULL) {
        hk_private_free(ctx, window->base, window->base_bytes);
    }
    free(window->begins);
}

void *hk_rma_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    hk_rma_t *rma = rma_of(ctx);
    const long page = sysconf(_SC_PAGESIZE);
    const size_t page_bytes = page > 0 ? (size_t)page : 4096;
    hk_window_t made = {.room_bytes = (size_bytes / page_bytes + 1) * page_bytes};
    if (rma->windows_count == HK_WINDOWS_MAX) {
        hk_log(ctx->rank, "%s: no room for more than %zu windows", ctx->tp->name, rma->windows_count);
        return NULL;
    }
    made.base_bytes = made.room_bytes + page_bytes;
    if (make_window(ctx, &made, page_bytes) != HK_OK) {
        drop_memory(ctx, &made);
        return NULL;
    }
    rma->window[rma->windows_count++] = made;
    return made.memory;
}

void hk_rma_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    const hk_window_kind_t *kind = ctx->tp->own;
    hk_rma_t *rma = rma_of(ctx);
    hk_window_t *last = &rma->window[--rma->windows_count];
    (void)memory;
    (void)size_bytes;
    MPI_Win_unlock_all(last->win);
    kind->unmake(last->base, &last->win);
    drop_memory(ctx, last);
    *last = (hk_window_t){.room_bytes = 0};
}

/* ---- the timed hooks --------------------------------------------------------------------------------------------- */

/* Flushes locally: `local` may be used again on return, as with puts of other libraries. */
static hk_status_t rma_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    hk_window_t *window = hk_window_at(ctx, remote);
    const int len = (int)size_bytes;
    window->is_dirty = true;
    HK_TRY(HK_MPI_CALL(ctx, MPI_Put, local, len, MPI_BYTE, peer, hk_window_place(window, peer, remote), len, MPI_BYTE,
                       window->win));
    return HK_MPI_CALL(ctx, MPI_Win_flush_local, peer, window->win);
}

static hk_status_t rma_put_start(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    hk_window_t *window = hk_window_at(ctx, remote);
    const int len = (int)size_bytes;
    window->is_dirty = true;
    return HK_MPI_CALL(ctx, MPI_Put, local, len, MPI_BYTE, peer, hk_window_place(window, peer, remote), len, MPI_BYTE,
                       window->win);
}

static hk_status_t rma_get_start(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    hk_window_t *window = hk_window_at(ctx, remote);
    const int len = (int)size_bytes;
    window->is_dirty = true;
    return HK_MPI_CALL(ctx, MPI_Get, local, len, MPI_BYTE, peer, hk_window_place(window, peer, remote), len, MPI_BYTE,
                       window->win);
}

static hk_status_t rma_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    const hk_window_t *window = hk_window_at(ctx, remote);
    const int len = (int)size_bytes;
    HK_TRY(HK_MPI_CALL(ctx, MPI_Get, local, len, MPI_BYTE, peer, hk_window_place(window, peer, remote), len, MPI_BYTE,
                       window->win));
    return HK_MPI_CALL(ctx, MPI_Win_flush_local, peer, window->win);
}

static hk_status_t rma_quiet(hk_ctx_t *ctx)
{
    hk_rma_t *rma = rma_of(ctx);
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

#define RMA_CAPS (HK_MPI_CAPS | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_EPOCHS | HK_CAP_ATOMICS | HK_CAP_WINDOWS)
#define RMA_SHARED                                                                                                     \
    HK_MPI_SHARED, HK_MPI_PLAIN_SENDS, HK_MPI_PLAIN_RECEIVES, .max_bytes = INT_MAX, .open = hk_rma_open,               \
        .close = hk_mpi_close, .alloc = hk_rma_alloc, .free = hk_rma_free, .put = rma_put, .get = rma_get,             \
        .put_start = rma_put_start, .get_start = rma_get_start, .quiet = rma_quiet, .wait_word = rma_wait_word,        \
        .make_epoch = hk_mpi_make_epoch, .drop_epoch = hk_mpi_drop_epoch, .has_atomic = hk_mpi_has_atomic,             \
        .make_atomic = hk_mpi_make_atomic, .use_window = hk_mpi_use_window, .barrier = rma_barrier,                    \
        .counter = hk_mpi_counter

/* A transport for each kind of window. */
#define RMA_ROW(key, its_caps, variant, window, text)                                                                  \
    const hk_transport_t hk_transport_##key = {RMA_SHARED, .caps = (its_caps), .name = (variant), .summary = (text),   \
                                               .own = &(window)};

RMA_ROW(mpi_rma, RMA_CAPS, "mpi:rma", hk_window_allocated,
        "one-sided MPI (MPI_Put, MPI_Get, MPI_Win_flush); two-sided messages as mpi sends them")
RMA_ROW(mpi_rma_create, RMA_CAPS, "mpi:rma-create", hk_window_created,
        "mpi:rma on memory of the program (MPI_Win_create)")
RMA_ROW(mpi_rma_dynamic, RMA_CAPS, "mpi:rma-dynamic", hk_window_dynamic,
        "mpi:rma on memory that is attached (MPI_Win_create_dynamic)")
RMA_ROW(mpi_rma_shared, RMA_CAPS & ~(uint32_t)HK_CAP_HOSTS, "mpi:rma-shared", hk_window_shared,
        "mpi:rma on memory that ranks of a host share (MPI_Win_allocate_shared)")
