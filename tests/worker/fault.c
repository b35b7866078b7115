/* Transports for tests only: shm, and tcp as `sleepy`, with a deliberate fault, chosen by HOCKNEY_FAULT="KIND RANK
 * NUMBER ...".
 *
 *   corrupt 1 17       byte 17 of each larger message that rank 1 receives is wrong, in all kinds of receives
 *   wrong 0 0          in a message of 64 + 8 j bytes one bit is wrong, if rank j / 8 receives it in its place j % 8;
 *                      places count in the order of their first message; it is written to standard error
 *   hang 1 64          rank 1 never returns from a receive of 64 bytes
 *   kill 1 64          SIGKILL ends rank 1 in a receive of 64 bytes
 *   fail 1 64          rank 1's receive of 64 bytes fails
 *   rubbish 0 64       rank 0 prints rubbish on standard output at each receive of 64 bytes
 *   slow 1 64 256 25   after each receive of 64 to 256 bytes rank 1 is busy for 25 % of a round trip, so a ping-pong
 *                      takes 1.25 times as long
 *   lag 1 2000000      every rank sleeps for 2 ms before each message and put that it sends, rank 1 for 6 ms
 *   count 0 0          every delay is written to standard error
 *   list 0 0           rank 0 writes every message and put that it sends to standard error
 *   update 1 0         rank 1's atomic operations have a wrong operand
 *   fetch 1 0          one bit of what rank 1's atomic operations fetch is wrong
 *   skip 1 0           rank 1's atomic operations do nothing
 *   lose 1 64          each message of 64 bytes that rank 1 receives is zeros; the transport lossy, which differs only
 *                      in its capabilities, counts it
 *
 * The clock of the transport coarse advances in steps of 5 ms. Built into a separate worker: see extra.py. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unistd.h>

#include "onesided.h"
#include "transports/channel.h"

extern const hk_transport_t hk_transport_shm, hk_transport_tcp;

enum { RECEIVES_MAX = 64, PLACES_MAX = 8, WRONG_BYTES_MIN = 64, COARSE_NS = 5000000 };

typedef struct fault_ctx {
    hk_ctx_t base;
    hk_ctx_t *under; /* of the transport that carries the messages */
    char what[16];
    long rank, number, last, percent;
    uint64_t ended_ns;                     /* end of the last slowed receive */
    uint64_t lost;                         /* messages */
    uint64_t clock_ns;                     /* the time of two clock reads */
    unsigned char *receives[RECEIVES_MAX]; /* buffers of open receives to corrupt */
    size_t receives_count;
    const void *places[PLACES_MAX]; /* buffers of messages of size_bytes */
    size_t places_count, size_bytes;
    hk_atomic_t atomic; /* as the transport below made it */
} fault_ctx_t;

static fault_ctx_t *mine(hk_ctx_t *ctx)
{
    return (fault_ctx_t *)(void *)ctx;
}

static const hk_transport_t *under(const hk_ctx_t *ctx)
{
    return ctx->tp->own;
}

static void fault_close(hk_ctx_t *ctx)
{
    under(ctx)->close(mine(ctx)->under);
    free(ctx);
}

static const char *fault_library(const hk_ctx_t *ctx)
{
    return ctx->tp->summary;
}

static void *fault_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    return under(ctx)->alloc(mine(ctx)->under, size_bytes);
}

static void fault_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    under(ctx)->free(mine(ctx)->under, memory, size_bytes);
}

static void list(const fault_ctx_t *ctx, const char *verb, int peer, size_t size_bytes)
{
    if (strcmp(ctx->what, "list") == 0 && ctx->base.rank == ctx->rank) {
        hk_log(ctx->base.rank, "fault: %s %zu B to rank %d", verb, size_bytes, peer);
    }
}

static void lag(const fault_ctx_t *ctx)
{
    for (int naps = ctx->base.rank == ctx->rank ? 3 : 1; naps > 0 && strcmp(ctx->what, "lag") == 0; naps--) {
        (void)nanosleep(&(struct timespec){.tv_nsec = ctx->number}, NULL);
    }
}

static hk_status_t fault_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    list(mine(ctx), "sends", peer, size_bytes);
    lag(mine(ctx));
    return under(ctx)->send(mine(ctx)->under, peer, buf, size_bytes);
}

/* What happens before the receive. */
static hk_status_t strike(const fault_ctx_t *ctx, size_t size_bytes)
{
    static const char text[] = "library: 3 warnings suppressed\nand a line without its end";
    if (ctx->base.rank != ctx->rank || size_bytes != (size_t)ctx->number) {
        return HK_OK;
    }
    if (strcmp(ctx->what, "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    while (strcmp(ctx->what, "hang") == 0) {
        pause();
    }
    if (strcmp(ctx->what, "rubbish") == 0 && write(STDOUT_FILENO, text, sizeof text - 1) < 0) {
        return HK_ERR_SYSTEM;
    }
    if (strcmp(ctx->what, "fail") == 0) {
        hk_log(ctx->base.rank, "fault: deliberate failure of a receive");
        return HK_ERR_SYSTEM;
    }
    return HK_OK;
}

static bool is_corrupted(const fault_ctx_t *ctx, size_t size_bytes)
{
    return strcmp(ctx->what, "corrupt") == 0 && ctx->base.rank == ctx->rank && size_bytes > (size_t)ctx->number;
}

/* Whether to corrupt a message to this rank. */
static bool is_wrong(fault_ctx_t *ctx, int rank, const void *place, size_t size_bytes)
{
    if (strcmp(ctx->what, "wrong") != 0 || size_bytes < WRONG_BYTES_MIN) {
        return false;
    }
    if (size_bytes != ctx->size_bytes) {
        ctx->size_bytes = size_bytes;
        ctx->places_count = 0;
    }
    size_t i = 0;
    while (i < ctx->places_count && ctx->places[i] != place) {
        i++;
    }
    if (i == ctx->places_count && i < PLACES_MAX) {
        ctx->places[ctx->places_count++] = place;
    }
    const size_t chosen = (size_bytes - WRONG_BYTES_MIN) / 8;
    const bool is_chosen = rank == (int)(chosen / PLACES_MAX) && i == chosen % PLACES_MAX;
    if (is_chosen) {
        hk_log(ctx->base.rank, "fault: wrong %zu", size_bytes);
    }
    return is_chosen;
}

static bool is_slowed(const fault_ctx_t *ctx, size_t size_bytes)
{
    return strcmp(ctx->what, "slow") == 0 && ctx->base.rank == ctx->rank && size_bytes >= (size_t)ctx->number &&
           size_bytes <= (size_t)ctx->last;
}

/* The delay after a slowed receive. The peer waits for the answer, so the delay extends the round trip. It is a
 * percentage of the time since the last slowed receive, which is one round trip. If more than a repetition lies
 * between, it is a percentage of the receive alone. */
static hk_status_t slow_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    fault_ctx_t *fault = mine(ctx);
    const uint64_t begin_ns = hk_real_now_ns(ctx);
    const hk_status_t status = under(ctx)->recv(fault->under, peer, buf, size_bytes);
    const uint64_t got_ns = hk_real_now_ns(ctx);
    const uint64_t alone_ns = got_ns - begin_ns;
    const uint64_t round_ns = got_ns - fault->ended_ns;
    const uint64_t slowed_ns = round_ns <= 3 * alone_ns ? round_ns : alone_ns;
    const uint64_t wanted_ns = slowed_ns * (uint64_t)fault->percent / 100;
    const uint64_t until_ns = got_ns + (wanted_ns > fault->clock_ns ? wanted_ns - fault->clock_ns : 0);
    do {
        fault->ended_ns = hk_real_now_ns(ctx);
    } while (fault->ended_ns < until_ns);
    return status;
}

static hk_status_t fault_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const fault_ctx_t *fault = mine(ctx);
    if (is_slowed(fault, size_bytes)) {
        return slow_recv(ctx, peer, buf, size_bytes);
    }
    hk_status_t status = strike(fault, size_bytes);
    if (status == HK_OK) {
        status = under(ctx)->recv(fault->under, peer, buf, size_bytes);
    }
    if (is_corrupted(fault, size_bytes)) {
        ((unsigned char *)buf)[fault->number] += 1; /* two such in a sum do not cancel each other */
    }
    if (is_wrong(mine(ctx), ctx->rank, buf, size_bytes)) {
        ((unsigned char *)buf)[size_bytes - 1] += 1;
    }
    if (strcmp(fault->what, "lose") == 0 && ctx->rank == fault->rank && size_bytes == (size_t)fault->number) {
        memset(buf, 0, size_bytes);
        mine(ctx)->lost++;
    }
    return status;
}

static hk_status_t fault_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    list(mine(ctx), "sends", peer, size_bytes);
    lag(mine(ctx));
    return under(ctx)->isend(mine(ctx)->under, peer, buf, size_bytes, req);
}

static hk_status_t fault_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    fault_ctx_t *fault = mine(ctx);
    if (is_corrupted(fault, size_bytes) && fault->receives_count < RECEIVES_MAX) {
        fault->receives[fault->receives_count++] = (unsigned char *)buf + fault->number;
    }
    if (is_wrong(fault, ctx->rank, buf, size_bytes) && fault->receives_count < RECEIVES_MAX) {
        fault->receives[fault->receives_count++] = (unsigned char *)buf + size_bytes - 1;
    }
    return under(ctx)->irecv(fault->under, peer, buf, size_bytes, req);
}

static hk_status_t fault_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    fault_ctx_t *fault = mine(ctx);
    const hk_status_t status = under(ctx)->wait_all(fault->under, reqs, count);
    while (fault->receives_count > 0) {
        *fault->receives[--fault->receives_count] += 1;
    }
    return status;
}

static hk_status_t fault_put(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes)
{
    list(mine(ctx), "puts", peer, size_bytes);
    lag(mine(ctx));
    unsigned char *copy = is_wrong(mine(ctx), peer, remote, size_bytes) ? malloc(size_bytes) : NULL;
    if (copy != NULL) {
        memcpy(copy, local, size_bytes);
        copy[0] += 1; /* the last byte may belong to a word that a peer waits for */
    }
    const hk_status_t status = under(ctx)->put(mine(ctx)->under, peer, remote, copy != NULL ? copy : local, size_bytes);
    free(copy);
    return status;
}

static hk_status_t fault_get(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes)
{
    const hk_status_t status = under(ctx)->get(mine(ctx)->under, peer, local, remote, size_bytes);
    if (is_wrong(mine(ctx), ctx->rank, local, size_bytes)) {
        ((unsigned char *)local)[size_bytes - 1] += 1;
    }
    return status;
}

static hk_status_t fault_atomic(hk_ctx_t *ctx, const hk_atomic_t *atomic, int peer, void *remote, const void *local,
                                const void *compare, void *fetched)
{
    fault_ctx_t *fault = mine(ctx);
    const bool strikes = ctx->rank == fault->rank;
    if (strikes && strcmp(fault->what, "skip") == 0) {
        return HK_OK;
    }
    unsigned char *copy = malloc(atomic->size_bytes);
    if (copy == NULL) {
        return HK_ERR_MEMORY;
    }
    memcpy(copy, local, atomic->size_bytes);
    copy[0] ^= strikes && strcmp(fault->what, "update") == 0 ? 1 : 0;
    const hk_status_t status = fault->atomic.start(fault->under, &fault->atomic, peer, remote, copy, compare, fetched);
    free(copy);
    if (strikes && strcmp(fault->what, "fetch") == 0 && hk_fetches(atomic->kind)) {
        ((unsigned char *)fetched)[0] ^= 1;
    }
    return status;
}

static bool fault_has_atomic(const hk_transport_t *tp, const hk_atomic_t *atomic, char *why, size_t len)
{
    return hk_transport_shm.has_atomic(tp, atomic, why, len);
}

static hk_status_t fault_make_atomic(hk_ctx_t *ctx, hk_atomic_t *atomic)
{
    fault_ctx_t *fault = mine(ctx);
    fault->atomic = *atomic;
    atomic->start = fault_atomic;
    return under(ctx)->make_atomic(fault->under, &fault->atomic);
}

static hk_status_t fault_quiet(hk_ctx_t *ctx)
{
    return under(ctx)->quiet(mine(ctx)->under);
}

static hk_status_t fault_wait_word(hk_ctx_t *ctx, const uint64_t *word, uint64_t value)
{
    return under(ctx)->wait_word(mine(ctx)->under, word, value);
}

static bool lossy_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    *counter_p = (hk_counter_t){"lost", (double)((const fault_ctx_t *)ctx)->lost};
    return i == 0;
}

static void fault_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    if (strcmp(mine(ctx)->what, "count") == 0) {
        hk_log(ctx->rank, "fault: a delay");
    }
    hk_real_compute(ctx, duration_ns);
}

static hk_status_t fault_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

static uint64_t coarse_now_ns(hk_ctx_t *ctx)
{
    return hk_real_now_ns(ctx) / COARSE_NS * COARSE_NS;
}

#define MESSAGES                                                                                                       \
    .open = fault_open, .close = fault_close, .library = fault_library, .alloc = fault_alloc, .free = fault_free,      \
    .send = fault_send, .recv = fault_recv, .isend = fault_isend, .irecv = fault_irecv, .wait_all = fault_wait_all,    \
    .compute = fault_compute
#define HOOKS                                                                                                          \
    MESSAGES, .summary = "shm with deliberate faults", .own = &hk_transport_shm, .prepare = hk_channel_prepare,        \
        .release = hk_channel_release, .put = fault_put, .get = fault_get, .quiet = fault_quiet,                       \
        .wait_word = fault_wait_word, .put_start = fault_put, .get_start = fault_get, .has_atomic = fault_has_atomic,  \
        .make_atomic = fault_make_atomic

enum {
    CAPS = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_ATOMICS | HK_CAP_PAYLOAD |
    HK_CAP_SPINS
};

static uint64_t clock_twice_ns(hk_ctx_t *ctx)
{
    enum { READS = 1000 };
    const uint64_t begin_ns = hk_real_now_ns(ctx);
    for (int i = 1; i < READS; i++) {
        (void)hk_real_now_ns(ctx);
    }
    return 2 * (hk_real_now_ns(ctx) - begin_ns) / READS;
}

static bool understand(const char *fault, fault_ctx_t *ctx)
{
    const size_t len = strcspn(fault, " ");
    char *end = NULL;
    if (len == 0 || len >= sizeof ctx->what || fault[len] == '\0') {
        return false;
    }
    memcpy(ctx->what, fault, len);
    ctx->rank = strtol(fault + len, &end, 10);
    ctx->number = strtol(end, &end, 10);
    if (strcmp(ctx->what, "slow") == 0) {
        ctx->last = strtol(end, &end, 10);
        ctx->percent = strtol(end, &end, 10);
    }
    return *end == '\0';
}

static hk_status_t fault_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    fault_ctx_t *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        return HK_ERR_MEMORY;
    }
    ctx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    const char *fault = getenv("HOCKNEY_FAULT");
    if (fault != NULL && !understand(fault, ctx)) {
        hk_log(job->rank, "HOCKNEY_FAULT is not understood: %s", fault);
        free(ctx);
        return HK_ERR_ARGUMENT;
    }
    ctx->clock_ns = clock_twice_ns(&ctx->base);
    const hk_status_t status = under(&ctx->base)->open(under(&ctx->base), job, &ctx->under);
    if (status != HK_OK) {
        free(ctx);
        return status;
    }
    *ctx_p = &ctx->base;
    return HK_OK;
}

const hk_transport_t hk_transport_fault = {HOOKS, .name = "fault", .caps = CAPS, .now_ns = hk_real_now_ns};

const hk_transport_t hk_transport_lossy = {HOOKS, .name = "lossy", .caps = CAPS | HK_CAP_LOSSY,
                                           .now_ns = hk_real_now_ns, .counter = lossy_counter};

const hk_transport_t hk_transport_coarse = {HOOKS, .name = "coarse", .caps = CAPS, .now_ns = coarse_now_ns};

const hk_transport_t hk_transport_sleepy = {MESSAGES,
                                            .name = "sleepy",
                                            .summary = "tcp with deliberate faults",
                                            .own = &hk_transport_tcp,
                                            .now_ns = hk_real_now_ns,
                                            .caps =
                                                HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SYSCALLS};
