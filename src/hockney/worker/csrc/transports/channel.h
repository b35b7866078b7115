/* Messages through memory that all ranks share, for the transports shm and threads. They differ only in what a rank is.
 * In shm:sync more sends wait. So all are tables over these functions.
 *
 * One mapping, made before the ranks start and therefore at the same address in all of them, holds
 *   - barrier flags: a line for each rank and round; bells: one for each rank;
 *   - rings: for each ordered pair of ranks, a ring of slots with one writer and one reader;
 *   - the arena: a slice for each rank, from which alloc takes message buffers, so that peers can read them.
 * A message takes one slot. Its size, which both ranks know, decides how:
 *   up to 8 bytes           inside the lane: one 16-byte store writes tag and payload
 *   up to HK_INLINE_BYTES   in the rest of the lane's cache line, then the lane
 *   up to HK_EAGER_BYTES    in the rest of the slot, then the lane
 *   more                    the lane carries the address; the receiver copies directly from the sender's buffer
 * The lane's tag combines the message's number in its ring and its size. So the reader identifies its message with
 * one comparison, and detects a different size. */
#ifndef HK_TRANSPORTS_CHANNEL_H
#define HK_TRANSPORTS_CHANNEL_H

#include "../cacheline.h"
#include "../transport.h"

/* Up to HK_EAGER_BYTES a message is copied in and out, and its sender does not wait. Measured on Zen 4, with cores
 * 27 to 45 ns apart: at 512 bytes single copy halves the latency (55 to 80 ns instead of 115), and the stream of
 * blocking sends is within a quarter. At 256 bytes it is no faster, and the stream of blocking sends is half as
 * fast. */
enum {
    HK_RING_SLOTS = 64,  /* how far a sender may run ahead; a power of two */
    HK_TAKEN_EVERY = 32, /* messages between two updates of `taken`; at most half of the slots, or both ranks may wait
                            for each other */
    HK_INLINE_BYTES = HK_LINE_BYTES - (int)sizeof(hk_lane_t),
    HK_EAGER_BYTES = 256,
};

/* Five lines: the reader polls the first, the others hold what does not fit there. The distance between polled lines
 * matters. With 1, 2, 4 or 8 lines the reader's prefetcher takes the next ones from the writer, and half a round
 * trip costs a third more (Zen 4: 48 ns with 3 or 5 lines, 65 with 1, 58 with 2, 70 with 4 and 8). */
typedef struct hk_slot {
    _Alignas(HK_LINE_BYTES) hk_lane_t lane;
    unsigned char inlined[HK_INLINE_BYTES];
    unsigned char eager[HK_EAGER_BYTES];
} hk_slot_t;

typedef struct hk_ring {
    _Alignas(HK_SEPARATE_BYTES) hk_slot_t slot[HK_RING_SLOTS];
    _Alignas(HK_SEPARATE_BYTES) _Atomic uint32_t taken; /* number of the last message that the reader has finished */
} hk_ring_t;

/* The layout of the mapping, at its start. */
typedef struct hk_mapping {
    size_t size_bytes;
    int size;
    int rounds; /* of the barrier */
    size_t flags_at, rings_at, arena_at;
    size_t slice_bytes;
} hk_mapping_t;

/* A queued send or receive, in the caller's hk_req_t. */
typedef struct hk_queued {
    struct hk_queued *next;
    unsigned char *buf;
    size_t size_bytes;
} hk_queued_t;

_Static_assert(sizeof(hk_queued_t) <= sizeof(hk_req_t), "channel: a queued message does not fit hk_req_t");

typedef struct hk_queue {
    hk_queued_t *first, *last; /* last is invalid while first is NULL */
} hk_queue_t;

/* This rank's side of its two rings with a peer. */
typedef struct hk_peer {
    hk_ring_t *out;
    uint32_t sent;    /* number of the last message in out */
    uint32_t may;     /* sends up to this number need no check of `taken`; equals `sent` while sends are queued */
    uint32_t awaited; /* number of the last message to wait for, while awaiting */
    bool awaiting;    /* the reader has not yet taken that message */
    bool active;      /* listed in channel->active */
    uint32_t await_from_bytes; /* a send of this size or more waits until it is taken */
    hk_queue_t sends;          /* started, but not in the ring yet */

    hk_ring_t *in;
    uint32_t took; /* number of the last message taken from in */
    hk_queue_t recvs;
    unsigned char *slice; /* the peer's part of the arena */
} hk_peer_t;

typedef struct hk_channel {
    hk_ctx_t base;
    hk_mapping_t *mapping;
    hk_peer_t *peer;    /* one for each rank, including this one */
    hk_peer_t **active; /* those with queued or awaited messages */
    int active_count;
    uint32_t patience;   /* polls before a wait handles other requests and checks for a wrong size */
    uint64_t rest_after; /* polls before a wait without progress rests */
    void (*rest)(struct hk_channel *channel, bool has_moved); /* yields the CPU, or sleeps */
    uint64_t epoch;                                           /* of the barrier */
    uint64_t probes;                                          /* consecutive probes without a message */
    struct hk_rung *rung; /* [size], and the next two, where ranks sleep (channel_sleep.h) */
    uint32_t heard;       /* rings of this rank's bell, when it last looked at what it waits for */
    bool is_probing;
    unsigned char *slice; /* this rank's part of the arena */
    size_t slice_used;
    char library[128];
} hk_channel_t;

/* A line of a rank for each round of the barrier, and one for its bell. */
static inline _Atomic uint64_t *hk_channel_flag(hk_mapping_t *mapping, int rank, int round)
{
    unsigned char *flags = (unsigned char *)mapping + mapping->flags_at;
    const size_t i = (size_t)rank * ((size_t)mapping->rounds + 1) + (size_t)round;
    return (_Atomic uint64_t *)(void *)(flags + i * HK_SEPARATE_BYTES);
}

static inline hk_channel_t *hk_channel_of(hk_ctx_t *ctx)
{
    return (hk_channel_t *)ctx;
}

/* The hooks for the context and its memory; channel_message.h has the others. */
hk_status_t hk_channel_prepare(const hk_transport_t *tp, int size, void **shared_p);
hk_status_t hk_channel_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);
void hk_channel_close(hk_ctx_t *ctx);
const char *hk_channel_library(const hk_ctx_t *ctx);
void *hk_channel_alloc(hk_ctx_t *ctx, size_t size_bytes);
void hk_channel_free(hk_ctx_t *ctx, void *memory, size_t size_bytes);
void hk_channel_release(void *shared);

extern const hk_limit_t hk_channel_limits[];

#endif
