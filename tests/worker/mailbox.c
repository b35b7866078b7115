/* Two-sided messages made of puts, gets and waits for words, over the transport HK_MAILBOX_OVER. So all two-sided
 * patterns, with their payload checks, test that transport's one-sided hooks.
 *
 * Each pair of ranks has a mailbox at the receiver and an outbox at the sender. Alternate messages are put into the
 * mailbox, followed by their number, or wait in the outbox for a get. */
#include <stdlib.h>
#include <string.h>

#include "transport.h"

extern const hk_transport_t HK_MAILBOX_OVER;

#if !defined(HK_MAILBOX_BYTES)
#define HK_MAILBOX_BYTES (1 << 17)
#endif

enum { BOX_BYTES = HK_MAILBOX_BYTES };

/* The symmetric memory of a rank for one peer. */
typedef struct box {
    uint64_t come;      /* number of messages from the peer that have arrived */
    uint64_t taken;     /* number of messages to the peer that it has taken */
    uint64_t number[2]; /* sources of the puts to the two above */
    unsigned char in[BOX_BYTES], out[BOX_BYTES];
} box_t;

typedef struct mailbox {
    hk_ctx_t base;
    hk_ctx_t *under;
    box_t *box; /* [size] */
} mailbox_t;

static hk_ctx_t *under(hk_ctx_t *ctx)
{
    return ((mailbox_t *)ctx)->under;
}

static hk_status_t mailbox_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    mailbox_t *mine = calloc(1, sizeof *mine);
    const size_t size_bytes = (size_t)job->size * sizeof *mine->box;
    if (mine == NULL || HK_MAILBOX_OVER.open(&HK_MAILBOX_OVER, job, &mine->under) != HK_OK) {
        free(mine);
        return HK_ERR_SYSTEM;
    }
    mine->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    mine->box = HK_MAILBOX_OVER.alloc(mine->under, size_bytes);
    if (mine->box == NULL) {
        free(mine);
        return HK_ERR_MEMORY;
    }
    memset(mine->box, 0, size_bytes);
    *ctx_p = &mine->base;
    return HK_MAILBOX_OVER.barrier(mine->under);
}

static void mailbox_close(hk_ctx_t *ctx)
{
    mailbox_t *mine = (mailbox_t *)ctx;
    HK_MAILBOX_OVER.free(mine->under, mine->box, (size_t)ctx->size * sizeof *mine->box);
    HK_MAILBOX_OVER.close(mine->under);
    free(mine);
}

static const char *mailbox_library(const hk_ctx_t *ctx)
{
    return HK_MAILBOX_OVER.library(((const mailbox_t *)ctx)->under);
}

static void *mailbox_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    return HK_MAILBOX_OVER.alloc(under(ctx), size_bytes);
}

static void mailbox_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    HK_MAILBOX_OVER.free(under(ctx), memory, size_bytes);
}

static hk_status_t mailbox_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    const hk_transport_t *tp = &HK_MAILBOX_OVER;
    box_t *to = &((mailbox_t *)ctx)->box[peer];
    box_t *mine = &((mailbox_t *)ctx)->box[ctx->rank]; /* its own box at the peer */
    hk_status_t status = tp->wait_word(under(ctx), &to->taken, to->number[0]);
    if (status == HK_OK) {
        memcpy(to->out, buf, size_bytes);
        to->number[0]++;
        if (to->number[0] % 2 == 0) {
            status = tp->put(under(ctx), peer, mine->in, to->out, size_bytes);
        }
    }
    if (status == HK_OK) {
        status = tp->quiet(under(ctx));
    }
    return status == HK_OK ? tp->put(under(ctx), peer, &mine->come, &to->number[0], 8) : status;
}

static hk_status_t mailbox_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const hk_transport_t *tp = &HK_MAILBOX_OVER;
    box_t *from = &((mailbox_t *)ctx)->box[peer];
    box_t *mine = &((mailbox_t *)ctx)->box[ctx->rank];
    hk_status_t status = tp->wait_word(under(ctx), &from->come, ++from->number[1]);
    if (status == HK_OK && from->number[1] % 2 == 1) {
        status = tp->get(under(ctx), peer, from->in, mine->out, size_bytes);
    }
    if (status == HK_OK) {
        memcpy(buf, from->in, size_bytes);
        status = tp->put(under(ctx), peer, &mine->taken, &from->number[1], 8);
    }
    return status;
}

static hk_status_t mailbox_barrier(hk_ctx_t *ctx)
{
    return HK_MAILBOX_OVER.barrier(under(ctx));
}

const hk_transport_t hk_transport_mailbox = {
    .caps = HK_CAP_SEND | HK_CAP_PAYLOAD,
    .name = "mailbox",
    .summary = "messages made of puts, gets and waits for words",
    .max_bytes = BOX_BYTES,
    .open = mailbox_open,
    .close = mailbox_close,
    .library = mailbox_library,
    .alloc = mailbox_alloc,
    .free = mailbox_free,
    .send = mailbox_send,
    .recv = mailbox_recv,
    .barrier = mailbox_barrier,
    .now_ns = hk_real_now_ns,
    .compute = hk_real_compute,
};
