/* Two-sided messages. channel.h describes their layout in a ring. */
#include "channel_message.h"

#include <string.h>

/* Numbers wrap around. Two compared numbers differ by at most the number of slots. */
static inline bool before(uint32_t number, uint32_t other)
{
    return (int32_t)(number - other) < 0;
}

static inline uint64_t tag_of(uint32_t number, size_t size_bytes)
{
    return (uint64_t)number << 32 | (uint32_t)size_bytes;
}

static inline hk_slot_t *slot_of(hk_ring_t *ring, uint32_t number)
{
    return &ring->slot[number % HK_RING_SLOTS];
}

/* Up to 8 bytes as a word and back. The common sizes are separate cases: for an unknown size the compiler goes
 * through memory, and a word written in parts stalls the CPU when it is read. */
static inline uint64_t word_load(const void *buf, size_t size_bytes)
{
    uint64_t word = 0;
    uint32_t half;
    switch (size_bytes) {
    case 8:
        memcpy(&word, buf, 8);
        return word;
    case 4:
        memcpy(&half, buf, 4);
        return half;
    case 0:
        return 0;
    default:
        memcpy(&word, buf, size_bytes);
        return word;
    }
}

static inline void word_store(void *buf, size_t size_bytes, uint64_t word)
{
    const uint32_t half = (uint32_t)word;
    switch (size_bytes) {
    case 8:
        memcpy(buf, &word, 8);
        return;
    case 4:
        memcpy(buf, &half, 4);
        return;
    case 0:
        return;
    default:
        memcpy(buf, &word, size_bytes);
    }
}

/* ---- one message, in a free slot or out of a full one -------------------------------------------------------- */

static inline void put_in(hk_peer_t *peer, const void *buf, size_t size_bytes)
{
    const uint32_t number = peer->sent + 1;
    hk_slot_t *slot = slot_of(peer->out, number);
    uint64_t word = 0;
    if (size_bytes <= 8) {
        word = word_load(buf, size_bytes);
    } else if (size_bytes <= HK_INLINE_BYTES) {
        memcpy(slot->inlined, buf, size_bytes);
    } else if (size_bytes <= HK_EAGER_BYTES) {
        memcpy(slot->eager, buf, size_bytes);
    } else {
        word = (uintptr_t)buf;
    }
    hk_lane_publish(&slot->lane, tag_of(number, size_bytes), word);
    peer->sent = number;
}

static inline void take_out(hk_peer_t *peer, uint64_t word, void *buf, size_t size_bytes)
{
    const uint32_t number = peer->took + 1;
    const hk_slot_t *slot = slot_of(peer->in, number);
    peer->took = number;
    if (size_bytes <= 8) {
        word_store(buf, size_bytes, word);
    } else if (size_bytes <= HK_INLINE_BYTES) {
        memcpy(buf, slot->inlined, size_bytes);
    } else if (size_bytes <= HK_EAGER_BYTES) {
        memcpy(buf, slot->eager, size_bytes);
    } else {
        memcpy(buf, (const void *)(uintptr_t)word, size_bytes);
    }
    if (size_bytes >= peer->await_from_bytes || number % HK_TAKEN_EVERY == 0) {
        atomic_store_explicit(&peer->in->taken, number, memory_order_release);
    }
}

/* ---- queues of requests that could not complete at once ------------------------------------------------------ */

static void queue_append(hk_queue_t *queue, hk_queued_t *queued)
{
    queued->next = NULL;
    if (queue->first == NULL) {
        queue->first = queued;
    } else {
        queue->last->next = queued;
    }
    queue->last = queued;
}

static inline void activate(hk_channel_t *channel, hk_peer_t *peer)
{
    if (!peer->active) {
        peer->active = true;
        channel->active[channel->active_count++] = peer;
    }
}

/* Both return whether anything moved. */
static inline bool progress_recvs(hk_peer_t *peer)
{
    bool moved = false;
    while (peer->recvs.first != NULL) {
        hk_queued_t *queued = peer->recvs.first;
        const uint32_t number = peer->took + 1;
        uint64_t word;
        if (!hk_lane_poll(&slot_of(peer->in, number)->lane, tag_of(number, queued->size_bytes), &word)) {
            break;
        }
        take_out(peer, word, queued->buf, queued->size_bytes);
        peer->recvs.first = queued->next;
        moved = true;
    }
    return moved;
}

static inline bool progress_sends(hk_peer_t *peer)
{
    bool moved = false;
    const uint32_t taken = atomic_load_explicit(&peer->out->taken, memory_order_acquire);
    const uint32_t may = taken + HK_RING_SLOTS;
    while (peer->sends.first != NULL && before(peer->sent, may)) {
        hk_queued_t *queued = peer->sends.first;
        put_in(peer, queued->buf, queued->size_bytes);
        if (queued->size_bytes >= peer->await_from_bytes) {
            peer->awaiting = true;
            peer->awaited = peer->sent;
        }
        peer->sends.first = queued->next;
        moved = true;
    }
    peer->may = may; /* == sent if sends are left */
    if (peer->awaiting && !before(taken, peer->awaited)) {
        peer->awaiting = false;
        moved = true;
    }
    return moved;
}

/* Make progress on every open request. */
static bool progress(hk_channel_t *channel)
{
    bool moved = false;
    for (int i = 0; i < channel->active_count;) {
        hk_peer_t *peer = channel->active[i];
        moved |= progress_recvs(peer);
        if (peer->awaiting || peer->sends.first != NULL) {
            moved |= progress_sends(peer);
        }
        if (peer->recvs.first == NULL && peer->sends.first == NULL && !peer->awaiting) {
            peer->active = false;
            channel->active[i] = channel->active[--channel->active_count];
        } else {
            i++;
        }
    }
    return moved;
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

/* Whether the awaited message is there with an unexpected size. */
static hk_status_t check_length(hk_channel_t *channel, hk_peer_t *peer, size_t size_bytes)
{
    const uint32_t number = peer->took + 1;
    const uint64_t tag = hk_lane_tag(&slot_of(peer->in, number)->lane);
    if ((uint32_t)(tag >> 32) != number || tag == tag_of(number, size_bytes)) {
        return HK_OK;
    }
    return hk_fail(HK_ERR_CORRUPT, channel->base.rank, "%s: rank %d sent %u bytes where %zu were expected",
                   channel->base.tp->name, (int)(peer - channel->peer), (unsigned)tag, size_bytes);
}

__attribute__((noinline, cold)) hk_status_t hk_channel_idle(hk_channel_t *channel, uint64_t polls)
{
    const bool has_moved = progress(channel);
    for (int i = 0; i < channel->active_count; i++) {
        hk_peer_t *peer = channel->active[i];
        if (peer->recvs.first != NULL) {
            HK_TRY(check_length(channel, peer, peer->recvs.first->size_bytes));
        }
    }
    if (polls >= channel->rest_after) {
        channel->rest(channel, has_moved);
    }
    return HK_OK;
}

static inline hk_status_t await_taken(hk_channel_t *channel, hk_peer_t *peer, uint32_t number)
{
    uint64_t polls = 0;
    uint32_t taken = atomic_load_explicit(&peer->out->taken, memory_order_acquire);
    while (before(taken, number)) {
        HK_TRY(hk_channel_spin(channel, &polls));
        taken = atomic_load_explicit(&peer->out->taken, memory_order_acquire);
    }
    peer->may = taken + HK_RING_SLOTS;
    return HK_OK;
}

/* The ring is full, or earlier sends are queued: make progress until a slot is free. */
static __attribute__((noinline)) hk_status_t await_slot(hk_channel_t *channel, hk_peer_t *peer)
{
    uint64_t polls = 0;
    while (progress_sends(peer), !before(peer->sent, peer->may)) {
        HK_TRY(hk_channel_spin(channel, &polls));
    }
    return HK_OK;
}

/* Earlier receives from this peer are open: wait until they have their messages. */
static __attribute__((noinline)) hk_status_t await_turn(hk_channel_t *channel, hk_peer_t *peer)
{
    uint64_t polls = 0;
    while (progress_recvs(peer), peer->recvs.first != NULL) {
        HK_TRY(hk_channel_spin(channel, &polls));
    }
    return HK_OK;
}

/* ---- blocking ------------------------------------------------------------------------------------------------ */

hk_status_t hk_channel_send(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    hk_peer_t *peer = &channel->peer[to];
    if (HK_UNLIKELY(!before(peer->sent, peer->may))) {
        HK_TRY(await_slot(channel, peer));
    }
    put_in(peer, buf, size_bytes);
    if (size_bytes >= peer->await_from_bytes) {
        return await_taken(channel, peer, peer->sent);
    }
    return HK_OK;
}

hk_status_t hk_channel_recv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    hk_peer_t *peer = &channel->peer[from];
    if (HK_UNLIKELY(peer->recvs.first != NULL)) {
        HK_TRY(await_turn(channel, peer));
    }
    const uint32_t number = peer->took + 1;
    hk_lane_t *lane = &slot_of(peer->in, number)->lane;
    const uint64_t tag = tag_of(number, size_bytes);
    uint64_t word, polls = 0;
    while (!hk_lane_poll(lane, tag, &word)) {
        HK_TRY(hk_channel_spin(channel, &polls));
        if (HK_UNLIKELY(polls >= channel->patience)) {
            HK_TRY(check_length(channel, peer, size_bytes));
        }
    }
    take_out(peer, word, buf, size_bytes);
    return HK_OK;
}

/* A failed probe counts as a poll of a wait, which yields the CPU from time to time. */
hk_status_t hk_channel_probe(hk_ctx_t *ctx, int from, bool *is_there_p)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    const hk_peer_t *peer = &channel->peer[from];
    const uint32_t number = peer->took + 1;
    *is_there_p = (uint32_t)(hk_lane_tag(&slot_of(peer->in, number)->lane) >> 32) == number;
    if (*is_there_p) {
        channel->probes = 0;
        return HK_OK;
    }
    return hk_channel_spin(channel, &channel->probes);
}

/* ---- non-blocking -------------------------------------------------------------------------------------------- */

hk_status_t hk_channel_isend(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    hk_peer_t *peer = &channel->peer[to];
    if (HK_LIKELY(before(peer->sent, peer->may))) {
        put_in(peer, buf, size_bytes);
        if (size_bytes >= peer->await_from_bytes) {
            peer->awaiting = true;
            peer->awaited = peer->sent;
            activate(channel, peer);
        }
        return HK_OK;
    }
    hk_queued_t *queued = (hk_queued_t *)(void *)req;
    *queued = (hk_queued_t){.buf = (unsigned char *)(uintptr_t)buf, .size_bytes = size_bytes};
    queue_append(&peer->sends, queued);
    activate(channel, peer);
    (void)progress_sends(peer);
    return HK_OK;
}

hk_status_t hk_channel_irecv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes, hk_req_t *req)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    hk_peer_t *peer = &channel->peer[from];
    hk_queued_t *queued = (hk_queued_t *)(void *)req;
    *queued = (hk_queued_t){.buf = buf, .size_bytes = size_bytes};
    queue_append(&peer->recvs, queued);
    activate(channel, peer);
    return HK_OK;
}

/* reqs are all open requests, and the queues hold them in the order of their start. So reqs is not read. */
hk_status_t hk_channel_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs;
    (void)count;
    hk_channel_t *channel = hk_channel_of(ctx);
    uint64_t polls = 0;
    for (;;) {
        const bool moved = progress(channel);
        if (channel->active_count == 0) {
            return HK_OK;
        }
        if (moved) {
            polls = 0;
            continue;
        }
        HK_TRY(hk_channel_spin(channel, &polls));
    }
}
