/* A library between MPI and the wire: UCX or libfabric. Ranks exchange addresses over the control star, and the library
 * connects two of them at their first message. It carries messages only within its calls, so a rank that has finished
 * goes on with them until all have (hk_control_t). */
#ifndef HK_LAYER_H
#define HK_LAYER_H

#include <sched.h>
#include <stdlib.h>

#include "../control.h"
#include "../sync.h"
#include "../transport.h"

/* Transports embed it as the first member of their context. */
typedef struct hk_layer {
    hk_ctx_t base;
    hk_control_t *control;
    bool gives_way; /* oversubscribed */
    bool is_lost;   /* a message has failed, which was logged */
    char library[256];
} hk_layer_t;

/* The `own` of a table. */
typedef struct hk_layer_kind {
    size_t ctx_bytes;                                        /* zeros after the common part */
    uint64_t features;                                       /* as the library names them */
    hk_status_t (*make)(hk_ctx_t *ctx, const hk_job_t *job); /* what a message to this rank needs */
    hk_status_t (*connect)(hk_ctx_t *ctx);                   /* on all ranks or on none */
    void (*describe)(hk_ctx_t *ctx);                         /* sets `library` */
    void (*progress)(hk_ctx_t *ctx);
    void (*drop)(hk_ctx_t *ctx); /* also what `make` has left when it failed; the context itself stays */
} hk_layer_kind_t;

static inline hk_layer_t *hk_layer_of(hk_ctx_t *ctx)
{
    return (hk_layer_t *)ctx;
}

static inline void hk_layer_drop(hk_ctx_t *ctx)
{
    hk_layer_of(ctx)->control->progress = NULL;
    ((const hk_layer_kind_t *)ctx->tp->own)->drop(ctx);
    free(ctx);
}

/* The hook open. */
static inline hk_status_t hk_layer_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    const hk_layer_kind_t *kind = tp->own;
    hk_control_t *control = job->control;
    hk_layer_t *layer = hk_control_calloc(control, 1, kind->ctx_bytes);
    if (layer == NULL) {
        return HK_ERR_MEMORY;
    }
    hk_ctx_t *ctx = &layer->base;
    *ctx = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    layer->control = control;
    layer->gives_way = job->oversubscribed != 0;
    hk_status_t status = hk_control_agree(control, kind->make(ctx, job));
    status = status == HK_OK ? kind->connect(ctx) : status;
    if (status == HK_OK) {
        control->ctx = ctx;
        control->progress = kind->progress;
        status = hk_control_agree(control, hk_greet_all(ctx));
    }
    if (status != HK_OK) {
        hk_layer_drop(ctx);
        return status;
    }
    kind->describe(ctx);
    *ctx_p = ctx;
    return HK_OK;
}

/* The hook close. No rank leaves before all have what they wait for. */
static inline void hk_layer_close(hk_ctx_t *ctx)
{
    (void)hk_control_barrier(hk_layer_of(ctx)->control);
    hk_layer_drop(ctx);
}

/* The hook library. */
static inline const char *hk_layer_library(const hk_ctx_t *ctx)
{
    return ((const hk_layer_t *)ctx)->library;
}

/* A message has failed, which is logged, once. The library is not called any more, since requests may have memory that
 * goes with the point. Out of line and cold, so that hooks stay a compare and a jump. */
__attribute__((cold, noinline, unused)) static hk_status_t hk_layer_lose(hk_ctx_t *ctx, const char *what,
                                                                         const char *why)
{
    if (!hk_layer_of(ctx)->is_lost) {
        hk_log(ctx->rank, "%s: %s failed: %s", ctx->tp->name, what, why);
    }
    hk_layer_of(ctx)->is_lost = true;
    hk_layer_of(ctx)->control->progress = NULL;
    return HK_ERR_PEER;
}

/* After a call that lets messages move, but has moved none. */
static inline void hk_layer_rest(hk_ctx_t *ctx)
{
    if (hk_layer_of(ctx)->gives_way) {
        (void)sched_yield();
    }
}

#endif
