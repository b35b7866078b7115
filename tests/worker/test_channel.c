/* The transports shm, shm:sync and threads, with ranks as processes and as threads: sizes, order, full rings,
 * requests of all kinds at once, more ranks than CPUs, one-sided access, the barrier, message numbers that wrap.
 *
 *     W=src/hockney/worker/csrc
 *     cc -std=c17 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -I$W tests/worker/test_channel.c \
 *        $W/transports/{channel,channel_message,channel_shared,shm}.c $W/{status,machine}.c -pthread
 *
 * and the same with -fsanitize=thread, and with -DHK_LANE_PORTABLE, which tests the path of machines without 16-byte
 * stores. Ends with 0 and one line for each transport, or with 1 and the check that failed. Takes some seconds; with
 * the argument `short` a tenth of the steps. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "transports/channel.h"

extern const hk_transport_t hk_transport_shm, hk_transport_shm_sync, hk_transport_threads;

_Static_assert(HK_INLINE_BYTES == 48 && HK_EAGER_BYTES == 256 && HK_RING_SLOTS == 64 && sizeof(hk_slot_t) == 320,
               "docs/transports.md and analysis/thresholds.toml contain these numbers");

enum {
    RANKS_MAX = 6,
    ROOM_BYTES = 1 << 20, /* of each of a rank's two buffers */
    GUARD_BYTES = 8,
    LONGEST_BYTES = 70000,
    YIELD_AFTER = 4096, /* looks, ~0.1 ms: others may need the CPU for what a rank waits for */
    SHORT = 10,         /* a short test takes only every tenth step */
};

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* One rank in a test. */
typedef struct rank {
    hk_ctx_t *ctx;
    const hk_transport_t *tp;
    int me, size;
    uint32_t stride; /* of steps: SHORT in a short test, else 1 */
    unsigned char *out, *in;
    uint64_t random;
} rank_t;

typedef void body_t(rank_t *rank);

typedef struct job {
    const hk_transport_t *tp;
    void *shared;
    int size, rank, oversubscribed;
    uint32_t stride;
    body_t *body;
} job_t;

static void be_rank(const job_t *test)
{
    const hk_job_t job = {
        .rank = test->rank, .size = test->size, .shared = test->shared, .oversubscribed = test->oversubscribed};
    rank_t rank = {.tp = test->tp,
                   .me = test->rank,
                   .size = test->size,
                   .stride = test->stride,
                   .random = (uint64_t)test->rank + 1};
    CHECK(test->tp->open(test->tp, &job, &rank.ctx) == HK_OK);
    CHECK(rank.ctx->tp == test->tp && rank.ctx->rank == test->rank && rank.ctx->size == test->size);
    hk_channel_t *channel = hk_channel_of(rank.ctx);
    channel->rest_after = channel->rest_after < YIELD_AFTER ? channel->rest_after : YIELD_AFTER;
    rank.out = test->tp->alloc(rank.ctx, ROOM_BYTES);
    rank.in = test->tp->alloc(rank.ctx, ROOM_BYTES);
    CHECK(rank.out != NULL && rank.in != NULL);
    test->body(&rank);
    CHECK(test->tp->barrier(rank.ctx) == HK_OK);
    test->tp->free(rank.ctx, rank.in, ROOM_BYTES);
    test->tp->free(rank.ctx, rank.out, ROOM_BYTES);
    test->tp->close(rank.ctx);
}

static void *be_thread(void *argument)
{
    be_rank(argument);
    return NULL;
}

static void run_job(const hk_transport_t *tp, int size, int oversubscribed, uint32_t stride, body_t *body)
{
    job_t job[RANKS_MAX];
    pthread_t thread[RANKS_MAX] = {0};
    pid_t pid[RANKS_MAX] = {0};
    void *shared = NULL;
    CHECK(tp->prepare(tp, size, &shared) == HK_OK);
    for (int r = 0; r < size; r++) {
        job[r] = (job_t){tp, shared, size, r, oversubscribed, stride, body};
        if ((tp->caps & HK_CAP_THREADS) != 0) {
            CHECK(pthread_create(&thread[r], NULL, be_thread, &job[r]) == 0);
        } else {
            pid[r] = check_fork();
            if (pid[r] == 0) {
                be_rank(&job[r]);
                exit(0);
            }
        }
    }
    for (int r = 0; r < size; r++) {
        if ((tp->caps & HK_CAP_THREADS) != 0) {
            CHECK(pthread_join(thread[r], NULL) == 0);
        } else {
            check_end(pid[r]);
        }
    }
    hk_channel_release(shared);
}

/* ---- payloads ---------------------------------------------------------------------------------------------------- */

static unsigned char byte_of(uint32_t seed, size_t i)
{
    return (unsigned char)(seed * 131u + (uint32_t)i * 7u + (uint32_t)(i >> 8) + 1u);
}

static void fill(unsigned char *buf, size_t size_bytes, uint32_t seed)
{
    for (size_t i = 0; i < size_bytes; i++) {
        buf[i] = byte_of(seed, i);
    }
}

static bool holds(const unsigned char *buf, size_t size_bytes, uint32_t seed)
{
    for (size_t i = 0; i < size_bytes; i++) {
        if (buf[i] != byte_of(seed, i)) {
            return false;
        }
    }
    return true;
}

static bool is_all(const unsigned char *buf, size_t size_bytes, unsigned char value)
{
    for (size_t i = 0; i < size_bytes; i++) {
        if (buf[i] != value) {
            return false;
        }
    }
    return true;
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Mostly sizes at which the method changes, and their neighbours. */
static size_t draw_length(uint64_t *state)
{
    static const size_t edges[] = {1, 4, 8, 9, HK_INLINE_BYTES, HK_INLINE_BYTES + 1, HK_EAGER_BYTES, 1024, 4096, 8191};
    const uint64_t x = draw(state);
    if (x % 4 == 0) {
        return (size_t)(x >> 32) % 9000;
    }
    return edges[(x >> 8) % (sizeof edges / sizeof edges[0])] + (size_t)((x >> 16) % 3) - 1;
}

/* ---- blocking messages ------------------------------------------------------------------------------------------- */

/* Back and forth, at an unaligned address; bytes before and after the message must not change. */
static void bounce(rank_t *rank, size_t size_bytes)
{
    const uint32_t seed = (uint32_t)size_bytes;
    unsigned char *out = rank->out + size_bytes % 61, *in = rank->in + GUARD_BYTES + size_bytes % 67;
    memset(in - GUARD_BYTES, 0xee, size_bytes + 2 * (size_t)GUARD_BYTES);
    fill(out, size_bytes, seed + (uint32_t)rank->me);
    if (rank->me == 0) {
        CHECK(rank->tp->send(rank->ctx, 1, out, size_bytes) == HK_OK);
        CHECK(rank->tp->recv(rank->ctx, 1, in, size_bytes) == HK_OK);
    } else {
        CHECK(rank->tp->recv(rank->ctx, 0, in, size_bytes) == HK_OK);
        CHECK(rank->tp->send(rank->ctx, 0, out, size_bytes) == HK_OK);
    }
    CHECK(holds(in, size_bytes, seed + (uint32_t)(1 - rank->me)));
    CHECK(is_all(in - GUARD_BYTES, GUARD_BYTES, 0xee) && is_all(in + size_bytes, GUARD_BYTES, 0xee));
}

static void test_lengths(rank_t *rank)
{
    for (size_t size_bytes = 0; size_bytes < 600; size_bytes += size_bytes < 2 * HK_INLINE_BYTES ? 1 : rank->stride) {
        bounce(rank, size_bytes);
    }
    for (size_t size_bytes = HK_EAGER_BYTES - 2; size_bytes <= HK_EAGER_BYTES + 2; size_bytes++) {
        bounce(rank, size_bytes);
    }
    for (size_t edge = 1024; edge <= 65536; edge *= 2) {
        for (size_t size_bytes = edge - 2; size_bytes <= edge + 2; size_bytes++) {
            bounce(rank, size_bytes);
        }
    }
    for (size_t size_bytes = 601; size_bytes <= LONGEST_BYTES; size_bytes += (size_t)997 * rank->stride) {
        bounce(rank, size_bytes);
    }
}

/* The sender runs ahead as far as the ring allows, with mixed sizes. */
static void test_stream(rank_t *rank)
{
    uint64_t lengths = 7;
    for (uint32_t i = 0; i < 3000 / rank->stride; i++) {
        const size_t size_bytes = draw_length(&lengths) % (i % 100 < 80 ? HK_EAGER_BYTES + 1 : 9000);
        if (rank->me == 0) {
            fill(rank->out, size_bytes, i);
            CHECK(rank->tp->send(rank->ctx, 1, rank->out, size_bytes) == HK_OK);
        } else {
            CHECK(rank->tp->recv(rank->ctx, 0, rank->in, size_bytes) == HK_OK);
            CHECK(holds(rank->in, size_bytes, i));
        }
    }
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

enum { MANY = 5 * HK_RING_SLOTS + 3, SPAN_BYTES = 1024 };

/* Both ranks start more messages than their rings hold, before either receives any. */
static void test_full_rings(rank_t *rank)
{
    static const size_t lengths[] = {8, 0, SPAN_BYTES, 40, 200, SPAN_BYTES - 1, 4};
    const int peer = 1 - rank->me;
    hk_req_t *reqs = calloc(2 * (size_t)MANY, sizeof *reqs);
    CHECK(reqs != NULL);
    for (uint32_t round = 0; round < 6; round++) {
        memset(rank->in, 0, (size_t)MANY * SPAN_BYTES);
        CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
        for (uint32_t i = 0; i < MANY; i++) {
            fill(rank->out + (size_t)i * SPAN_BYTES, lengths[i % 7], 1000 * round + i + (uint32_t)rank->me);
        }
        for (int half = 0; half < 2; half++) {
            for (uint32_t i = 0; i < MANY; i++) {
                const size_t at = (size_t)i * SPAN_BYTES, size_bytes = lengths[i % 7];
                hk_req_t *req = &reqs[2 * i + (uint32_t)half];
                CHECK(((uint32_t)half == round % 2
                           ? rank->tp->isend(rank->ctx, peer, rank->out + at, size_bytes, req)
                           : rank->tp->irecv(rank->ctx, peer, rank->in + at, size_bytes, req)) == HK_OK);
            }
        }
        CHECK(rank->tp->wait_all(rank->ctx, reqs, 2 * (size_t)MANY) == HK_OK);
        for (uint32_t i = 0; i < MANY; i++) {
            CHECK(holds(rank->in + (size_t)i * SPAN_BYTES, lengths[i % 7], 1000 * round + i + (uint32_t)peer));
        }
    }
    free(reqs);
}

/* Messages match in the order of their start, for all kinds of calls. */
static void test_mixed_order(rank_t *rank)
{
    enum { STEPS = 400 };
    hk_req_t *reqs = calloc(STEPS, sizeof *reqs);
    uint64_t lengths = 3;
    size_t at = 0, open = 0, size_bytes[STEPS];
    CHECK(reqs != NULL);
    for (uint32_t i = 0; i < STEPS; i++) {
        size_bytes[i] = draw_length(&lengths) % 2048;
        const bool blocking = draw(&rank->random) % 7 == 0;
        unsigned char *out = rank->out + at, *in = rank->in + at;
        at += size_bytes[i];
        if (rank->me == 0) {
            fill(out, size_bytes[i], i);
            CHECK((blocking ? rank->tp->send(rank->ctx, 1, out, size_bytes[i])
                            : rank->tp->isend(rank->ctx, 1, out, size_bytes[i], &reqs[open++])) == HK_OK);
        } else {
            CHECK((blocking ? rank->tp->recv(rank->ctx, 0, in, size_bytes[i])
                            : rank->tp->irecv(rank->ctx, 0, in, size_bytes[i], &reqs[open++])) == HK_OK);
        }
    }
    CHECK(rank->tp->wait_all(rank->ctx, reqs, open) == HK_OK);
    at = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        CHECK(rank->me == 0 || holds(rank->in + at, size_bytes[i], i));
        at += size_bytes[i];
    }
    free(reqs);
}

/* Each rank blocks in a send to the other, which has started the receive: the wait must make progress on receives. */
static void test_progress_while_blocked(rank_t *rank)
{
    enum { LEN_BYTES = 5000 };
    hk_req_t req;
    const int peer = 1 - rank->me;
    for (uint32_t i = 0; i < 20; i++) {
        fill(rank->out, LEN_BYTES, i + (uint32_t)rank->me);
        CHECK(rank->tp->irecv(rank->ctx, peer, rank->in, LEN_BYTES, &req) == HK_OK);
        CHECK(rank->tp->send(rank->ctx, peer, rank->out, LEN_BYTES) == HK_OK);
        CHECK(rank->tp->wait_all(rank->ctx, &req, 1) == HK_OK);
        CHECK(holds(rank->in, LEN_BYTES, i + (uint32_t)peer));
    }
}

/* All ranks to all ranks, including themselves, in a random order of starts. */
static void exchange_all(rank_t *rank, size_t size_bytes, uint32_t seed)
{
    hk_req_t reqs[2 * RANKS_MAX];
    const int shift = (int)(draw(&rank->random) % (uint64_t)rank->size);
    for (int k = 0; k < 2 * rank->size; k++) {
        const int peer = (k / 2 + shift) % rank->size;
        const size_t at = (size_t)peer * size_bytes;
        if ((k % 2 == 0) == (seed % 2 == 0)) {
            fill(rank->out + at, size_bytes, seed + (uint32_t)(rank->me * RANKS_MAX + peer));
            CHECK(rank->tp->isend(rank->ctx, peer, rank->out + at, size_bytes, &reqs[k]) == HK_OK);
        } else {
            memset(rank->in + at, 0, size_bytes);
            CHECK(rank->tp->irecv(rank->ctx, peer, rank->in + at, size_bytes, &reqs[k]) == HK_OK);
        }
    }
    CHECK(rank->tp->wait_all(rank->ctx, reqs, 2 * (size_t)rank->size) == HK_OK);
    for (int peer = 0; peer < rank->size; peer++) {
        CHECK(holds(rank->in + (size_t)peer * size_bytes, size_bytes, seed + (uint32_t)(peer * RANKS_MAX + rank->me)));
    }
}

static void test_many_peers(rank_t *rank)
{
    static const size_t lengths[] = {0, 4, 8, 48, 256, 257, 4096, LONGEST_BYTES};
    for (uint32_t i = 0; i < 40; i++) {
        exchange_all(rank, lengths[i % (sizeof lengths / sizeof lengths[0])], i);
    }
    /* A token around the ring: each rank waits for all others in turn. */
    uint64_t token = 0;
    const int next = (rank->me + 1) % rank->size, previous = (rank->me + rank->size - 1) % rank->size;
    for (uint64_t i = 0; i < 50 / rank->stride; i++) {
        if (rank->me != 0 || i > 0) {
            CHECK(rank->tp->recv(rank->ctx, previous, rank->in, sizeof token) == HK_OK);
            memcpy(&token, rank->in, sizeof token);
            CHECK(token + 1 == i * (uint64_t)rank->size + (uint64_t)rank->me);
        }
        token = i * (uint64_t)rank->size + (uint64_t)rank->me;
        memcpy(rank->out, &token, sizeof token);
        CHECK(rank->tp->send(rank->ctx, next, rank->out, sizeof token) == HK_OK);
    }
    if (rank->me == 0) {
        CHECK(rank->tp->recv(rank->ctx, previous, rank->in, sizeof token) == HK_OK);
    }
}

/* ---- random ------------------------------------------------------------------------------------------------------ */

enum { STRESS_MESSAGES = 6, STRESS_BYTES = 9001 };

/* The size of a message in a step; both ranks compute it. */
static size_t stress_length(uint32_t step, int from, int to, uint32_t i)
{
    uint64_t state = ((uint64_t)step << 32) + (uint64_t)(from * 64 + to * 8) + i;
    return draw_length(&state) % STRESS_BYTES;
}

static uint32_t stress_count(uint32_t step, int from, int to)
{
    uint64_t state = ((uint64_t)step << 20) + (uint64_t)(from * 64 + to);
    return (uint32_t)(draw(&state) % (STRESS_MESSAGES + 1));
}

static unsigned char *stress_place(const rank_t *rank, unsigned char *buf, int peer, uint32_t i)
{
    return buf + ((size_t)peer * STRESS_MESSAGES + i) * STRESS_BYTES + (size_t)rank->me;
}

/* Start one of the remaining messages of this step: random direction and peer, in order per peer. */
static void stress_start(rank_t *rank, uint32_t step, uint32_t started[2][RANKS_MAX], hk_req_t *req)
{
    int way = 0, peer = 0;
    do {
        way = (int)(draw(&rank->random) % 2);
        peer = (int)(draw(&rank->random) % (uint64_t)rank->size);
    } while (started[way][peer] ==
             (way == 0 ? stress_count(step, rank->me, peer) : stress_count(step, peer, rank->me)));
    const uint32_t i = started[way][peer]++;
    if (way == 0) {
        const size_t size_bytes = stress_length(step, rank->me, peer, i);
        unsigned char *out = stress_place(rank, rank->out, peer, i);
        fill(out, size_bytes, step * 7 + (uint32_t)(rank->me * 5 + peer) + i);
        CHECK(rank->tp->isend(rank->ctx, peer, out, size_bytes, req) == HK_OK);
    } else {
        CHECK(rank->tp->irecv(rank->ctx, peer, stress_place(rank, rank->in, peer, i),
                              stress_length(step, peer, rank->me, i), req) == HK_OK);
    }
}

static void test_stress(rank_t *rank)
{
    hk_req_t reqs[2 * RANKS_MAX * STRESS_MESSAGES];
    CHECK((size_t)RANKS_MAX * STRESS_MESSAGES * STRESS_BYTES + RANKS_MAX <= ROOM_BYTES);
    for (uint32_t step = 0; step < 150; step += rank->stride) {
        uint32_t started[2][RANKS_MAX] = {0}, total = 0;
        for (int peer = 0; peer < rank->size; peer++) {
            total += stress_count(step, rank->me, peer) + stress_count(step, peer, rank->me);
        }
        for (uint32_t k = 0; k < total; k++) {
            stress_start(rank, step, started, &reqs[k]);
        }
        CHECK(rank->tp->wait_all(rank->ctx, reqs, total) == HK_OK);
        for (int peer = 0; peer < rank->size; peer++) {
            for (uint32_t i = 0; i < stress_count(step, peer, rank->me); i++) {
                CHECK(holds(stress_place(rank, rank->in, peer, i), stress_length(step, peer, rank->me, i),
                            step * 7 + (uint32_t)(peer * 5 + rank->me) + i));
            }
        }
    }
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* Starts shortly before 2^32 messages: numbers wrap while messages of all kinds travel both ways. */
static void test_wrap(rank_t *rank)
{
    hk_channel_t *channel = hk_channel_of(rank->ctx);
    const uint32_t number = UINT32_MAX - 100;
    for (int r = 0; r < rank->size; r++) {
        hk_peer_t *peer = &channel->peer[r];
        peer->sent = peer->took = number;
        peer->may = number + HK_RING_SLOTS;
        atomic_store_explicit(&peer->in->taken, number, memory_order_release);
    }
    CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    for (size_t i = 0; i < 70; i++) {
        bounce(rank, i * 8);
    }
    test_stream(rank);
    test_full_rings(rank);
}

/* No rank leaves before all have arrived. */
static void test_barrier(rank_t *rank)
{
    uint64_t *words = (uint64_t *)(void *)rank->in, seen = 0;
    memset(rank->in, 0, RANKS_MAX * sizeof *words);
    CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    for (uint64_t epoch = 1; epoch <= 200 / rank->stride; epoch++) {
        for (int peer = 0; peer < rank->size; peer++) {
            CHECK(rank->tp->put(rank->ctx, peer, &words[rank->me], &epoch, sizeof epoch) == HK_OK);
        }
        CHECK(rank->tp->quiet(rank->ctx) == HK_OK);
        CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
        for (int peer = 0; peer < rank->size; peer++) {
            CHECK(rank->tp->get(rank->ctx, rank->me, &seen, &words[peer], sizeof seen) == HK_OK);
            CHECK(seen == epoch || seen == epoch + 1);
        }
    }
}

/* Data, then a flag: a rank that sees the flag must see the data. */
static void test_one_sided(rank_t *rank)
{
    const int to = (rank->me + 1) % rank->size, from = (rank->me + rank->size - 1) % rank->size;
    uint64_t *flag = (uint64_t *)(void *)rank->in, *own = (uint64_t *)(void *)rank->out;
    unsigned char *data = rank->in + 64, *copy = rank->out + 64;
    memset(rank->in, 0, 64);
    CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    for (uint32_t i = 1; i <= 60; i += rank->stride) {
        const size_t size_bytes = (size_t)i * i * 17;
        fill(copy, size_bytes, i + (uint32_t)rank->me);
        CHECK(rank->tp->put(rank->ctx, to, data, copy, size_bytes) == HK_OK);
        CHECK(rank->tp->quiet(rank->ctx) == HK_OK);
        *own = i;
        CHECK(rank->tp->put(rank->ctx, to, flag, own, sizeof *own) == HK_OK);
        CHECK(rank->tp->wait_word(rank->ctx, flag, i) == HK_OK);
        CHECK(holds(data, size_bytes, i + (uint32_t)from));
        CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
        CHECK(rank->tp->get(rank->ctx, to, copy, data, size_bytes) == HK_OK);
        CHECK(holds(copy, size_bytes, i + (uint32_t)rank->me));
        CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    }
}

/* A synchronous send returns only after the late receiver has taken the message: all sizes, and requests. */
static void test_send_waits(rank_t *rank)
{
    static const size_t lengths[] = {0, 1, 8, HK_INLINE_BYTES, HK_EAGER_BYTES, 4096};
    const hk_channel_t *channel = hk_channel_of(rank->ctx);
    /* In rank 1's memory: the number of receives it has begun. */
    unsigned char *place = channel->peer[1].slice + (rank->in - channel->slice);
    _Atomic uint64_t *begun = (_Atomic uint64_t *)(void *)place;
    atomic_store(begun, 0);
    CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    for (uint64_t i = 1; i <= 36; i++) {
        const size_t size_bytes = lengths[i % 6];
        hk_req_t req;
        if (rank->me == 1) {
            (void)usleep(300);
            atomic_store(begun, i);
            CHECK(rank->tp->recv(rank->ctx, 0, rank->in + 64, size_bytes) == HK_OK);
        } else if (i % 2 == 0) {
            CHECK(rank->tp->send(rank->ctx, 1, rank->out, size_bytes) == HK_OK);
            CHECK(atomic_load(begun) == i);
        } else {
            CHECK(rank->tp->isend(rank->ctx, 1, rank->out, size_bytes, &req) == HK_OK);
            CHECK(rank->tp->wait_all(rank->ctx, &req, 1) == HK_OK);
            CHECK(atomic_load(begun) == i);
        }
        CHECK(rank->tp->barrier(rank->ctx) == HK_OK);
    }
}

/* Ranks that disagree about a size get an error, in every kind of receive. */
static void test_wrong_length(rank_t *rank)
{
    hk_req_t req;
    if (rank->me == 0) {
        CHECK(rank->tp->send(rank->ctx, 1, rank->out, 16) == HK_OK);
    } else {
        CHECK(rank->tp->recv(rank->ctx, 0, rank->in, 8) == HK_ERR_CORRUPT);
        CHECK(rank->tp->irecv(rank->ctx, 0, rank->in, 17, &req) == HK_OK);
        CHECK(rank->tp->wait_all(rank->ctx, &req, 1) == HK_ERR_CORRUPT);
    }
}

static void test_memory(rank_t *rank)
{
    const size_t slice_bytes = hk_channel_of(rank->ctx)->mapping->slice_bytes;
    CHECK(rank->tp->alloc(rank->ctx, slice_bytes) == NULL && rank->tp->alloc(rank->ctx, SIZE_MAX) == NULL);
    unsigned char *first = rank->tp->alloc(rank->ctx, 1);
    unsigned char *second = rank->tp->alloc(rank->ctx, 4096);
    CHECK(first != NULL && second != NULL && second > first);
    CHECK(((uintptr_t)first | (uintptr_t)second) % 4096 == 0);
    memset(second, 1, 4096);
    rank->tp->free(rank->ctx, second, 4096);
    CHECK(rank->tp->alloc(rank->ctx, slice_bytes / 2) == second);
    second[slice_bytes / 2 - 1] = 1;
    rank->tp->free(rank->ctx, second, slice_bytes / 2);
    rank->tp->free(rank->ctx, first, 1);
    CHECK(rank->tp->alloc(rank->ctx, 1) == first); /* the whole page is free again */
    rank->tp->free(rank->ctx, first, 1);
    CHECK(strlen(rank->tp->library(rank->ctx)) > 0);
}

static void test_transport(const hk_transport_t *tp, uint32_t stride)
{
    body_t *const pairs[] = {test_lengths, test_stream, test_full_rings, test_mixed_order, test_progress_while_blocked,
                             test_wrap,    test_stress, test_memory};
    body_t *const oversubscribed[] = {test_many_peers, test_stress, test_barrier, test_one_sided};
    const bool is_synchronous = (tp->caps & HK_CAP_SYNCHRONOUS) != 0; /* has no one-sided access */
    const size_t oversubscribed_count = sizeof oversubscribed / sizeof oversubscribed[0] - (is_synchronous ? 2 : 0);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        run_job(tp, 2, 0, stride, pairs[i]);
    }
    run_job(tp, 2, 0, stride, is_synchronous ? test_send_waits : test_wrong_length);
    run_job(tp, 2, 1, stride, test_lengths);
    run_job(tp, 2, 1, stride, test_progress_while_blocked);
    if (is_synchronous) {
        run_job(tp, 2, 1, stride, test_send_waits);
    } else {
        run_job(tp, 1, 0, stride, test_barrier);
    }
    for (size_t i = 0; i < oversubscribed_count; i++) {
        run_job(tp, 3, 1, stride, oversubscribed[i]);
        run_job(tp, RANKS_MAX, 1, stride, oversubscribed[i]);
    }
    (void)printf("%s: ok\n", tp->name);
}

int main(int argc, char **argv)
{
    (void)argv;
    const uint32_t stride = argc > 1 ? SHORT : 1;
    (void)alarm(CHECK_LIMIT_S);
    test_transport(&hk_transport_shm, stride);
    test_transport(&hk_transport_shm_sync, stride);
    test_transport(&hk_transport_threads, stride);
    return 0;
}
