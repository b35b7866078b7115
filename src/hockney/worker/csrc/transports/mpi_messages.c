/* MPI's point-to-point calls besides plain sends and receives: with tags, and in both directions at once. */
#include <mpi.h>

#include "mpi_hooks.h"

hk_status_t hk_mpi_send_tagged(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Send, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx));
}

hk_status_t hk_mpi_recv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Recv, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

hk_status_t hk_mpi_irecv_tagged(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes, hk_req_t *req)
{
    return HK_MPI_CALL(ctx, MPI_Irecv, buf, (int)size_bytes, MPI_BYTE, peer, tag, hk_mpi_comm(ctx),
                       hk_mpi_request(req));
}

hk_status_t hk_mpi_exchange(hk_ctx_t *ctx, int to, const void *out, int from, int in_tag, void *in, size_t size_bytes)
{
    const int len = (int)size_bytes;
    return HK_MPI_CALL(ctx, MPI_Sendrecv, out, len, MPI_BYTE, to, HK_MPI_TAG, in, len, MPI_BYTE, from, in_tag,
                       hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}

hk_status_t hk_mpi_exchange_in_place(hk_ctx_t *ctx, int to, int from, int in_tag, void *buf, size_t size_bytes)
{
    return HK_MPI_CALL(ctx, MPI_Sendrecv_replace, buf, (int)size_bytes, MPI_BYTE, to, HK_MPI_TAG, from, in_tag,
                       hk_mpi_comm(ctx), MPI_STATUS_IGNORE);
}
