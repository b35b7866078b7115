/* A collective operation as its ranks call it. Patterns, portable algorithms and transports share it.
 *
 * The ranks of a call are those of its group, numbered from 0. Buffers consist of blocks, one for each rank of the
 * group: block i of `out` begins at out[out_at[i]] and ends before out[out_at[i + 1]]; the same for `in`.
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
 *   neighbor_…             as allgather and alltoall, but blocks are for and from the neighbours of hk_near_t
 *
 * In place: `in` also holds the data that the rank gives, in the place that MPI prescribes. `out` is not used. */
#ifndef HK_COLLECTIVE_H
#define HK_COLLECTIVE_H

#include "transport.h"

/* The data that a rank gives or gets. */
typedef enum hk_data { HK_DATA_NOTHING, HK_DATA_VECTOR, HK_DATA_BLOCK, HK_DATA_BLOCKS } hk_data_t;

/* ROOTED: one rank is the root. REDUCES: vectors are combined. NEAR: ranks exchange data with neighbours only. UNEVEN:
 * the sizes of blocks may differ. ORDERED: a rank needs no data of the ranks after it. */
enum { HK_PLAIN = 0, HK_ROOTED = 1, HK_REDUCES = 2, HK_NEAR = 4, HK_UNEVEN = 8, HK_ORDERED = 16 };

/* The columns: the name after HK_; the word that users see, which is the name of the pattern; the data that each rank
 * gives, and gets; the kinds above; the list of algorithms (algorithms.h). */
// clang-format off
#define HK_OPERATIONS_(X)                                                                                         \
    X(BARRIER,              "barrier",              NOTHING, NOTHING, HK_PLAIN,                 barrier)           \
    X(BCAST,                "bcast",                VECTOR,  VECTOR,  HK_ROOTED,                bcast)             \
    X(REDUCE,               "reduce",               VECTOR,  VECTOR,  HK_ROOTED | HK_REDUCES,   reduce)            \
    X(ALLREDUCE,            "allreduce",            VECTOR,  VECTOR,  HK_REDUCES,               allreduce)         \
    X(GATHER,               "gather",               BLOCK,   BLOCKS,  HK_ROOTED,                gather)            \
    X(GATHERV,              "gatherv",              BLOCK,   BLOCKS,  HK_ROOTED | HK_UNEVEN,    gather)            \
    X(SCATTER,              "scatter",              BLOCKS,  BLOCK,   HK_ROOTED,                scatter)           \
    X(SCATTERV,             "scatterv",             BLOCKS,  BLOCK,   HK_ROOTED | HK_UNEVEN,    scatter)           \
    X(ALLGATHER,            "allgather",            BLOCK,   BLOCKS,  HK_PLAIN,                 allgather)         \
    X(ALLGATHERV,           "allgatherv",           BLOCK,   BLOCKS,  HK_UNEVEN,                allgather)         \
    X(ALLTOALL,             "alltoall",             BLOCKS,  BLOCKS,  HK_PLAIN,                 alltoall)          \
    X(ALLTOALLV,            "alltoallv",            BLOCKS,  BLOCKS,  HK_UNEVEN,                alltoallv)         \
    X(ALLTOALLW,            "alltoallw",            BLOCKS,  BLOCKS,  HK_UNEVEN,                alltoallv)         \
    X(REDUCE_SCATTER,       "reduce_scatter",       BLOCKS,  BLOCK,   HK_REDUCES | HK_UNEVEN,   reduce_scatter)    \
    X(REDUCE_SCATTER_BLOCK, "reduce_scatter_block", BLOCKS,  BLOCK,   HK_REDUCES,               reduce_scatter)    \
    X(SCAN,                 "scan",                 VECTOR,  VECTOR,  HK_REDUCES | HK_ORDERED,  scan)              \
    X(EXSCAN,               "exscan",               VECTOR,  VECTOR,  HK_REDUCES | HK_ORDERED,  scan)              \
    X(REDUCE_LOCAL,         "reduce_local",         VECTOR,  VECTOR,  HK_REDUCES,               reduce_local)      \
    X(NEIGHBOR_ALLGATHER,   "neighbor_allgather",   BLOCK,   BLOCKS,  HK_NEAR,                  neighbor)          \
    X(NEIGHBOR_ALLGATHERV,  "neighbor_allgatherv",  BLOCK,   BLOCKS,  HK_NEAR | HK_UNEVEN,      neighbor)          \
    X(NEIGHBOR_ALLTOALL,    "neighbor_alltoall",    BLOCKS,  BLOCKS,  HK_NEAR,                  neighbor)          \
    X(NEIGHBOR_ALLTOALLV,   "neighbor_alltoallv",   BLOCKS,  BLOCKS,  HK_NEAR | HK_UNEVEN,      neighbor)          \
    X(NEIGHBOR_ALLTOALLW,   "neighbor_alltoallw",   BLOCKS,  BLOCKS,  HK_NEAR | HK_UNEVEN,      neighbor)

/* The words of the option dtype; floating-point types come last. */
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

/* The words as the choices of an option. */
#define HK_TYPE_WORD(name, word, bytes) "|" word
#define HK_REDUCTION_WORD(name, word) "|" word
#define HK_TYPE_WORDS (&"" HK_TYPES_(HK_TYPE_WORD)[1])
#define HK_REDUCTION_WORDS (&"" HK_REDUCTIONS_(HK_REDUCTION_WORD)[1])

#define HK_AS_OPERATION(name, ...) HK_##name,
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

/* The columns of HK_OPERATIONS_. */
extern const hk_data_t hk_gives[HK_OPERATIONS], hk_gets[HK_OPERATIONS];
extern const unsigned hk_kinds_of[HK_OPERATIONS];

static inline bool hk_is_a(hk_operation_t operation, unsigned kind)
{
    return (hk_kinds_of[operation] & kind) != 0;
}

static inline bool hk_is_real(hk_type_t type)
{
    return type >= HK_FLOAT32;
}

typedef enum hk_form { HK_BLOCKING, HK_NONBLOCKING, HK_PERSISTENT } hk_form_t;

/* result[i] = left[i] combined with right[i], for whole elements of size_bytes; result may be left or right. */
typedef void (*hk_combine_t)(void *result, const void *left, const void *right, size_t size_bytes);

/* The neighbours of this rank: block k goes to to[k], where it is block k from from[k]. */
typedef struct hk_near {
    int count;            /* the same on all ranks */
    const int *to, *from; /* [count] ranks of the group */
} hk_near_t;

/* One rank's call. The pattern sets its fields once; only `out` and `in` change between repetitions. */
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
    bool is_met;                  /* all ranks meet before each call, so that none runs ahead */
    size_t bytes;                 /* of a vector, or the mean size of a block */
    size_t given_bytes;           /* of all that this rank gives: its vector, its block, or all blocks of out */
    const size_t *out_at, *in_at; /* [blocks + 1] offsets; NULL where the buffer has no blocks */
    hk_near_t near;
    const unsigned char *out;
    unsigned char *in, *work; /* work: as the algorithm asks */
    hk_req_t *reqs;

    /* Set by the transport's make_call, or by the pattern for a portable algorithm (`wait` and `test` are then NULL).
     * run: the whole operation if blocking, else its start. wait: until it has ended. test: whether it has ended; makes
     * progress. */
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

/* NULL for types that C17 has no arithmetic for, and for bits of floating-point numbers. */
hk_combine_t hk_combine_of(hk_type_t type, hk_reduction_t reduction);

/* The number of blocks: one for each rank, or for each neighbour. */
static inline int hk_blocks(const hk_call_t *call)
{
    return hk_is_a(call->operation, HK_NEAR) ? call->near.count : call->size;
}

/* The smallest number of messages of this operation in a group: one for each block and rank that needs it, one for each
 * rank's vector of a reduction, and as many more for the result of an allreduce. Not for operations of neighbours. */
uint64_t hk_least_messages(hk_operation_t operation, uint64_t size);

/* Whether the transport implements this operation. */
bool hk_has_own(const hk_transport_t *tp, hk_operation_t operation);

#endif
