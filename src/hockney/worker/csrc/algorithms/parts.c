/* An operation by others of the same library: it should not be slower than those (J. L. Traeff, W. Gropp and R. Thakur,
 * Self-consistent MPI performance guidelines, 2010). */
#include <stdio.h>

#include "algorithms.h"

enum { PARTS_MAX = 2, COPIES_MAX = 2 };

/* The operations on one copy of the buffers. */
typedef struct sequence {
    hk_call_t call[PARTS_MAX];
    int count;     /* of those that this rank calls */
    void *copy_to; /* after them; NULL: nothing */
    const void *copy_from;
    size_t copy_bytes;
} sequence_t;

typedef struct parts {
    sequence_t sequence[COPIES_MAX];
    unsigned turn, last; /* last: the number of copies - 1 */
    int made;            /* calls, of one copy after the other */
} parts_t;

static hk_status_t run_parts(hk_ctx_t *ctx, hk_call_t *call)
{
    parts_t *parts = call->own;
    sequence_t *sequence = &parts->sequence[parts->turn++ & parts->last];
    HK_TRY(sequence->call[0].run(ctx, &sequence->call[0]));
    if (sequence->count > 1) {
        HK_TRY(sequence->call[1].run(ctx, &sequence->call[1]));
    }
    if (sequence->copy_to != NULL) {
        memcpy(sequence->copy_to, sequence->copy_from, sequence->copy_bytes);
    }
    return HK_OK;
}

static int count_of(const hk_algorithm_t *algorithm)
{
    return algorithm->parts[1] != HK_NO_OPERATION ? 2 : 1;
}

/* The part's call, but for its buffers. One of a vector moves all blocks as one. */
static hk_call_t part_of(const hk_call_t *call, const hk_algorithm_t *algorithm, int i)
{
    const size_t *at = call->out_at != NULL ? call->out_at : call->in_at;
    const bool has_blocks = hk_gives[call->operation] == HK_DATA_BLOCKS || hk_gets[call->operation] == HK_DATA_BLOCKS;
    hk_call_t part = *call;
    part.operation = algorithm->parts[i];
    if (has_blocks && hk_gives[part.operation] == HK_DATA_VECTOR) {
        part.bytes = at != NULL ? at[call->size] : call->bytes * (size_t)call->size;
    } else if (call->operation == HK_BARRIER) { /* a word */
        part.bytes = part.given_bytes = sizeof(uint64_t);
        part.type = HK_UINT64;
    }
    return part;
}

bool hk_parts_fit(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm, char *why,
                  size_t len)
{
    char missing[160];
    for (int i = 0; i < count_of(algorithm); i++) {
        const hk_call_t part = part_of(call, algorithm, i);
        (void)snprintf(missing, sizeof missing, "%s of its own", hk_operation_names[part.operation]);
        if (tp->has_call == NULL || !tp->has_call(tp, &part, missing, sizeof missing)) {
            (void)snprintf(why, len, "algorithm=%s is made of the library's own operations, and %s has no %s",
                           algorithm->name, tp->name, missing);
            return false;
        }
    }
    return true;
}

/* The buffers of the parts, where they are not those of the call. */
static void connect(const hk_call_t *call, sequence_t *sequence)
{
    hk_call_t *first = &sequence->call[0], *second = &sequence->call[1];
    const bool is_root = call->rank == call->root;
    switch (call->operation) {
    case HK_BARRIER:
        first->out = call->in + sizeof(uint64_t);
        break;
    case HK_ALLREDUCE:
    case HK_ALLGATHER:
    case HK_ALLGATHERV:
        second->out = call->in;
        break;
    case HK_REDUCE_SCATTER:
    case HK_REDUCE_SCATTER_BLOCK:
        first->in = call->work;
        second->out = call->work;
        break;
    case HK_SCATTER:
    case HK_SCATTERV:
        if (first->operation == HK_BCAST) { /* of all blocks, of which a rank keeps its own */
            first->in = call->work;
            sequence->copy_to = call->in;
            sequence->copy_from = (is_root ? call->out : call->work) + call->out_at[call->rank];
            sequence->copy_bytes = hk_out_bytes(call, call->rank);
        }
        break;
    case HK_SCAN:
        if (call->rank == 0) { /* nothing is before it */
            sequence->count = 1;
            sequence->copy_to = call->in;
            sequence->copy_from = call->out;
            sequence->copy_bytes = call->bytes;
        }
        break;
    default:
        break;
    }
}

/* Whole units of every alignment. */
static size_t room_of(size_t size_bytes)
{
    return (size_bytes + sizeof(hk_req_t) - 1) / sizeof(hk_req_t) * sizeof(hk_req_t);
}

size_t hk_parts_bytes(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm, uint64_t copies)
{
    size_t sum = 0;
    for (int i = 0; i < count_of(algorithm); i++) {
        const hk_call_t part = part_of(call, algorithm, i);
        sum += room_of(tp->call_bytes(&part));
    }
    return room_of(sizeof(parts_t)) + (size_t)copies * sum;
}

hk_status_t hk_parts_make(hk_ctx_t *ctx, hk_call_t *call, const hk_algorithm_t *algorithm, uint64_t copies,
                          size_t out_stride, size_t in_stride)
{
    parts_t *parts = call->own;
    unsigned char *room = (unsigned char *)call->own + room_of(sizeof *parts);
    hk_call_t of_copy = *call;
    call->run = run_parts;
    parts->last = (unsigned)copies - 1;
    for (uint64_t copy = 0; copy < copies; copy++) {
        sequence_t *sequence = &parts->sequence[copy];
        sequence->count = count_of(algorithm);
        for (int i = 0; i < count_of(algorithm); i++) {
            sequence->call[i] = part_of(&of_copy, algorithm, i);
            sequence->call[i].own = room;
            room += room_of(ctx->tp->call_bytes(&sequence->call[i]));
        }
        connect(&of_copy, sequence);
        for (int i = 0; i < count_of(algorithm); i++, parts->made++) {
            const hk_status_t status = ctx->tp->make_call(ctx, &sequence->call[i]);
            if (status != HK_OK) {
                hk_parts_drop(ctx, call);
                return status;
            }
        }
        of_copy.out += out_stride;
        of_copy.in += in_stride;
        of_copy.work += in_stride;
    }
    return HK_OK;
}

void hk_parts_drop(hk_ctx_t *ctx, hk_call_t *call)
{
    parts_t *parts = call->own;
    const int each = parts->sequence[0].call[1].own != NULL ? 2 : 1;
    while (parts->made > 0) {
        parts->made--;
        ctx->tp->drop_call(ctx, &parts->sequence[parts->made / each].call[parts->made % each]);
    }
}
