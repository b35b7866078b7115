/* Shared by the MPI transports: the context, and the hooks that variants do not change. */
#ifndef HK_MPI_HOOKS_H
#define HK_MPI_HOOKS_H

#include <limits.h>
#include <mpi.h>

#include "../collective.h"
#include "../transport.h"

#if defined(__GNUC__) && !defined(__clang__)
/* MPICH declares MPI_STATUSES_IGNORE as an array of one element, so gcc warns. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

enum { HK_MPI_TAG = 0, HK_MPI_LIBRARY_MAX = 160 };

/* Variants embed it as the first member of their context. */
typedef struct hk_mpi {
    hk_ctx_t base;
    MPI_Comm comm; /* separate, so that no message of a library or tool on the world can match */
    char library[HK_MPI_LIBRARY_MAX];
} hk_mpi_t;

static inline MPI_Comm hk_mpi_comm(const hk_ctx_t *ctx)
{
    return ((const hk_mpi_t *)ctx)->comm;
}

/* Log a failed call of the library. Out of line and cold, so that hooks stay a compare and a jump. */
hk_status_t hk_mpi_failed(int rank, const char *call, int code);

/* All ranks meet and get the worst status. Log an error of this rank before: if the others are still in the call that
 * failed here, all wait until the time limit, and its message has this reason. */
hk_status_t hk_mpi_agree(hk_ctx_t *ctx, hk_status_t mine);

static inline MPI_Request *hk_mpi_request(hk_req_t *req)
{
    return (MPI_Request *)(void *)req->room;
}

static inline hk_status_t hk_mpi_checked(const hk_ctx_t *ctx, const char *call, int code)
{
    return __builtin_expect(code == MPI_SUCCESS, 1) ? HK_OK : hk_mpi_failed(ctx->rank, call, code);
}

#define HK_MPI_CHECKED(ctx, call, code) hk_mpi_checked(ctx, call, code)
#define HK_MPI_CALL(ctx, call, ...) hk_mpi_checked(ctx, #call, call(__VA_ARGS__))

/* For variants: a context of ctx_bytes, zero after the common part. */
hk_status_t hk_mpi_create(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, hk_ctx_t **ctx_p);
hk_status_t hk_mpi_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);
void hk_mpi_close(hk_ctx_t *ctx);
const char *hk_mpi_library(const hk_ctx_t *ctx);

/* The hook `counter`: `yields`, the calls of sched_yield by this process; none where they cannot be counted. */
bool hk_mpi_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

/* The library's name and version and, in brackets, the component that transfers the bytes. */
void hk_mpi_name(char *name_p, size_t room);

/* `--variables` of family.h. */
hk_status_t hk_mpi_variables(char **prefixes, int fd);

hk_status_t hk_mpi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);
hk_status_t hk_mpi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);
hk_status_t hk_mpi_probe(hk_ctx_t *ctx, int peer, bool *is_there_p);
hk_status_t hk_mpi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_mpi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);
hk_status_t hk_mpi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);
hk_status_t hk_mpi_barrier(hk_ctx_t *ctx);

/* mpi_collectives.c */
bool hk_mpi_has_call(const hk_transport_t *tp, const struct hk_call *call, char *why, size_t len);
size_t hk_mpi_call_bytes(const struct hk_call *call);
hk_status_t hk_mpi_make_call(hk_ctx_t *ctx, struct hk_call *call);
void hk_mpi_drop_call(hk_ctx_t *ctx, struct hk_call *call);

/* mpi_startup.c: right after MPI_Init, each pair of ranks exchanges its first messages. Sets the fields of startup that
 * HK_CAP_FIRST promises; free first_ns, which is one allocation with second_ns. */
struct hk_startup;
hk_status_t hk_mpi_exchange_first(struct hk_startup *startup);

/* Partitioned and persistent collective operations came with MPI 4. Open MPI has them since 5.0, which calls itself MPI
 * 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HK_MPI_4 1
#else
#define HK_MPI_4 0
#endif

/* mpi_partitions.c: partitioned messages, for tables that have them if the library does. */
extern const hk_parts_hooks_t hk_mpi_parts;
#if HK_MPI_4
#define HK_MPI_CAP_PARTS HK_CAP_PARTITIONS
#define HK_MPI_PARTS_TABLE (&hk_mpi_parts)
#else
#define HK_MPI_CAP_PARTS 0
#define HK_MPI_PARTS_TABLE NULL
#endif
bool hk_mpi_lacks(const hk_transport_t *tp, uint32_t needs, char *why, size_t len);

/* mpi_layouts.c: of the plain transport */
hk_status_t hk_mpi_make_layout(hk_ctx_t *ctx, struct hk_layout *layout);
void hk_mpi_drop_layout(hk_ctx_t *ctx, struct hk_layout *layout);
hk_status_t hk_mpi_send_layout(hk_ctx_t *ctx, int peer, const void *buf, const struct hk_layout *layout);
hk_status_t hk_mpi_recv_layout(hk_ctx_t *ctx, int peer, void *buf, const struct hk_layout *layout);
/* MPI_DATATYPE_NULL: the library has none. */
MPI_Datatype hk_mpi_type(hk_type_t type);
MPI_Op hk_mpi_op(hk_reduction_t reduction);

/* In every table. */
#define HK_MPI_CAPS                                                                                                    \
    (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_HOSTS | HK_CAP_PROBE | HK_CAP_STARTUP)
#define HK_MPI_SHARED                                                                                                  \
    .carrier = HK_CARRIER_LIBRARY, .library = hk_mpi_library, .probe = hk_mpi_probe, .has_call = hk_mpi_has_call,      \
    .call_bytes = hk_mpi_call_bytes, .make_call = hk_mpi_make_call, .drop_call = hk_mpi_drop_call,                     \
    .lacks = hk_mpi_lacks, .now_ns = hk_real_now_ns, .compute = hk_real_compute

/* Hooks that most tables share. */
#define HK_MPI_PLAIN_CONTEXT .open = hk_mpi_open, .close = hk_mpi_close, .counter = hk_mpi_counter
#define HK_MPI_PLAIN_MEMORY .alloc = hk_private_alloc, .free = hk_private_free
#define HK_MPI_PLAIN                                                                                                   \
    HK_MPI_SHARED, HK_MPI_PLAIN_CONTEXT, HK_MPI_PLAIN_MEMORY, .max_bytes = INT_MAX, .barrier = hk_mpi_barrier
#define HK_MPI_PLAIN_SENDS .send = hk_mpi_send, .isend = hk_mpi_isend
#define HK_MPI_PLAIN_RECEIVES .recv = hk_mpi_recv, .irecv = hk_mpi_irecv, .wait_all = hk_mpi_wait_all

#endif
