/* The kinds of MPI's windows, and a window that is made, used once and freed. */
#include "mpi_rma.h"
#include <mpi.h>

/* MPICH 4.0.2 uses a wrong address in windows whose size is not a multiple of 16. */
enum { WINDOW_GRAIN_BYTES = 16 };

static int make_created(MPI_Comm comm, MPI_Aint size_bytes, void **base_p, MPI_Win *win_p)
{
    return MPI_Win_create(*base_p, size_bytes, 1, MPI_INFO_NULL, comm, win_p);
}

static int make_allocated(MPI_Comm comm, MPI_Aint size_bytes, void **base_p, MPI_Win *win_p)
{
    return MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, comm, (void *)base_p, win_p);
}

static int make_shared(MPI_Comm comm, MPI_Aint size_bytes, void **base_p, MPI_Win *win_p)
{
    return MPI_Win_allocate_shared(size_bytes, 1, MPI_INFO_NULL, comm, (void *)base_p, win_p);
}

static int make_dynamic(MPI_Comm comm, MPI_Aint size_bytes, void **base_p, MPI_Win *win_p)
{
    (void)size_bytes;
    (void)base_p;
    return MPI_Win_create_dynamic(MPI_INFO_NULL, comm, win_p);
}

static int attach_dynamic(MPI_Win win, void *base, MPI_Aint size_bytes, MPI_Aint *begin_p)
{
    const int code = size_bytes > 0 ? MPI_Win_attach(win, base, size_bytes) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? MPI_Get_address(base, begin_p) : code;
}

static int unmake_window(void *base, MPI_Win *win_p)
{
    (void)base;
    return MPI_Win_free(win_p);
}

static int unmake_dynamic(void *base, MPI_Win *win_p)
{
    const int code = base != NULL ? MPI_Win_detach(*win_p, base) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? MPI_Win_free(win_p) : code;
}

const hk_window_kind_t hk_window_created = {"MPI_Win_create", true, make_created, NULL, unmake_window};
const hk_window_kind_t hk_window_allocated = {"MPI_Win_allocate", false, make_allocated, NULL, unmake_window};
const hk_window_kind_t hk_window_dynamic = {"MPI_Win_create_dynamic", true, make_dynamic, attach_dynamic,
                                            unmake_dynamic};
const hk_window_kind_t hk_window_shared = {"MPI_Win_allocate_shared", false, make_shared, NULL, unmake_window};

int hk_window_attach(const hk_window_kind_t *kind, MPI_Win win, void *base, size_t size_bytes, MPI_Aint *begin_p)
{
    *begin_p = 0;
    return kind->attach != NULL ? kind->attach(win, base, (MPI_Aint)size_bytes, begin_p) : MPI_SUCCESS;
}

static hk_status_t use_once(hk_ctx_t *ctx, MPI_Win win, MPI_Aint begin, size_t size_bytes, const void *local)
{
    HK_TRY(HK_MPI_CALL(ctx, MPI_Win_fence, 0, win));
    if (size_bytes > 0) {
        HK_TRY(HK_MPI_CALL(ctx, MPI_Put, local, 1, MPI_BYTE, ctx->rank, begin, 1, MPI_BYTE, win));
    }
    return HK_MPI_CALL(ctx, MPI_Win_fence, 0, win);
}

hk_status_t hk_mpi_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used)
{
    const hk_window_kind_t *kind = ctx->tp->own;
    const size_t whole = kind->takes_memory
                             ? size_bytes
                             : (size_bytes + WINDOW_GRAIN_BYTES - 1) / WINDOW_GRAIN_BYTES * WINDOW_GRAIN_BYTES;
    void *base = size_bytes > 0 || !kind->takes_memory ? memory : NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint begin = 0;
    HK_TRY(HK_MPI_CHECKED(ctx, kind->call, kind->make(hk_mpi_comm(ctx), (MPI_Aint)whole, &base, &win)));
    HK_TRY(HK_MPI_CHECKED(ctx, "MPI_Win_attach", hk_window_attach(kind, win, base, size_bytes, &begin)));
    if (is_used) {
        /* After an error the window stays: others may wait in it, and its end would wait for them. */
        HK_TRY(use_once(ctx, win, begin, size_bytes, local));
        if (size_bytes > 0) {
            *(unsigned char *)memory = *(const unsigned char *)base;
        }
    }
    return HK_MPI_CHECKED(ctx, "MPI_Win_free", kind->unmake(base, &win));
}
