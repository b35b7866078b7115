/* MPI's synchronisations of one-sided access. Usually all ranks hold a lock on all, so that quiet is a flush;
 * while a pattern has epochs of its own, they do not. */
#include <mpi.h>
#include <stdlib.h>

#include "mpi_rma.h"

typedef struct mpi_epoch {
    MPI_Win win;
    hk_window_t *window;
    MPI_Group to, from;
} mpi_epoch_t;

/* Each: the calls of one synchronisation. leaves_dirty: accesses need not be complete at their targets. `m` is the
 * mpi_epoch_t, `peer` each rank that is accessed. */
#define EPOCH_ONCE(name, what, call, leaves_dirty)                                                                     \
    static hk_status_t name(hk_ctx_t *ctx, hk_epoch_t *epoch)                                                          \
    {                                                                                                                  \
        const mpi_epoch_t *m = epoch->own;                                                                             \
        const int code = call;                                                                                         \
        m->window->is_dirty = leaves_dirty;                                                                            \
        return HK_MPI_CHECKED(ctx, what, code);                                                                        \
    }
#define EPOCH_EACH(name, what, call, leaves_dirty)                                                                     \
    static hk_status_t name(hk_ctx_t *ctx, hk_epoch_t *epoch)                                                          \
    {                                                                                                                  \
        const mpi_epoch_t *m = epoch->own;                                                                             \
        int code = MPI_SUCCESS;                                                                                        \
        for (int i = 0; i < epoch->to_count && code == MPI_SUCCESS; i++) {                                             \
            const int peer = epoch->to[i];                                                                             \
            code = call;                                                                                               \
        }                                                                                                              \
        m->window->is_dirty = leaves_dirty;                                                                            \
        return HK_MPI_CHECKED(ctx, what, code);                                                                        \
    }

EPOCH_ONCE(epoch_flush_one, "MPI_Win_flush", MPI_Win_flush(epoch->to[0], m->win), false)
EPOCH_EACH(epoch_flush_each, "MPI_Win_flush", MPI_Win_flush(peer, m->win), false)
EPOCH_ONCE(epoch_flush_local_one, "MPI_Win_flush_local", MPI_Win_flush_local(epoch->to[0], m->win), true)
EPOCH_EACH(epoch_flush_local_each, "MPI_Win_flush_local", MPI_Win_flush_local(peer, m->win), true)
EPOCH_ONCE(epoch_lock_one, "MPI_Win_lock", MPI_Win_lock(MPI_LOCK_SHARED, epoch->to[0], 0, m->win), false)
EPOCH_EACH(epoch_lock_each, "MPI_Win_lock", MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, m->win), false)
EPOCH_ONCE(epoch_unlock_one, "MPI_Win_unlock", MPI_Win_unlock(epoch->to[0], m->win), false)
EPOCH_EACH(epoch_unlock_each, "MPI_Win_unlock", MPI_Win_unlock(peer, m->win), false)
EPOCH_ONCE(epoch_flush_all, "MPI_Win_flush_all", MPI_Win_flush_all(m->win), false)
EPOCH_ONCE(epoch_flush_local_all, "MPI_Win_flush_local_all", MPI_Win_flush_local_all(m->win), true)
EPOCH_ONCE(epoch_lock_all, "MPI_Win_lock_all", MPI_Win_lock_all(0, m->win), false)
EPOCH_ONCE(epoch_unlock_all, "MPI_Win_unlock_all", MPI_Win_unlock_all(m->win), false)
EPOCH_ONCE(epoch_fence, "MPI_Win_fence", MPI_Win_fence(0, m->win), false)
EPOCH_ONCE(epoch_post, "MPI_Win_post", MPI_Win_post(m->from, 0, m->win), false)
EPOCH_ONCE(epoch_await, "MPI_Win_wait", MPI_Win_wait(m->win), false)
EPOCH_ONCE(epoch_start, "MPI_Win_start", MPI_Win_start(m->to, 0, m->win), false)
EPOCH_ONCE(epoch_complete, "MPI_Win_complete", MPI_Win_complete(m->win), false)

static hk_status_t epoch_post_and_start(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    HK_TRY(epoch_post(ctx, epoch));
    return epoch_start(ctx, epoch);
}

static hk_status_t epoch_complete_and_await(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    HK_TRY(epoch_complete(ctx, epoch));
    return epoch_await(ctx, epoch);
}

static hk_status_t epoch_no_epoch(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    (void)ctx;
    (void)epoch;
    return HK_OK;
}

static void epoch_choose_hooks(hk_epoch_t *epoch)
{
    const bool accesses = epoch->to_count > 0, is_accessed = epoch->from_count > 0;
    const bool is_one = epoch->to_count == 1;
    epoch->begin = NULL;
    switch (epoch->kind) {
    case HK_EPOCH_FLUSH:
        epoch->end = epoch->to_all ? epoch_flush_all : is_one ? epoch_flush_one : epoch_flush_each;
        break;
    case HK_EPOCH_FLUSH_LOCAL:
        epoch->end = epoch->to_all ? epoch_flush_local_all : is_one ? epoch_flush_local_one : epoch_flush_local_each;
        break;
    case HK_EPOCH_LOCK:
        epoch->begin = is_one ? epoch_lock_one : epoch_lock_each;
        epoch->end = is_one ? epoch_unlock_one : epoch_unlock_each;
        break;
    case HK_EPOCH_LOCK_ALL:
        epoch->begin = epoch_lock_all;
        epoch->end = epoch_unlock_all;
        break;
    case HK_EPOCH_FENCES:
        epoch->begin = epoch_fence;
        epoch->end = epoch_fence;
        break;
    case HK_EPOCH_PSCW:
        epoch->begin = accesses && is_accessed ? epoch_post_and_start
                       : accesses              ? epoch_start
                       : is_accessed           ? epoch_post
                                               : epoch_no_epoch;
        epoch->end = accesses && is_accessed ? epoch_complete_and_await
                     : accesses              ? epoch_complete
                     : is_accessed           ? epoch_await
                                             : epoch_no_epoch;
        break;
    default:
        epoch->end = epoch_fence;
        break;
    }
}

/* The locks that flushes need, for as long as the epoch exists: as the OSU and Intel benchmarks have them. */
static hk_status_t epoch_hold(hk_ctx_t *ctx, hk_epoch_t *epoch, bool begins)
{
    const bool flushes = epoch->kind == HK_EPOCH_FLUSH || epoch->kind == HK_EPOCH_FLUSH_LOCAL;
    if (!flushes || epoch->to_count == 0) {
        return HK_OK;
    }
    return begins ? (epoch->to_all ? epoch_lock_all : epoch_lock_each)(ctx, epoch)
                  : (epoch->to_all ? epoch_unlock_all : epoch_unlock_each)(ctx, epoch);
}

static bool epoch_is_fenced(const hk_epoch_t *epoch)
{
    return epoch->kind == HK_EPOCH_FENCE || epoch->kind == HK_EPOCH_FENCES;
}

/* Makes both groups, which epoch_free frees. Returns MPI's code. */
static int epoch_groups(hk_ctx_t *ctx, const hk_epoch_t *epoch, mpi_epoch_t *m)
{
    MPI_Group all;
    int code = MPI_Comm_group(hk_mpi_comm(ctx), &all);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = MPI_Group_incl(all, epoch->to_count, epoch->to, &m->to);
    if (code == MPI_SUCCESS) {
        code = MPI_Group_incl(all, epoch->from_count, epoch->from, &m->from);
    }
    MPI_Group_free(&all);
    return code;
}

static void epoch_free(mpi_epoch_t *m)
{
    MPI_Group *groups[] = {&m->to, &m->from};
    for (int i = 0; i < 2; i++) {
        if (*groups[i] != MPI_GROUP_EMPTY && *groups[i] != MPI_GROUP_NULL) {
            MPI_Group_free(groups[i]);
        }
    }
    free(m);
}

/* A rank must not post or fence memory on which another still has a lock, so all meet between; and once more at the
 * end, as a lock may need the library's progress at its target. */
hk_status_t hk_mpi_make_epoch(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    mpi_epoch_t *m = malloc(sizeof *m);
    hk_status_t status = HK_OK;
    if (m == NULL) {
        status = hk_fail(HK_ERR_MEMORY, ctx->rank, "no memory for an epoch");
    } else {
        *m = (mpi_epoch_t){.window = hk_window_at(ctx, epoch->memory), .to = MPI_GROUP_NULL, .from = MPI_GROUP_NULL};
        m->win = m->window->win;
        status = HK_MPI_CHECKED(ctx, "MPI_Group_incl", epoch_groups(ctx, epoch, m));
    }
    status = hk_mpi_agree(ctx, status);
    if (status != HK_OK || m == NULL) {
        if (m != NULL) {
            epoch_free(m);
        }
        return status;
    }
    epoch->own = m;
    epoch_choose_hooks(epoch);
    status = hk_mpi_agree(ctx, m->window->epochs++ == 0 ? HK_MPI_CALL(ctx, MPI_Win_unlock_all, m->win) : HK_OK);
    if (status == HK_OK) {
        status = hk_mpi_agree(ctx, epoch_is_fenced(epoch) ? epoch_fence(ctx, epoch) : epoch_hold(ctx, epoch, true));
    }
    if (status != HK_OK) {
        (void)hk_mpi_drop_epoch(ctx, epoch);
    }
    return status;
}

hk_status_t hk_mpi_drop_epoch(hk_ctx_t *ctx, hk_epoch_t *epoch)
{
    mpi_epoch_t *m = epoch->own;
    const bool is_last = --m->window->epochs == 0;
    const hk_status_t status = epoch_hold(ctx, epoch, false);
    int code = is_last && epoch_is_fenced(epoch) ? MPI_Win_fence(MPI_MODE_NOSUCCEED, m->win) : MPI_SUCCESS;
    if (is_last) { /* also after an error: others wait */
        const int met = MPI_Barrier(hk_mpi_comm(ctx)), locked = MPI_Win_lock_all(MPI_MODE_NOCHECK, m->win);
        code = code != MPI_SUCCESS ? code : met != MPI_SUCCESS ? met : locked;
    }
    epoch_free(m);
    epoch->own = NULL;
    return status == HK_OK ? HK_MPI_CHECKED(ctx, "the end of an epoch", code) : status;
}
