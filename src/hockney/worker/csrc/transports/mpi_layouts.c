/* Messages of MPI's derived datatypes. */
#include <mpi.h>
#include <stdlib.h>

#include "../layout.h"
#include "mpi_hooks.h"

/* A message is `count` elements of the type. */
typedef struct mpi_layout {
    MPI_Datatype type;
    int count;
} mpi_layout_t;

/* A library may copy words faster than bytes. */
#define LAYOUT_WORD MPI_UINT64_T

static int words_of(size_t size_bytes)
{
    return (int)(size_bytes / HK_LAYOUT_WORD);
}

static int make_indexed(const hk_layout_t *layout, MPI_Datatype *type_p)
{
    const size_t blocks = layout->blocks;
    int *lengths = calloc(blocks + 1, 2 * sizeof *lengths), *places = lengths + blocks;
    if (lengths == NULL) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t i = 0; i < blocks; i++) {
        lengths[i] = words_of(layout->block_bytes);
        places[i] = words_of(layout->at[i]);
    }
    const int code = MPI_Type_indexed((int)blocks, lengths, places, LAYOUT_WORD, type_p);
    free(lengths);
    return code;
}

/* Fields of two types, as a struct of a program has them. */
static int make_record(const hk_layout_t *layout, MPI_Datatype *type_p)
{
    const size_t half_bytes = layout->block_bytes / 2;
    const int lengths[] = {(int)(half_bytes / 4), (int)half_bytes};
    const MPI_Aint places[] = {0, (MPI_Aint)(layout->stride_bytes - half_bytes)};
    const MPI_Datatype types[] = {MPI_UINT32_T, MPI_BYTE};
    MPI_Datatype fields = MPI_DATATYPE_NULL;
    int code = MPI_Type_create_struct(2, lengths, places, types, &fields);
    if (code == MPI_SUCCESS) {
        code = MPI_Type_create_resized(fields, 0, (MPI_Aint)layout->stride_bytes, type_p);
        MPI_Type_free(&fields);
    }
    return code;
}

static int make_type(const hk_layout_t *layout, MPI_Datatype *type_p)
{
    switch (layout->kind) {
    case HK_CONTIGUOUS:
        return MPI_Type_contiguous(words_of(layout->blocks * layout->block_bytes), LAYOUT_WORD, type_p);
    case HK_VECTOR:
        return MPI_Type_vector((int)layout->blocks, words_of(layout->block_bytes), words_of(layout->stride_bytes),
                               LAYOUT_WORD, type_p);
    case HK_INDEXED:
        return make_indexed(layout, type_p);
    case HK_STRUCT:
        return make_record(layout, type_p);
    }
    return MPI_ERR_TYPE;
}

hk_status_t hk_mpi_make_layout(hk_ctx_t *ctx, hk_layout_t *layout)
{
    mpi_layout_t *mine = calloc(1, sizeof *mine);
    if (mine == NULL) {
        return hk_fail(HK_ERR_MEMORY, ctx->rank, "no memory for a datatype");
    }
    mine->type = MPI_DATATYPE_NULL;
    mine->count = layout->kind == HK_STRUCT ? (int)layout->blocks : 1;
    int code = make_type(layout, &mine->type);
    code = code == MPI_SUCCESS ? MPI_Type_commit(&mine->type) : code;
    if (code != MPI_SUCCESS) {
        free(mine);
        return hk_mpi_failed(ctx->rank, "setting up a datatype", code);
    }
    layout->own = mine;
    return HK_OK;
}

void hk_mpi_drop_layout(hk_ctx_t *ctx, hk_layout_t *layout)
{
    mpi_layout_t *mine = layout->own;
    (void)ctx;
    MPI_Type_free(&mine->type);
    free(mine);
    layout->own = NULL;
}

hk_status_t hk_mpi_send_layout(hk_ctx_t *ctx, int peer, const void *buf, const hk_layout_t *layout)
{
    const mpi_layout_t *mine = layout->own;
    return HK_MPI_CALL(ctx, MPI_Send, buf, mine->count, mine->type, peer, HK_MPI_TAG, hk_mpi_comm(ctx));
}

hk_status_t hk_mpi_recv_layout(hk_ctx_t *ctx, int peer, void *buf, const hk_layout_t *layout)
{
    const mpi_layout_t *mine = layout->own;
    return HK_MPI_CALL(ctx, MPI_Recv, buf, mine->count, mine->type, peer, HK_MPI_TAG, hk_mpi_comm(ctx),
                       MPI_STATUS_IGNORE);
}
