/* An operation by others of the same library: it should not be slower than those (J. L. Traeff, W. Gropp and R. Thakur,
 * Self-consistent MPI performance guidelines, 2010). */
#include <stdio.h>

#include "algorithms.h"

typedef struct parts {
    hk_call_t call[2];
    int made, count; /* count: of those that this rank calls */
    void *copy_to; /* after them; NULL: nothing */
    const void *copy_from;
    size_t copy_bytes;
} parts_t;

static hk_status_t run_parts(hk_ctx_t *ctx, hk_call_t *call)
{
    parts_t *parts = call->own;
    HK_TRY(parts->call[0].run(ctx, &parts->call[0]));
    if (parts->count > 1) {
        HK_TRY(parts->call[1].run(ctx, &parts->call[1]));
    }
    if (parts->copy_to != NULL) {
        memcpy(parts->copy_to, parts->copy_from, parts->copy_bytes);
    }
    return HK_OK;
}

static int count_of(const hk_algorithm_t *algorithm)
{
    return algorithm->parts[1] != HK_NO_OPERATION ? 2 : 1;
}

static hk_call_t part_of(const hk_call_t *call, const hk_algorithm_t *algorithm, int i)
{
    hk_call_t part = *call;
    part.operation = algorithm->parts[i];
    return part;
}

bool hk_parts_fit(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm, char *why,
                  size_t len)
{
    char lacks[160];
    for (int i = 0; i < count_of(algorithm); i++) {
        const hk_call_t part = part_of(call, algorithm, i);
        (void)snprintf(lacks, sizeof lacks, "%s of its own", hk_operation_names[part.operation]);
        if (tp->has_call == NULL || !tp->has_call(tp, &part, lacks, sizeof lacks)) {
            (void)snprintf(why, len, "algorithm=%s is made of the library's own operations, and %s has no %s",
                           algorithm->name, tp->name, lacks);
            return false;
        }
    }
    return true;
}

/* The buffers of the parts, where they are not those of the call. */
static void connect(const hk_call_t *call, parts_t *parts)
{
    hk_call_t *first = &parts->call[0], *second = &parts->call[1];
    const bool is_root = call->rank == call->root;
    switch (call->operation) {
    case HK_BARRIER: /* a word */
        first->bytes = first->own_bytes = 8;
        first->type = HK_UINT64;
        first->out = call->in + 8;
        break;
    case HK_REDUCE:
        first->in = is_root ? call->in : call->work;
        break;
    case HK_ALLREDUCE:
        second->out = call->in;
        break;
    case HK_ALLGATHER:
    case HK_ALLGATHERV:
        second->out = call->in;
        second->bytes = call->in_at[call->size];
        break;
    case HK_REDUCE_SCATTER:
    case HK_REDUCE_SCATTER_BLOCK:
        first->bytes = call->out_at[call->size];
        first->in = call->work;
        second->out = call->work;
        break;
    case HK_SCATTER:
    case HK_SCATTERV:
        if (first->operation == HK_BCAST) { /* of all blocks, of which a rank keeps its own */
            const unsigned char *got = is_root ? call->out : call->work;
            first->bytes = call->out_at[call->size];
            first->in = call->work;
            *parts = (parts_t){.call = {*first},
                               .count = 1,
                               .copy_to = call->in,
                               .copy_from = got + call->out_at[call->rank],
                               .copy_bytes = hk_out_bytes(call, call->rank)};
        }
        break;
    case HK_SCAN:
        if (call->rank == 0) { /* nothing is before it */
            parts->count = 1;
            parts->copy_to = call->in;
            parts->copy_from = call->out;
            parts->copy_bytes = call->bytes;
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

size_t hk_parts_bytes(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm)
{
    size_t sum = room_of(sizeof(parts_t));
    for (int i = 0; i < count_of(algorithm); i++) {
        const hk_call_t part = part_of(call, algorithm, i);
        sum += room_of(tp->call_bytes(&part));
    }
    return sum;
}

hk_status_t hk_parts_make(hk_ctx_t *ctx, hk_call_t *call, const hk_algorithm_t *algorithm)
{
    parts_t *parts = call->own;
    unsigned char *room = (unsigned char *)call->own + room_of(sizeof *parts);
    hk_status_t status = HK_OK;
    parts->count = count_of(algorithm);
    for (int i = 0; i < count_of(algorithm); i++) {
        parts->call[i] = part_of(call, algorithm, i);
        parts->call[i].own = room;
        room += room_of(ctx->tp->call_bytes(&parts->call[i]));
    }
    connect(call, parts);
    call->run = run_parts;
    for (int i = 0; i < count_of(algorithm) && status == HK_OK; i++) {
        status = ctx->tp->make_call(ctx, &parts->call[i]);
        parts->made += status == HK_OK;
    }
    if (status != HK_OK) {
        hk_parts_drop(ctx, call);
    }
    return status;
}

void hk_parts_drop(hk_ctx_t *ctx, hk_call_t *call)
{
    parts_t *parts = call->own;
    while (parts->made > 0) {
        ctx->tp->drop_call(ctx, &parts->call[--parts->made]);
    }
}
