/* MPI's accumulate, get_accumulate, fetch_and_op and compare_and_swap. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_rma.h"

/* In the atomic's own room. */
typedef struct mpi_atomic {
    MPI_Datatype type;
    MPI_Op op;
    int count;
} mpi_atomic_t;

_Static_assert(sizeof(mpi_atomic_t) <= sizeof((hk_atomic_t *)0)->own, "mpi: an atomic operation does not fit");

/* The arguments of each call: `m` is the mpi_atomic_t, `at` the place in the peer's part of `win`. */
#define ATOMIC_CALL(name, call_name, ...)                                                                              \
    static hk_status_t name(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote, const void *local,       \
                            const void *compare, void *fetched)                                                        \
    {                                                                                                                  \
        const mpi_atomic_t *m = (const mpi_atomic_t *)(const void *)atomic->own;                                       \
        hk_window_t *window = hk_window_at(ctx, remote);                                                               \
        const MPI_Aint at = hk_window_place(window, peer, remote);                                                     \
        MPI_Win win = window->win;                                                                                     \
        window->is_dirty = true;                                                                                       \
        (void)compare, (void)fetched;                                                                                  \
        return HK_MPI_CHECKED(ctx, #call_name, call_name(__VA_ARGS__));                                                \
    }

ATOMIC_CALL(accumulate, MPI_Accumulate, local, m->count, m->type, peer, at, m->count, m->type, m->op, win)
ATOMIC_CALL(get_accumulate, MPI_Get_accumulate, local, m->count, m->type, fetched, m->count, m->type, peer, at,
            m->count, m->type, m->op, win)
ATOMIC_CALL(fetch_and_op, MPI_Fetch_and_op, local, fetched, m->type, peer, at, m->op, win)
ATOMIC_CALL(compare_and_swap, MPI_Compare_and_swap, local, compare, fetched, m->type, peer, at, win)

static MPI_Op atomic_op(const hk_atomic_t *atomic)
{
    switch (atomic->update) {
    case HK_UPDATE_REPLACE:
        return MPI_REPLACE;
    case HK_UPDATE_NO_OP:
        return MPI_NO_OP;
    default:
        return atomic->update == HK_UPDATE_INC ? MPI_OP_NULL : hk_mpi_op((hk_reduction_t)atomic->update);
    }
}

/* https://github.com/open-mpi/ompi/issues/7967: the target writes to a wrong address and dies, in osu_cas_latency, too.
 */
static bool swaps_crash(const hk_transport_t *tp, const hk_atomic_t *atomic)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 4
    return atomic->kind == HK_ATOMIC_COMPARE_AND_SWAP && hk_type_bytes[atomic->type] == 8 &&
           tp->own != &hk_window_shared && getenv("OMPI_MCA_osc") == NULL;
#else
    (void)tp, (void)atomic;
    return false;
#endif
}

bool hk_mpi_has_atomic(const hk_transport_t *tp, const hk_atomic_t *atomic, char *why, size_t len)
{
    if (atomic_op(atomic) == MPI_OP_NULL) {
        (void)snprintf(why, len, "call that adds 1; op=sum adds any number");
        return false;
    }
    if (swaps_crash(tp, atomic)) {
        (void)snprintf(why, len,
                       "safe MPI_Compare_and_swap of 8 bytes in Open MPI 4 (its issue 7967): set OMPI_MCA_osc=^rdma");
        return false;
    }
    (void)snprintf(why, len, "%s: it is no type of this library", hk_type_names[atomic->type]);
    return hk_mpi_type(atomic->type) != MPI_DATATYPE_NULL;
}

hk_status_t hk_mpi_make_atomic(hk_ctx_t *ctx, hk_atomic_t *atomic)
{
    mpi_atomic_t *m = (mpi_atomic_t *)(void *)atomic->own;
    (void)ctx;
    *m = (mpi_atomic_t){.type = hk_mpi_type(atomic->type),
                        .op = atomic_op(atomic),
                        .count = (int)(atomic->size_bytes / hk_type_bytes[atomic->type])};
    atomic->start = atomic->kind == HK_ATOMIC_ACCUMULATE       ? accumulate
                    : atomic->kind == HK_ATOMIC_GET_ACCUMULATE ? get_accumulate
                    : atomic->kind == HK_ATOMIC_FETCH_AND_OP   ? fetch_and_op
                                                               : compare_and_swap;
    return HK_OK;
}
