/* MPI's own collective operations, in all forms: blocking, non-blocking (MPI_I…) and persistent (MPI_…_init, MPI 4). */
#include <mpi.h>
#include <stdio.h>

#include "../collective.h"
#include "mpi_hooks.h"

/* What MPI's calls need besides hk_call_t. Counts and places are in elements, but of …w in bytes. */
typedef struct mpi_call {
    MPI_Comm comm;
    bool owns_comm;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request request;
    int count; /* of a vector or a block */
    int *sent, *sent_at, *got, *got_at;
    MPI_Aint *far_sent_at, *far_got_at; /* what MPI_Neighbor_alltoallw alone has instead */
    MPI_Datatype *types;
} mpi_call_t;

/* ---- the calls ----------------------------------------------------------------------------------------------------
 */

/* Of each operation: its names in MPI, and the arguments before those that differ between the forms. `m` is the
 * mpi_call_t. */
#define BCAST_BUFFER (call->rank == call->root ? (void *)(uintptr_t)call->out : call->in)
// clang-format off
#define MPI_OPERATIONS(X)                                                                                           \
    X(BARRIER, MPI_Barrier, MPI_Ibarrier, m->comm)                                                                  \
    X(BCAST, MPI_Bcast, MPI_Ibcast, BCAST_BUFFER, m->count, m->type, call->root, m->comm)                           \
    X(REDUCE, MPI_Reduce, MPI_Ireduce, call->out, call->in, m->count, m->type, m->op, call->root, m->comm)          \
    X(ALLREDUCE, MPI_Allreduce, MPI_Iallreduce, call->out, call->in, m->count, m->type, m->op, m->comm)             \
    X(GATHER, MPI_Gather, MPI_Igather, call->out, m->count, m->type, call->in, m->count, m->type, call->root,       \
      m->comm)                                                                                                      \
    X(GATHERV, MPI_Gatherv, MPI_Igatherv, call->out, m->count, m->type, call->in, m->got, m->got_at, m->type,       \
      call->root, m->comm)                                                                                          \
    X(SCATTER, MPI_Scatter, MPI_Iscatter, call->out, m->count, m->type, call->in, m->count, m->type, call->root,    \
      m->comm)                                                                                                      \
    X(SCATTERV, MPI_Scatterv, MPI_Iscatterv, call->out, m->sent, m->sent_at, m->type, call->in, m->count, m->type,  \
      call->root, m->comm)                                                                                          \
    X(ALLGATHER, MPI_Allgather, MPI_Iallgather, call->out, m->count, m->type, call->in, m->count, m->type, m->comm) \
    X(ALLGATHERV, MPI_Allgatherv, MPI_Iallgatherv, call->out, m->count, m->type, call->in, m->got, m->got_at,       \
      m->type, m->comm)                                                                                             \
    X(ALLTOALL, MPI_Alltoall, MPI_Ialltoall, call->out, m->count, m->type, call->in, m->count, m->type, m->comm)    \
    X(ALLTOALLV, MPI_Alltoallv, MPI_Ialltoallv, call->out, m->sent, m->sent_at, m->type, call->in, m->got,          \
      m->got_at, m->type, m->comm)                                                                                  \
    X(ALLTOALLW, MPI_Alltoallw, MPI_Ialltoallw, call->out, m->sent, m->sent_at, m->types, call->in, m->got,         \
      m->got_at, m->types, m->comm)                                                                                 \
    X(REDUCE_SCATTER, MPI_Reduce_scatter, MPI_Ireduce_scatter, call->out, call->in, m->sent, m->type, m->op,        \
      m->comm)                                                                                                      \
    X(REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, call->out, call->in, m->count,     \
      m->type, m->op, m->comm)                                                                                      \
    X(SCAN, MPI_Scan, MPI_Iscan, call->out, call->in, m->count, m->type, m->op, m->comm)                            \
    X(EXSCAN, MPI_Exscan, MPI_Iexscan, call->out, call->in, m->count, m->type, m->op, m->comm)                      \
    X(NEIGHBOR_ALLGATHER, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, call->out, m->count, m->type, call->in,  \
      m->count, m->type, m->comm)                                                                                   \
    X(NEIGHBOR_ALLGATHERV, MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, call->out, m->count, m->type,         \
      call->in, m->got, m->got_at, m->type, m->comm)                                                                \
    X(NEIGHBOR_ALLTOALL, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, call->out, m->count, m->type, call->in,     \
      m->count, m->type, m->comm)                                                                                   \
    X(NEIGHBOR_ALLTOALLV, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, call->out, m->sent, m->sent_at, m->type, \
      call->in, m->got, m->got_at, m->type, m->comm)                                                                \
    X(NEIGHBOR_ALLTOALLW, MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, call->out, m->sent, m->far_sent_at,        \
      m->types, call->in, m->got, m->far_got_at, m->types, m->comm)
// clang-format on

#define BLOCKING(NAME, call_name, start_name, ...)                                                                     \
    static hk_status_t run_##NAME(hk_ctx_t *ctx, hk_call_t *call)                                                      \
    {                                                                                                                  \
        const mpi_call_t *m = call->own;                                                                               \
        return HK_MPI_CHECKED(ctx, #call_name, call_name(__VA_ARGS__));                                                \
    }
#define NONBLOCKING(NAME, call_name, start_name, ...)                                                                  \
    static hk_status_t start_##NAME(hk_ctx_t *ctx, hk_call_t *call)                                                    \
    {                                                                                                                  \
        mpi_call_t *m = call->own;                                                                                     \
        return HK_MPI_CHECKED(ctx, #start_name, start_name(__VA_ARGS__, &m->request));                                 \
    }
MPI_OPERATIONS(BLOCKING)
MPI_OPERATIONS(NONBLOCKING)

static hk_status_t run_REDUCE_LOCAL(hk_ctx_t *ctx, hk_call_t *call)
{
    const mpi_call_t *m = call->own;
    return HK_MPI_CALL(ctx, MPI_Reduce_local, call->out, call->in, m->count, m->type, m->op);
}

#if HK_MPI_4
#define PERSISTENT(NAME, call_name, start_name, ...)                                                                   \
    case HK_##NAME:                                                                                                    \
        return call_name##_init(__VA_ARGS__, MPI_INFO_NULL, &m->request);

/* Creates the request; returns MPI's code. */
static int init_persistent(const hk_call_t *call, mpi_call_t *m)
{
    switch (call->operation) {
        MPI_OPERATIONS(PERSISTENT)
    default:
        return MPI_ERR_OTHER;
    }
}
#else
static int init_persistent(const hk_call_t *call, mpi_call_t *m)
{
    (void)call, (void)m;
    return MPI_ERR_OTHER;
}
#endif

static hk_status_t start_persistent(hk_ctx_t *ctx, hk_call_t *call)
{
    return HK_MPI_CALL(ctx, MPI_Start, &((mpi_call_t *)call->own)->request);
}

static hk_status_t wait_call(hk_ctx_t *ctx, hk_call_t *call)
{
    return HK_MPI_CALL(ctx, MPI_Wait, &((mpi_call_t *)call->own)->request, MPI_STATUS_IGNORE);
}

static hk_status_t test_call(hk_ctx_t *ctx, hk_call_t *call, bool *is_done_p)
{
    int is_done = 0;
    const int code = MPI_Test(&((mpi_call_t *)call->own)->request, &is_done, MPI_STATUS_IGNORE);
    *is_done_p = is_done != 0;
    return HK_MPI_CHECKED(ctx, "MPI_Test", code);
}

typedef hk_status_t (*call_hook_t)(hk_ctx_t *, hk_call_t *);

#define RUN_ROW(NAME, ...) [HK_##NAME] = {run_##NAME, start_##NAME},
static const call_hook_t call_hooks[HK_OPERATIONS][2] = {MPI_OPERATIONS(RUN_ROW)[HK_REDUCE_LOCAL] = {run_REDUCE_LOCAL}};

/* ---- what the library has -----------------------------------------------------------------------------------------
 */

/* MPICH 4.0 and 4.1 name the type, and end a job that adds with it. */
#if defined(MPIX_C_FLOAT16) && (!defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40200300)
#define FLOAT16 MPIX_C_FLOAT16
#else
#define FLOAT16 MPI_DATATYPE_NULL
#endif
#if defined(MPIX_BFLOAT16)
#define BFLOAT16 MPIX_BFLOAT16
#elif defined(MPIX_C_BF16)
#define BFLOAT16 MPIX_C_BF16
#else
#define BFLOAT16 MPI_DATATYPE_NULL
#endif

/* Half-precision types are extensions. */
MPI_Datatype hk_mpi_type(hk_type_t type)
{
    const MPI_Datatype types[HK_TYPES] = {
        [HK_UINT8] = MPI_UINT8_T,   [HK_INT8] = MPI_INT8_T,    [HK_UINT16] = MPI_UINT16_T, [HK_INT16] = MPI_INT16_T,
        [HK_UINT32] = MPI_UINT32_T, [HK_INT32] = MPI_INT32_T,  [HK_UINT64] = MPI_UINT64_T, [HK_INT64] = MPI_INT64_T,
        [HK_FLOAT32] = MPI_FLOAT,   [HK_FLOAT64] = MPI_DOUBLE, [HK_FLOAT16] = FLOAT16,     [HK_BFLOAT16] = BFLOAT16};
    return types[type];
}

MPI_Op hk_mpi_op(hk_reduction_t reduction)
{
    const MPI_Op ops[HK_REDUCTIONS] = {[HK_SUM] = MPI_SUM,  [HK_PROD] = MPI_PROD, [HK_MIN] = MPI_MIN,
                                       [HK_MAX] = MPI_MAX,  [HK_BAND] = MPI_BAND, [HK_BOR] = MPI_BOR,
                                       [HK_BXOR] = MPI_BXOR};
    return ops[reduction];
}

bool hk_mpi_has_call(const hk_transport_t *tp, const hk_call_t *call, char *why, size_t len)
{
    const char *name = hk_operation_names[call->operation];
    const int most = call->near.count > call->size ? call->near.count : call->size;
    const int blocks = hk_is_a(call->operation, HK_UNEVEN) ? most : 1; /* places count from the first one */
    (void)tp;
    if (call->form == HK_PERSISTENT && !HK_MPI_4) {
        (void)snprintf(why, len, "persistent %s: that needs MPI 4 (Open MPI 5, MPICH 4)", name);
        return false;
    }
    if (call->operation == HK_REDUCE_LOCAL && call->form != HK_BLOCKING) {
        (void)snprintf(why, len, "reduce_local that is not blocking");
        return false;
    }
    if (hk_mpi_type(call->type) == MPI_DATATYPE_NULL) {
        (void)snprintf(why, len, "%s: it is no type of this library", hk_type_names[call->type]);
        return false;
    }
    if (hk_is_a(call->operation, HK_REDUCES) && hk_is_real(call->type) && call->reduction >= HK_BAND) {
        (void)snprintf(why, len, "op=%s of %s: MPI has it for whole numbers only", hk_reduction_names[call->reduction],
                       hk_type_names[call->type]);
        return false;
    }
    (void)snprintf(why, len, "%s of %zu B in %d blocks: counts are 32 bits wide", name, call->bytes, most);
    return call->bytes <= (size_t)(INT_MAX / (blocks > 1 ? blocks : 1));
}

/* ---- make and drop ------------------------------------------------------------------------------------------------
 */

/* Counts and places of all blocks, in elements of unit_bytes. */
static void count_blocks(const size_t *at, int blocks, size_t unit_bytes, int *count, int *place, MPI_Aint *far)
{
    for (int i = 0; i < blocks && at != NULL; i++) {
        count[i] = (int)((at[i + 1] - at[i]) / unit_bytes);
        place[i] = (int)(at[i] / unit_bytes);
        far[i] = (MPI_Aint)at[i];
    }
}

/* The group's communicator, with the neighbours of ranks if the operation has them. */
static int make_comm(hk_ctx_t *ctx, const hk_call_t *call, mpi_call_t *m)
{
    int code = MPI_SUCCESS;
    m->comm = hk_mpi_comm(ctx);
    if (call->size < ctx->size) {
        code = MPI_Comm_split(hk_mpi_comm(ctx), call->first, ctx->rank, &m->comm);
        m->owns_comm = code == MPI_SUCCESS;
    }
    if (code == MPI_SUCCESS && hk_is_a(call->operation, HK_NEAR)) {
        MPI_Comm group = m->comm;
        const int count = call->near.count;
        code = MPI_Dist_graph_create_adjacent(group, count, call->near.from, MPI_UNWEIGHTED, count, call->near.to,
                                              MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &m->comm);
        if (m->owns_comm) {
            MPI_Comm_free(&group);
        }
        m->owns_comm = code == MPI_SUCCESS;
    }
    return m->owns_comm ? MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN) : code;
}

static void set_in_place(hk_call_t *call)
{
    const bool is_root = call->rank == call->root;
    if (call->operation == HK_SCATTER || call->operation == HK_SCATTERV) {
        call->in = is_root ? MPI_IN_PLACE : call->in;
    } else if (!hk_is_a(call->operation, HK_ROOTED) || is_root) {
        call->out = MPI_IN_PLACE;
    }
}

size_t hk_mpi_call_bytes(const hk_call_t *call)
{
    const size_t each_bytes = 2 * sizeof(MPI_Aint) + sizeof(MPI_Datatype) + 4 * sizeof(int);
    return sizeof(mpi_call_t) + (size_t)hk_blocks(call) * each_bytes;
}

hk_status_t hk_mpi_make_call(hk_ctx_t *ctx, hk_call_t *call)
{
    const size_t blocks = (size_t)hk_blocks(call);
    const bool is_in_bytes = call->operation == HK_ALLTOALLW || call->operation == HK_NEIGHBOR_ALLTOALLW;
    const hk_type_t type = is_in_bytes ? HK_UINT8 : call->type;
    const size_t unit_bytes = hk_type_bytes[type];
    mpi_call_t *m = call->own;
    m->far_sent_at = (MPI_Aint *)(void *)(m + 1);
    m->far_got_at = m->far_sent_at + blocks;
    m->types = (MPI_Datatype *)(void *)(m->far_got_at + blocks);
    m->sent = (int *)(void *)(m->types + blocks);
    m->sent_at = m->sent + blocks;
    m->got = m->sent_at + blocks;
    m->got_at = m->got + blocks;
    m->request = MPI_REQUEST_NULL;
    m->type = hk_mpi_type(type);
    m->op = hk_mpi_op(call->reduction);
    const size_t bytes = hk_gives[call->operation] == HK_DATA_BLOCK ? call->given_bytes
                         : call->operation == HK_SCATTERV           ? hk_out_bytes(call, call->rank)
                                                                    : call->bytes;
    m->count = (int)(bytes / unit_bytes);
    count_blocks(call->out_at, (int)blocks, unit_bytes, m->sent, m->sent_at, m->far_sent_at);
    count_blocks(call->in_at, (int)blocks, unit_bytes, m->got, m->got_at, m->far_got_at);
    for (size_t i = 0; i < blocks; i++) {
        m->types[i] = m->type;
    }
    if (call->in_place) {
        set_in_place(call);
    }
    hk_status_t status = hk_mpi_agree(ctx, HK_MPI_CHECKED(ctx, "a new communicator", make_comm(ctx, call, m)));
    if (status == HK_OK && call->form == HK_PERSISTENT) {
        status = hk_mpi_agree(ctx, HK_MPI_CHECKED(ctx, "a persistent operation", init_persistent(call, m)));
    }
    if (status != HK_OK) {
        hk_mpi_drop_call(ctx, call);
        return status;
    }
    call->run = call->form == HK_PERSISTENT ? start_persistent : call_hooks[call->operation][call->form];
    call->wait = call->form == HK_BLOCKING ? NULL : wait_call;
    call->test = call->form == HK_BLOCKING ? NULL : test_call;
    return HK_OK;
}

void hk_mpi_drop_call(hk_ctx_t *ctx, hk_call_t *call)
{
    mpi_call_t *m = call->own;
    (void)ctx;
    if (m->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&m->request);
    }
    if (m->owns_comm) {
        MPI_Comm_free(&m->comm);
    }
}
