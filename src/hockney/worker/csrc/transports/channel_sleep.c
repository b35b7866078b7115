/* shm:sleep: the channel of shm, where a rank that waits sleeps in futex(2) until another rings its bell.
 *
 * What a rank does for another, a message or the news that one was taken, is followed by a ring. A rank rings when a
 * hook ends, and before it sleeps itself. It sleeps only if its bell has not rung since it last looked at everything
 * that it waits for, so no ring is missed. */
#include "channel_sleep.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static hk_bell_t *sleep_bell(hk_mapping_t *mapping, int rank)
{
    return (hk_bell_t *)(void *)hk_channel_flag(mapping, rank, mapping->rounds);
}

/* Sleep until a ring after the rings that were heard, or wake who does. */
static void sleep_call(hk_bell_t *bell, bool wakes, uint32_t value)
{
#ifdef __linux__
    (void)syscall(SYS_futex, &bell->rings, wakes ? FUTEX_WAKE : FUTEX_WAIT, value, NULL, NULL, 0);
#else
    (void)bell, (void)wakes, (void)value;
#endif
}

bool hk_channel_can_sleep(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    (void)tp;
    *how_p = "use a Linux machine";
    (void)snprintf(why, len, "only Linux has futex(2)");
#ifdef __linux__
    return true;
#else
    return false;
#endif
}

/* Both sides change one word and then read the other's; with this order of all four, one sees the change. */
static inline void sleep_ring(hk_channel_t *channel, int rank)
{
    hk_bell_t *bell = sleep_bell(channel->mapping, rank);
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&bell->is_asleep, memory_order_seq_cst) != 0) {
        sleep_call(bell, true, 1);
    }
}

/* Ring if this rank has done something for the other since it last rang. */
static inline void sleep_settle(hk_channel_t *channel, int rank)
{
    const hk_peer_t *peer = &channel->peer[rank];
    struct hk_rung *rung = &channel->rung[rank];
    const uint32_t taken = atomic_load_explicit(&peer->in->taken, memory_order_relaxed);
    if (peer->sent != rung->sent || taken != rung->taken) {
        *rung = (struct hk_rung){peer->sent, taken};
        sleep_ring(channel, rank);
    }
}

static void sleep_settle_all(hk_channel_t *channel)
{
    for (int rank = 0; rank < channel->base.size; rank++) {
        sleep_settle(channel, rank);
    }
}

void hk_channel_sleep(hk_channel_t *channel, bool has_moved)
{
    hk_bell_t *bell = sleep_bell(channel->mapping, channel->base.rank);
    sleep_settle_all(channel);
    if (has_moved || channel->is_probing) {
        return; /* what the caller waits for may be there now */
    }
    if (atomic_load_explicit(&bell->rings, memory_order_seq_cst) == channel->heard) {
        atomic_store_explicit(&bell->is_asleep, 1, memory_order_seq_cst);
        sleep_call(bell, false, channel->heard); /* not if it rings meanwhile */
        atomic_store_explicit(&bell->is_asleep, 0, memory_order_relaxed);
    }
    channel->heard = atomic_load_explicit(&bell->rings, memory_order_seq_cst);
}

hk_status_t hk_channel_sleep_send(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes)
{
    const hk_status_t status = hk_channel_send(ctx, to, buf, size_bytes);
    sleep_settle(hk_channel_of(ctx), to);
    return status;
}

hk_status_t hk_channel_sleep_recv(hk_ctx_t *ctx, int from, void *buf, size_t size_bytes)
{
    const hk_status_t status = hk_channel_recv(ctx, from, buf, size_bytes);
    sleep_settle(hk_channel_of(ctx), from);
    return status;
}

hk_status_t hk_channel_sleep_isend(hk_ctx_t *ctx, int to, const void *buf, size_t size_bytes, hk_req_t *req)
{
    const hk_status_t status = hk_channel_isend(ctx, to, buf, size_bytes, req);
    sleep_settle(hk_channel_of(ctx), to);
    return status;
}

hk_status_t hk_channel_sleep_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    const hk_status_t status = hk_channel_wait_all(ctx, reqs, count);
    sleep_settle_all(hk_channel_of(ctx));
    return status;
}

/* A probe never sleeps. */
hk_status_t hk_channel_sleep_probe(hk_ctx_t *ctx, int from, bool *is_there_p)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    channel->is_probing = true;
    const hk_status_t status = hk_channel_probe(ctx, from, is_there_p);
    channel->is_probing = false;
    return status;
}

/* hk_channel_barrier, with a ring for each flag. */
hk_status_t hk_channel_sleep_barrier(hk_ctx_t *ctx)
{
    hk_channel_t *channel = hk_channel_of(ctx);
    const uint64_t epoch = ++channel->epoch;
    for (int round = 0; round < channel->mapping->rounds; round++) {
        const int to = (int)(((int64_t)ctx->rank + (INT64_C(1) << round)) % ctx->size);
        const _Atomic uint64_t *mine = hk_channel_flag(channel->mapping, ctx->rank, round);
        uint64_t polls = 0;
        atomic_store_explicit(hk_channel_flag(channel->mapping, to, round), epoch, memory_order_release);
        sleep_ring(channel, to);
        while (atomic_load_explicit(mine, memory_order_acquire) < epoch) {
            HK_TRY(hk_channel_spin(channel, &polls));
        }
    }
    return HK_OK;
}
