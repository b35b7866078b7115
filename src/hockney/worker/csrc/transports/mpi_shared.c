/* mpi:shared: loads and stores in memory from MPI_Win_allocate_shared, as programs that combine MPI with shared memory
 * use it (MPI 3, 11.2.3). Windows are those of mpi:rma-shared, whose puts are calls of the library. Two-sided messages
 * are those of mpi. */
#include <mpi.h>
#include <sched.h>

#include "../cacheline.h"
#include "mpi_rma.h"

enum { PATIENCE_POLLS = 64, PATIENCE_POLLS_ALONE = 1 << 21 }; /* before a wait yields the CPU; with a CPU of its own */

static inline void *shared_at(hk_ctx_t *ctx, int peer, const void *mine)
{
    return (void *)hk_window_place(hk_window_at(ctx, mine), peer, mine); // NOLINT(performance-no-int-to-ptr)
}

/* Offsets in the window become addresses in this process. */
static void *shared_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    void *memory = hk_rma_alloc(ctx, size_bytes);
    if (memory == NULL) {
        return NULL;
    }
    hk_window_t *window = &((hk_rma_t *)ctx)->window[((hk_rma_t *)ctx)->windows_count - 1];
    hk_status_t status = HK_OK;
    for (int peer = 0; peer < ctx->size && status == HK_OK; peer++) {
        MPI_Aint room_bytes = 0;
        int unit_bytes = 0;
        void *base = NULL;
        status = HK_MPI_CALL(ctx, MPI_Win_shared_query, window->win, peer, &room_bytes, &unit_bytes, (void *)&base);
        window->begins[peer] += (MPI_Aint)base;
    }
    if (hk_mpi_agree(ctx, status) != HK_OK) {
        hk_rma_free(ctx, memory, size_bytes);
        return NULL;
    }
    return memory;
}

static hk_status_t shared_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    hk_shared_put(shared_at(ctx, peer, remote), local, size_bytes);
    return HK_OK;
}

static hk_status_t shared_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    hk_shared_get(local, shared_at(ctx, peer, remote), size_bytes);
    return HK_OK;
}

static hk_status_t shared_put_signal(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                                     uint64_t *signal, uint64_t value)
{
    void *word = shared_at(ctx, peer, signal);
    memcpy(shared_at(ctx, peer, remote), local, size_bytes);
    atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
    return HK_OK;
}

static hk_status_t shared_quiet(hk_ctx_t *ctx)
{
    (void)ctx;
    atomic_thread_fence(memory_order_seq_cst);
    return HK_OK;
}

static hk_status_t shared_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    const _Atomic uint64_t *seen = (const _Atomic uint64_t *)(const void *)word;
    const uint64_t patience = ((const hk_rma_t *)ctx)->gives_way ? PATIENCE_POLLS : PATIENCE_POLLS_ALONE;
    for (uint64_t polls = 1; atomic_load_explicit(seen, memory_order_acquire) != value; polls++) {
        hk_pause();
        if (polls >= patience) {
            (void)sched_yield();
        }
    }
    return HK_OK;
}

static hk_status_t shared_barrier(hk_ctx_t *ctx)
{
    HK_TRY(shared_quiet(ctx));
    return hk_mpi_barrier(ctx);
}

const hk_transport_t hk_transport_mpi_shared = {
    HK_MPI_SHARED,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .caps =
        (HK_MPI_CAPS & ~(uint32_t)HK_CAP_HOSTS) | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_SIGNAL | HK_CAP_WINDOWS,
    .name = "mpi:shared",
    .summary = "loads and stores in memory from MPI_Win_allocate_shared; two-sided messages as mpi sends them",
    .below = "shm",
    .own = &hk_window_shared,
    .max_bytes = INT_MAX,
    .open = hk_rma_open,
    .close = hk_mpi_close,
    .alloc = shared_alloc,
    .free = hk_rma_free,
    .put = shared_put,
    .get = shared_get,
    .put_start = shared_put,
    .get_start = shared_get,
    .put_signal = shared_put_signal,
    .quiet = shared_quiet,
    .wait_word = shared_wait_word,
    .use_window = hk_mpi_use_window,
    .barrier = shared_barrier,
    .counter = hk_mpi_counter,
};
