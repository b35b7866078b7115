/* cold */
#include "queues.h"

#include <stdio.h>
#include <string.h>

#include "../device.h"
#include "../sync.h"

/* Each message is its own tag, in 8 bytes: small enough to be sent before there is a receive. */
enum { QUEUED_BYTES = sizeof(uint64_t), POSTED_TAG = HK_TAG_MAX / 2 };

hk_queues_t hk_queues_of(const hk_run_t *run, size_t place, size_t bytes)
{
    hk_queues_t queues = {.unexpected = (size_t)run->option[place + HK_QUEUE_UNEXPECTED],
                          .posted = (size_t)run->option[place + HK_QUEUE_PREPOSTED],
                          .room_bytes = bytes};
    const size_t most = queues.unexpected > queues.posted ? queues.unexpected : queues.posted;
    if (most > 0) {
        queues.at = (bytes + QUEUED_BYTES - 1) / QUEUED_BYTES * QUEUED_BYTES;
        queues.room_bytes = queues.at + most * QUEUED_BYTES;
    }
    return queues;
}

static bool queues_are_filled(const hk_queues_t *queues)
{
    return queues->unexpected > 0 || queues->posted > 0;
}

bool hk_queues_fit(const hk_run_t *run, size_t place, char *why, size_t len)
{
    const hk_queues_t queues = hk_queues_of(run, place, 0);
    if (queues_are_filled(&queues) && hk_asks_memory(run)) {
        snprintf(why, len, "messages of unexpected= and preposted= are written by the CPU: leave memory= out");
        return false;
    }
    snprintf(why, len, "%s= needs messages with tags, which %s does not offer",
             queues.unexpected > 0 ? "unexpected" : "preposted", run->ctx->tp->name);
    return !queues_are_filled(&queues) || (run->ctx->tp->caps & HK_CAP_MATCHING) != 0;
}

/* Sends messages with tags from `first` on. */
static hk_status_t queues_send(hk_run_t *run, const hk_queues_t *queues, int peer, int first, size_t count)
{
    hk_ctx_t *ctx = run->ctx;
    for (size_t i = 0; i < count; i++) {
        unsigned char *at = run->out + queues->at + i * QUEUED_BYTES;
        const int tag = first + (int)i;
        const uint64_t text = (uint64_t)tag << 32 | (unsigned)ctx->rank;
        memcpy(at, &text, QUEUED_BYTES);
        HK_TRY(ctx->tp->send_tagged(ctx, peer, tag, at, QUEUED_BYTES));
    }
    return HK_OK;
}

/* Compares the message with this tag. */
static hk_status_t queues_check(const hk_run_t *run, const hk_queues_t *queues, int peer, int tag, size_t i)
{
    uint64_t text = 0;
    memcpy(&text, run->in + queues->at + i * QUEUED_BYTES, QUEUED_BYTES);
    if (text == ((uint64_t)tag << 32 | (unsigned)peer)) {
        return HK_OK;
    }
    return hk_fail(HK_ERR_CORRUPT, run->ctx->rank, "the message with tag %d from rank %d holds tag %d of rank %d", tag,
                   peer, (int)(text >> 32), (int)(text & UINT32_MAX));
}

hk_status_t hk_queues_fill(hk_run_t *run, const hk_queues_t *queues, int peer)
{
    hk_ctx_t *ctx = run->ctx;
    for (size_t i = 0; i < queues->posted && peer >= 0; i++) {
        HK_TRY(ctx->tp->irecv_tagged(ctx, peer, POSTED_TAG + 1 + (int)i, run->in + queues->at + i * QUEUED_BYTES,
                                     QUEUED_BYTES, &run->reqs[1 + i]));
    }
    HK_TRY(peer < 0 ? HK_OK : queues_send(run, queues, peer, 1, queues->unexpected));
    /* A library may take messages only in its calls, and keep the peer waiting that sends many. */
    return queues_are_filled(queues) ? hk_sync(ctx) : HK_OK;
}

/* Takes all messages, and compares them. */
static hk_status_t queues_take(hk_run_t *run, const hk_queues_t *queues, int peer, hk_status_t *found_p)
{
    hk_ctx_t *ctx = run->ctx;
    HK_TRY(queues_send(run, queues, peer, POSTED_TAG + 1, queues->posted));
    HK_TRY(queues->posted == 0 ? HK_OK : ctx->tp->wait_all(ctx, &run->reqs[1], queues->posted));
    for (size_t i = 0; i < queues->posted && *found_p == HK_OK; i++) {
        *found_p = queues_check(run, queues, peer, POSTED_TAG + 1 + (int)i, i);
    }
    for (size_t i = 0; i < queues->unexpected; i++) {
        HK_TRY(ctx->tp->recv_tagged(ctx, peer, 1 + (int)i, run->in + queues->at + i * QUEUED_BYTES, QUEUED_BYTES));
    }
    for (size_t i = 0; i < queues->unexpected && *found_p == HK_OK; i++) {
        *found_p = queues_check(run, queues, peer, 1 + (int)i, i);
    }
    return HK_OK;
}

hk_status_t hk_queues_empty(hk_run_t *run, const hk_queues_t *queues, int peer)
{
    hk_status_t found = HK_OK;
    HK_TRY(hk_unless_broken(peer < 0 ? HK_OK : queues_take(run, queues, peer, &found)));
    HK_TRY(hk_unless_broken(queues_are_filled(queues) ? hk_sync(run->ctx) : HK_OK));
    return found;
}
