/* One-sided MPI: windows, shared by the files mpi_rma (puts and gets), mpi_windows (kinds of windows), mpi_epochs
 * (synchronisation) and mpi_atomics. */
#ifndef HK_MPI_RMA_H
#define HK_MPI_RMA_H

#include "../onesided.h"
#include "mpi_hooks.h"

enum { HK_WINDOWS_MAX = 16 };

/* How memory becomes accessible to other ranks: the `own` of a transport. Functions return MPI's code. */
typedef struct hk_window_kind {
    const char *call;
    bool takes_memory; /* else the library allocates it */

    /* All ranks make a window. *base_p is the memory, if the kind takes it. */
    int (*make)(MPI_Comm comm, MPI_Aint size_bytes, void **base_p, MPI_Win *win_p);

    /* This rank adds its memory. Out: where that begins for other ranks. Optional: absent means that make has done it,
     * and that memory begins at 0. */
    int (*attach)(MPI_Win win, void *base, MPI_Aint size_bytes, MPI_Aint *begin_p);

    /* All ranks free the window. base: NULL if nothing is attached. */
    int (*unmake)(void *base, MPI_Win *win_p);
} hk_window_kind_t;

extern const hk_window_kind_t hk_window_created, hk_window_allocated, hk_window_dynamic, hk_window_shared;

typedef struct hk_window {
    MPI_Win win;
    void *base; /* what `make` used or allocated */
    size_t base_bytes;
    unsigned char *memory; /* this rank's, page-aligned */
    size_t room_bytes;     /* from there, more than was asked for: a put of nothing lies within, too */
    MPI_Aint *begins;      /* [size] start of the memory in each rank's part of the window */
    bool is_dirty;         /* puts or gets may be under way */
    int epochs;            /* made by patterns: without one, all ranks have the right of access to all */
} hk_window_t;

typedef struct hk_rma {
    hk_mpi_t mpi;
    bool gives_way; /* oversubscribed */
    size_t windows_count;
    hk_window_t *last; /* the last used one */
    hk_window_t window[HK_WINDOWS_MAX];
} hk_rma_t;

static inline bool hk_window_has(const hk_window_t *window, const void *address)
{
    return (uintptr_t)address - (uintptr_t)window->memory < window->room_bytes;
}

/* The window that contains an address: usually the last used one, else one of two or three. */
static inline hk_window_t *hk_window_at(hk_ctx_t *ctx, const void *address)
{
    hk_rma_t *rma = (hk_rma_t *)ctx;
    hk_window_t *window = rma->last;
    if (__builtin_expect(!hk_window_has(window, address), 0)) {
        for (window = rma->window; !hk_window_has(window, address); window++) {
        }
        rma->last = window;
    }
    return window;
}

static inline MPI_Aint hk_window_place(const hk_window_t *window, int peer, const void *address)
{
    return window->begins[peer] + ((const unsigned char *)address - window->memory);
}

/* mpi_rma.c */
hk_status_t hk_rma_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);
void *hk_rma_alloc(hk_ctx_t *ctx, size_t size_bytes);
void hk_rma_free(hk_ctx_t *ctx, void *memory, size_t size_bytes);

/* mpi_windows.c */
int hk_window_attach(const hk_window_kind_t *kind, MPI_Win win, void *base, size_t size_bytes, MPI_Aint *begin_p);
hk_status_t hk_mpi_use_window(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used);

/* mpi_epochs.c */
hk_status_t hk_mpi_make_epoch(hk_ctx_t *ctx, hk_epoch_t *epoch);
hk_status_t hk_mpi_drop_epoch(hk_ctx_t *ctx, hk_epoch_t *epoch);

/* mpi_atomics.c */
bool hk_mpi_has_atomic(const hk_transport_t *tp, const hk_atomic_t *atomic, char *why, size_t len);
hk_status_t hk_mpi_make_atomic(hk_ctx_t *ctx, hk_atomic_t *atomic);

#endif
