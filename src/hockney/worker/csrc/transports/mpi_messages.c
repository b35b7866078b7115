/* The plain transport. Besides the shared hooks it has messages with tags, and in both directions at once. */
#include <mpi.h>

#include "mpi_hooks.h"

static hk_status_t plain_send_tagged(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Send, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx));
}

static hk_status_t plain_recv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Recv, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

static hk_status_t plain_irecv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

static hk_status_t plain_exchange(hk_ctx_t *ctx, int to, const void *out, int from, int in_tag, void *in,
                                  size_t size_bytes)
{
    const int len = (int)size_bytes;
    return HK_MPI_CALL(ctx, MPI_Sendrecv, out, len, MPI_BYTE, to, HK_MPI_TAG, in, len, MPI_BYTE, from, in_tag,
                       hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

static hk_status_t plain_exchange_in_place(hk_ctx_t *ctx, int to, int from, int in_tag, void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Sendrecv_replace, buf, (int)size_bytes, MPI_BYTE, to, HK_MPI_TAG, from, in_tag,
                       hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

const hk_transport_t hk_transport_mpi = {
    HK_MPI_PLAIN,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .parts = HK_MPI_PARTS_TABLE,
    .caps = HK_MPI_CAPS | HK_MPI_CAP_PARTS | HK_CAP_MATCHING | HK_CAP_EXCHANGE | HK_CAP_LAYOUTS | HK_CAP_DEVICES,
    .name = "mpi",
    .summary = "the MPI library that this worker was built with",
    .below = "shm",
    .below_remote = "tcp",
    .any_source = MPI_ANY_SOURCE,
    .any_tag = MPI_ANY_TAG,
    .send_tagged = plain_send_tagged,
    .recv_tagged = plain_recv_tagged,
    .irecv_tagged = plain_irecv_tagged,
    .exchange = plain_exchange,
    .exchange_in_place = plain_exchange_in_place,
    .make_layout = hk_mpi_make_layout,
    .drop_layout = hk_mpi_drop_layout,
    .send_layout = hk_mpi_send_layout,
    .recv_layout = hk_mpi_recv_layout,
};
