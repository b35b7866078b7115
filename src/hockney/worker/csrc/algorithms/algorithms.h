/* Portable algorithms of collective operations, over the messages of any transport: one table, rows X. Rows P do the
 * operation by one or two others of the library's own, which it should not be slower than (parts.c).
 *
 * To add one: a function in the file of its operation, and its row below. Rows are in the order of `list`; the first
 * is the one of algorithm=auto where the transport has no implementation of its own. Each function cites its source.
 *
 * A function is called by all ranks of the call's group. It uses call->rank and call->size, and hk_peer for the ranks
 * of messages. It may use call->work and call->reqs as its row says, and reads nothing else that is not in the call.
 * It leaves in `in` what an MPI library would, its own block too. */
#ifndef HK_ALGORITHMS_H
#define HK_ALGORITHMS_H

#include <string.h>

#include "../collective.h"

/* Room in call->work: how often it holds the larger one of out and in. */
typedef enum hk_room { HK_ROOM_NONE, HK_ROOM_ONE, HK_ROOM_TWO } hk_room_t;

/* Requests in call->reqs. */
typedef enum hk_reqs {
    HK_REQS_PAIR, /* 2 */
    HK_REQS_ALL,  /* two for each block */
} hk_reqs_t;

/* The groups that an algorithm is for. */
typedef enum hk_sizes { HK_SIZES_ANY, HK_SIZES_EVEN, HK_SIZES_POWER_OF_TWO } hk_sizes_t;

// clang-format off
#define HK_BARRIER_ALGORITHMS(X, P)                                                              \
    X("dissemination", hk_barrier_dissemination, NONE, PAIR, ANY)                             \
    X("binomial", hk_barrier_binomial, NONE, PAIR, ANY)                                       \
    P("allreduce", ALLREDUCE, NO_OPERATION, NONE)
#define HK_BCAST_ALGORITHMS(X, P)                                                                \
    X("binomial", hk_bcast_binomial, NONE, PAIR, ANY)                                         \
    X("linear", hk_bcast_linear, NONE, ALL, ANY)                                              \
    X("chain", hk_bcast_chain, NONE, PAIR, ANY)                                               \
    X("scatter-allgather", hk_bcast_scatter_allgather, NONE, PAIR, ANY)
#define HK_REDUCE_ALGORITHMS(X, P)                                                               \
    X("binomial", hk_reduce_binomial, TWO, PAIR, ANY)                                     \
    X("linear", hk_reduce_linear, ONE, PAIR, ANY)                                          \
    X("chain", hk_reduce_chain, TWO, PAIR, ANY)                                           \
    X("rabenseifner", hk_reduce_rabenseifner, TWO, PAIR, ANY)                             \
    P("allreduce", ALLREDUCE, NO_OPERATION, NONE)
#define HK_ALLREDUCE_ALGORITHMS(X, P)                                                            \
    X("doubling", hk_allreduce_doubling, ONE, PAIR, ANY)                                   \
    X("ring", hk_allreduce_ring, ONE, PAIR, ANY)                                           \
    X("rabenseifner", hk_allreduce_rabenseifner, ONE, PAIR, ANY)                           \
    X("linear", hk_allreduce_linear, ONE, PAIR, ANY)                                       \
    P("parts", REDUCE, BCAST, NONE)
#define HK_GATHER_ALGORITHMS(X, P)                                                               \
    X("binomial", hk_gather_binomial, TWO, PAIR, ANY)                                      \
    X("linear", hk_gather_linear, NONE, ALL, ANY)                                             \
    P("allgather", ALLGATHER, NO_OPERATION, NONE)                                             \
    P("gatherv", GATHERV, NO_OPERATION, NONE)
#define HK_SCATTER_ALGORITHMS(X, P)                                                              \
    X("binomial", hk_scatter_binomial, TWO, PAIR, ANY)                                     \
    X("linear", hk_scatter_linear, NONE, ALL, ANY)                                            \
    P("bcast", BCAST, NO_OPERATION, ONE)                                                   \
    P("scatterv", SCATTERV, NO_OPERATION, NONE)
#define HK_ALLGATHER_ALGORITHMS(X, P)                                                            \
    X("ring", hk_allgather_ring, NONE, PAIR, ANY)                                             \
    X("bruck", hk_allgather_bruck, TWO, PAIR, ANY)                                         \
    X("doubling", hk_allgather_doubling, NONE, PAIR, POWER_OF_TWO)                            \
    X("neighbour", hk_allgather_neighbour, NONE, PAIR, EVEN)                                  \
    X("linear", hk_allgather_linear, NONE, ALL, ANY)                                          \
    P("parts", GATHER, BCAST, NONE)                                                           \
    P("allgatherv", ALLGATHERV, NO_OPERATION, NONE)
#define HK_ALLTOALL_ALGORITHMS(X, P)                                                             \
    X("flat", hk_alltoall_flat, NONE, ALL, ANY)                                               \
    X("linear", hk_alltoall_linear, NONE, ALL, ANY)                                           \
    X("pairwise", hk_alltoall_pairwise, NONE, PAIR, ANY)                                      \
    X("bruck", hk_alltoall_bruck, TWO, PAIR, ANY)                                          \
    P("alltoallv", ALLTOALLV, NO_OPERATION, NONE)
#define HK_ALLTOALLV_ALGORITHMS(X, P)                                                            \
    X("linear", hk_alltoall_linear, NONE, ALL, ANY)                                           \
    X("pairwise", hk_alltoall_pairwise, NONE, PAIR, ANY)
#define HK_REDUCE_SCATTER_ALGORITHMS(X, P)                                                       \
    X("pairwise", hk_reduce_scatter_pairwise, TWO, PAIR, ANY)                             \
    X("ring", hk_reduce_scatter_ring, TWO, PAIR, ANY)                                     \
    X("halving", hk_reduce_scatter_halving, TWO, PAIR, POWER_OF_TWO)                      \
    P("parts", REDUCE, SCATTERV, ONE)
#define HK_SCAN_ALGORITHMS(X, P)                                                                 \
    X("doubling", hk_scan_doubling, TWO, PAIR, ANY)                                       \
    X("linear", hk_scan_linear, TWO, PAIR, ANY)                                           \
    P("exscan", EXSCAN, REDUCE_LOCAL, NONE)
#define HK_REDUCE_LOCAL_ALGORITHMS(X, P)                                                         \
    X("portable", hk_reduce_local_portable, NONE, PAIR, ANY)
#define HK_NEIGHBOR_ALGORITHMS(X, P)                                                             \
    X("linear", hk_neighbor_linear, NONE, ALL, ANY)                                           \
    X("in-turn", hk_neighbor_in_turn, NONE, ALL, ANY)

/* The words of the option algorithm, after auto and native. */
#define HK_ALGORITHM_WORD(word, function, room, reqs, sizes) "|" word
#define HK_PARTS_WORD(word, first, second, room) "|" word
#define HK_ALGORITHM_WORDS(LIST) "auto|native" LIST(HK_ALGORITHM_WORD, HK_PARTS_WORD)
// clang-format on

typedef struct hk_algorithm {
    const char *name;
    hk_status_t (*run)(hk_ctx_t *ctx, hk_call_t *call);
    hk_room_t room;
    hk_reqs_t reqs;
    hk_sizes_t sizes;
    hk_operation_t parts[2]; /* of the library, in their order; none: portable */
} hk_algorithm_t;

/* The algorithms of an operation, in the order of the table; ends with a NULL name. */
const hk_algorithm_t *hk_algorithms_of(hk_operation_t operation);

/* The same operation by parts: whether the library has them; the room for them at `own`; made of the call's buffers,
 * copies 1 or 2 of which are used in turn (on error nothing is left); and dropped. */
bool hk_parts_fit(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm, char *why,
                  size_t len);
size_t hk_parts_bytes(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm,
                      uint64_t copies);
hk_status_t hk_parts_make(hk_ctx_t *ctx, hk_call_t *call, const hk_algorithm_t *algorithm, uint64_t copies,
                          size_t out_stride, size_t in_stride);
void hk_parts_drop(hk_ctx_t *ctx, hk_call_t *call);

/* Called by others than the table, too. */
hk_status_t hk_barrier_dissemination(hk_ctx_t *ctx, hk_call_t *call);
hk_status_t hk_alltoall_flat(hk_ctx_t *ctx, hk_call_t *call);
hk_status_t hk_allreduce_ring(hk_ctx_t *ctx, hk_call_t *call);

/* Whether an algorithm is for groups of this size; if not, *what_p describes those that it is for. */
bool hk_algorithm_takes(const hk_algorithm_t *algorithm, int size, const char **what_p);

/* Sends and receives at once: a send may wait for its receive, so that is started first. Uses two requests. */
static inline hk_status_t hk_swap(hk_ctx_t *ctx, hk_call_t *call, int to, const void *out, size_t out_bytes, int from,
                                  void *in, size_t in_bytes)
{
    const hk_transport_t *tp = ctx->tp;
    HK_TRY(tp->irecv(ctx, hk_peer(call, from), in, in_bytes, &call->reqs[0]));
    HK_TRY(tp->isend(ctx, hk_peer(call, to), out, out_bytes, &call->reqs[1]));
    return tp->wait_all(ctx, call->reqs, 2);
}

/* Where slice i of a vector begins that is cut into `slices` of whole elements, as even as they can be. */
static inline size_t hk_slice_at(const hk_call_t *call, int slices, int i)
{
    const size_t grain = hk_type_bytes[call->type];
    return call->bytes / grain * (size_t)i / (size_t)slices * grain;
}

/* The number of bytes of `count` blocks from block `first` on, modulo the size of the group. */
static inline size_t hk_span(const hk_call_t *call, const size_t *at, int first, int count)
{
    const int size = call->size, start = first % size, end = start + count;
    return end <= size ? at[end] - at[start] : at[size] - at[start] + at[end - size];
}

/* A rank's number if the root is 0, and the rank of such a number. */
static inline int hk_from_root(const hk_call_t *call)
{
    return call->rank >= call->root ? call->rank - call->root : call->rank - call->root + call->size;
}

static inline int hk_to_rank(const hk_call_t *call, int from_root)
{
    return (from_root + call->root) % call->size;
}

/* What this rank gives to a reduction. */
static inline const unsigned char *hk_given(const hk_call_t *call)
{
    return call->in_place ? call->in : call->out;
}

#endif
