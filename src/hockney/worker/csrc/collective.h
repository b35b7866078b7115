/* A collective operation, as all of its ranks call it: shared by patterns, portable algorithms and transports.
 *
 * The ranks of a call are those of its group, numbered from 0. Buffers consist of blocks, one for each rank of the
 * group: block i of `out` is out[out_at[i]] to out[out_at[i + 1]], and of `in` alike.
 *
 *   operation              this rank gives                    this rank gets
 *   bcast                  the root: out, one vector          all others: in
 *   reduce                 out, one vector                    the root: in
 *   allreduce, scan, exscan  out, one vector                  in (exscan: not rank 0)
 *   gather, gatherv        out, its block                     the root: all blocks of in
 *   scatter, scatterv      the root: all blocks of out        in, its block
 *   allgather, allgatherv  out, its block                     all blocks of in
 *   alltoall, v, w         block i of out, to rank i          block i of in, from rank i
 *   reduce_scatter, _block all blocks of out                  in: its block of the reduction
 *   reduce_local           out, one vector                    in, combined with it: no other rank takes part
 *   neighbor_…             as allgather and alltoall, but blocks belong to neighbours in the order of hk_near_t
 *
 * In place: `in` holds what the rank gives, too, where MPI has it so, and `out` is not used. */
#ifndef HK_COLLECTIVE_H
#define HK_COLLECTIVE_H

#include "transport.h"

/* As HK_ and the word that users see, which is the name of the pattern. */
// clang-format off
#define HK_OPERATIONS_(X)                                \
    X(BARRIER,                "barrier")                 \
    X(BCAST,                  "bcast")                   \
    X(REDUCE,                 "reduce")                  \
    X(ALLREDUCE,              "allreduce")               \
    X(GATHER,                 "gather")                  \
    X(GATHERV,                "gatherv")                 \
    X(SCATTER,                "scatter")                 \
    X(SCATTERV,               "scatterv")                \
    X(ALLGATHER,              "allgather")               \
    X(ALLGATHERV,             "allgatherv")              \
    X(ALLTOALL,               "alltoall")                \
    X(ALLTOALLV,              "alltoallv")               \
    X(ALLTOALLW,              "alltoallw")               \
    X(REDUCE_SCATTER,         "reduce_scatter")          \
    X(REDUCE_SCATTER_BLOCK,   "reduce_scatter_block")    \
    X(SCAN,                   "scan")                    \
    X(EXSCAN,                 "exscan")                  \
    X(REDUCE_LOCAL,           "reduce_local")            \
    X(NEIGHBOR_ALLGATHER,     "neighbor_allgather")      \
    X(NEIGHBOR_ALLGATHERV,    "neighbor_allgatherv")     \
    X(NEIGHBOR_ALLTOALL,      "neighbor_alltoall")       \
    X(NEIGHBOR_ALLTOALLV,     "neighbor_alltoallv")      \
    X(NEIGHBOR_ALLTOALLW,     "neighbor_alltoallw")

/* The words of the option dtype, and the C type, NONE where portable code has no arithmetic. */
#define HK_TYPES_(X)                                     \
    X(UINT8,    "uint8",    1)                           \
    X(INT8,     "int8",     1)                           \
    X(UINT16,   "uint16",   2)                           \
    X(INT16,    "int16",    2)                           \
    X(UINT32,   "uint32",   4)                           \
    X(INT32,    "int32",    4)                           \
    X(UINT64,   "uint64",   8)                           \
    X(INT64,    "int64",    8)                           \
    X(FLOAT32,  "float32",  4)                           \
    X(FLOAT64,  "float64",  8)                           \
    X(FLOAT16,  "float16",  2)                           \
    X(BFLOAT16, "bfloat16", 2)

/* The words of the option op. */
#define HK_REDUCTIONS_(X) \
    X(SUM, "sum") X(PROD, "prod") X(MIN, "min") X(MAX, "max") X(BAND, "band") X(BOR, "bor") X(BXOR, "bxor")
// clang-format on

#define HK_AS_OPERATION(name, word) HK_##name,
#define HK_AS_TYPE(name, word, bytes) HK_##name,
#define HK_AS_REDUCTION(name, word) HK_##name,
typedef enum hk_operation { HK_NO_OPERATION, HK_OPERATIONS_(HK_AS_OPERATION) HK_OPERATIONS } hk_operation_t;
typedef enum hk_type { HK_TYPES_(HK_AS_TYPE) HK_TYPES } hk_type_t;
typedef enum hk_reduction { HK_REDUCTIONS_(HK_AS_REDUCTION) HK_REDUCTIONS } hk_reduction_t;
#undef HK_AS_OPERATION
#undef HK_AS_TYPE
#undef HK_AS_REDUCTION

extern const char *const hk_operation_names[HK_OPERATIONS];
extern const char *const hk_type_names[HK_TYPES];
extern const char *const hk_reduction_names[HK_REDUCTIONS];
extern const size_t hk_type_bytes[HK_TYPES];

typedef enum hk_form { HK_BLOCKING, HK_NONBLOCKING, HK_PERSISTENT } hk_form_t;

/* result[i] = left[i] combined with right[i], for whole elements of size_bytes; result may be left or right. */
typedef void (*hk_combine_t)(void *result, const void *left, const void *right, size_t size_bytes);

/* The neighbours of this rank, in the order of blocks. */
typedef struct hk_near {
    int count;
    const int *ranks; /* [count] of the group, each once: a rank sends to the ranks that it receives from */
} hk_near_t;

/* One rank's call. What the pattern fills in stays the same for all repetitions, but for `out` and `in`. */
typedef struct hk_call {
    hk_operation_t operation;
    hk_form_t form;
    hk_type_t type;
    hk_reduction_t reduction;
    hk_combine_t combine; /* of this type and reduction; NULL: portable code cannot */
    int rank, size;       /* of this rank in its group, and of the group */
    int first;            /* the job's rank that is rank 0 of the group; the others follow it */
    int root;             /* in the group */
    bool in_place;
    size_t bytes;                 /* of a vector, or the mean size of a block */
    size_t own_bytes;             /* what this rank gives: its vector, its block, or all blocks of out */
    const size_t *out_at, *in_at; /* [blocks + 1] offsets; NULL where the buffer has no blocks */
    hk_near_t near;
    const unsigned char *out;
    unsigned char *in, *work; /* work: as the algorithm asks */
    hk_req_t *reqs;

    /* Set by the transport's make_call, or of a portable algorithm (then `wait` and `test` are NULL). run: the whole
     * operation if blocking, else its start. wait: to its end. test: whether it has ended; makes progress. */
    hk_status_t (*run)(hk_ctx_t *ctx, struct hk_call *call);
    hk_status_t (*wait)(hk_ctx_t *ctx, struct hk_call *call);
    hk_status_t (*test)(hk_ctx_t *ctx, struct hk_call *call, bool *is_done_p);
    void *own; /* the transport's: call_bytes of it */
} hk_call_t;

/* The job's rank that is this rank of the group. */
static inline int hk_peer(const hk_call_t *call, int rank)
{
    return call->first + rank;
}

/* Size of a block. */
static inline size_t hk_out_bytes(const hk_call_t *call, int block)
{
    return call->out_at[block + 1] - call->out_at[block];
}

static inline size_t hk_in_bytes(const hk_call_t *call, int block)
{
    return call->in_at[block + 1] - call->in_at[block];
}

/* What kinds of operations there are. */
bool hk_has_root(hk_operation_t operation);
bool hk_reduces(hk_operation_t operation);
bool hk_is_near(hk_operation_t operation);   /* among neighbours */
bool hk_is_vector(hk_operation_t operation); /* the sizes of blocks may differ: gatherv, alltoallw, … */

/* NULL for types that C17 has no arithmetic for, and for bits of floating-point numbers. */
hk_combine_t hk_combine_of(hk_type_t type, hk_reduction_t reduction);

/* The numbers of blocks: of ranks, or of neighbours. */
static inline int hk_blocks(const hk_call_t *call)
{
    return hk_is_near(call->operation) ? call->near.count : call->size;
}

/* Whether the transport has this operation itself. */
bool hk_has_own(const hk_transport_t *tp, hk_operation_t operation);

#endif
