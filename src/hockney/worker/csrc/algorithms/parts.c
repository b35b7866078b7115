/* An operation by others of the same library: it should not be slower than those (J. L. Traeff, W. Gropp and R. Thakur,
 * Self-consistent MPI performance guidelines, 2010). */
#include <stdio.h>
#include <stdlib.h>

#include "algorithms.h"

typedef struct parts {
    hk_call_t call[2];
    int count;
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

bool hk_parts_fit(const hk_transport_t *tp, const hk_call_t *call, const hk_algorithm_t *algorithm, char *why,
                  size_t len)
{
    char lacks[160];
    for (int i = 0; i < count_of(algorithm); i++) {
        hk_call_t part = *call;
        part.operation = algorithm->parts[i];
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

hk_status_t hk_parts_make(hk_ctx_t *ctx, hk_call_t *call, const hk_algorithm_t *algorithm)
{
    const int made = count_of(algorithm);
    parts_t *parts = calloc(1, sizeof *parts);
    if (parts == NULL) {
        return hk_fail(HK_ERR_MEMORY, ctx->rank, "no memory for a collective operation");
    }
    parts->count = made;
    for (int i = 0; i < made; i++) {
        parts->call[i] = *call;
        parts->call[i].operation = algorithm->parts[i];
    }
    connect(call, parts);
    call->own = parts;
    call->run = run_parts;
    for (int i = 0; i < made; i++) {
        HK_TRY(ctx->tp->make_call(ctx, &parts->call[i]));
    }
    return HK_OK;
}

void hk_parts_drop(hk_ctx_t *ctx, hk_call_t *call)
{
    parts_t *parts = call->own;
    for (int i = 1; i >= 0; i--) {
        if (parts->call[i].own != NULL) {
            ctx->tp->drop_call(ctx, &parts->call[i]);
        }
    }
    free(parts);
    call->own = NULL;
}
