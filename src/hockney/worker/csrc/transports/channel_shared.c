/* One-sided access in shared memory, and a barrier of stores and polls. */
#include "channel_message.h"

/* Symmetric memory: the same offset in the peer's slice. */
static inline unsigned char *at_peer(hk_channel_t *channel, int peer, const void *mine)
{
    return channel->peer[peer].slice + ((const unsigned char *)mine - channel->slice);
}

hk_status_t hk_channel_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    hk_shared_put(at_peer(hk_channel_of(ctx), peer, remote), local, size_bytes);
    return HK_OK;
}

hk_status_t hk_channel_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    hk_shared_get(local, at_peer(hk_channel_of(ctx), peer, remote), size_bytes);
    return HK_OK;
}

/* ThreadSanitizer does not support fences. It needs none here, because the words that are put establish the order. */
hk_status_t hk_channel_quiet(hk_ctx_t *ctx)
{
    (void)ctx;
#if defined(HK_UNDER_TSAN)
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
    return HK_OK;
}

/* Poll a word until it is value, or at least value. */
static inline hk_status_t await_word(hk_channel_t *channel, const _Atomic uint64_t *word, uint64_t value, bool at_least)
{
    uint64_t polls = 0;
    for (;;) {
        const uint64_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == value || (at_least && seen > value)) {
            return HK_OK;
        }
        HK_TRY(hk_channel_spin(channel, &polls));
    }
}

hk_status_t hk_channel_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    return await_word(hk_channel_of(ctx), (const _Atomic uint64_t *)(const void *)word, value, false);
}

/* Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k every rank signals the rank 2^k after it. A
 * flag holds the number of the barrier. It may be one ahead: its writer may already be in the next barrier. */
hk_status_t hk_channel_barrier(hk_ctx_t *ctx)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    const int rank = ctx->rank, size = ctx->size;
    const uint64_t epoch = ++channel->epoch;
    for (int round = 0; round < channel->mapping->rounds; round++) {
        const int to = (int)(((int64_t)rank + (INT64_C(1) << round)) % size);
        atomic_store_explicit(hk_channel_flag(channel->mapping, to, round), epoch, memory_order_release);
        HK_TRY(await_word(channel, hk_channel_flag(channel->mapping, rank, round), epoch, true));
    }
    return HK_OK;
}
