/* The socket and pipe transports, on real descriptors: sizes, order, both sides at once, windows, faults.
 *
 *     W=src/hockney/worker/csrc
 *     cc -std=c17 -D_GNU_SOURCE -g -fsanitize=address,undefined -I$W tests/worker/test_stream.c \
 *        $W/{address,control,io,rendezvous,status,machine}.c \
 *        $W/transports/{stream,stream_open,stream_socket,pipe,unix,tcp}.c
 *
 * Ends with 0 and one line for each transport, or with 1 and the check that failed. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "check.h"
#include "control.h"
#include "transports/stream.h"

#define TABLES(id) hk_transport_##id, hk_transport_##id##_nonblock, hk_transport_##id##_spin
extern const hk_transport_t TABLES(pipe), TABLES(unix), TABLES(tcp);

enum { RANKS_MAX = 4, LARGE_BYTES = (4 << 20) + 3, WINDOW = 64, STEPS_MS = 5 };

/* 4 KiB is PIPE_BUF, 64 KiB a pipe's capacity, 208 KiB the usual socket buffer. */
static const size_t lengths[] = {0,     1,     8,      4095,   4096,   4097,    8192,       65535,
                                 65536, 65537, 212991, 212992, 212993, 1 << 20, LARGE_BYTES};
enum { LENGTHS_COUNT = sizeof lengths / sizeof lengths[0] };

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef void body_t(hk_ctx_t *ctx);

static void be_rank(const hk_transport_t *tp, int rank, int size, int oversubscribed, void *shared,
                    int fds[RANKS_MAX][2], body_t *body)
{
    int mine[RANKS_MAX] = {-1};
    for (int peer = 1; peer < size; peer++) {
        if (rank == 0) {
            mine[peer] = fds[peer][0];
            (void)close(fds[peer][1]);
        } else {
            (void)close(fds[peer][0]);
            if (peer != rank) {
                (void)close(fds[peer][1]);
            }
        }
    }
    if (rank != 0) {
        mine[0] = fds[rank][1];
    }
    hk_control_t control = {.rank = rank, .size = size, .fds = mine};
    const hk_job_t job = {
        .rank = rank, .size = size, .control = &control, .shared = shared, .oversubscribed = oversubscribed};
    hk_ctx_t *ctx = NULL;
    CHECK(tp->open(tp, &job, &ctx) == HK_OK);
    CHECK(ctx->tp == tp && ctx->rank == rank && ctx->size == size);
    CHECK(strlen(tp->library(ctx)) > 0);
    body(ctx);
    tp->close(ctx);
    for (int peer = 0; peer < size; peer++) {
        if (mine[peer] >= 0) {
            (void)close(mine[peer]);
        }
    }
}

/* Rank 0 is this process, so no launcher's copy of a descriptor hides the end of a rank. */
static void run(const hk_transport_t *tp, int size, int oversubscribed, body_t *body)
{
    int fds[RANKS_MAX][2];
    pid_t pids[RANKS_MAX];
    void *shared = NULL;
    if (tp->prepare != NULL) {
        CHECK(tp->prepare(tp, size, &shared) == HK_OK);
    }
    for (int rank = 1; rank < size; rank++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[rank]) == 0);
    }
    for (int rank = 1; rank < size; rank++) {
        pids[rank] = check_fork();
        if (pids[rank] == 0) {
            be_rank(tp, rank, size, oversubscribed, shared, fds, body);
            exit(0);
        }
    }
    be_rank(tp, 0, size, oversubscribed, shared, fds, body);
    for (int rank = 1; rank < size; rank++) {
        check_end(pids[rank]);
    }
}

/* ---- payloads ---------------------------------------------------------------------------------------------------- */

static unsigned char byte_at(int from, int to, unsigned message, size_t offset)
{
    const size_t mixed = offset * 31 + (offset >> 8) * 17 + (size_t)from * 101 + (size_t)to * 59 + message * 7u;
    return (unsigned char)(mixed & 255u);
}

static void fill(unsigned char *buf, size_t size_bytes, int from, int to, unsigned message)
{
    for (size_t i = 0; i < size_bytes; i++) {
        buf[i] = byte_at(from, to, message, i);
    }
}

static void check_filled(const unsigned char *buf, size_t size_bytes, int from, int to, unsigned message)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size_bytes; i++) {
        wrong += buf[i] != byte_at(from, to, message, i);
    }
    CHECK(wrong == 0);
}

static unsigned char *room(hk_ctx_t *ctx, size_t size_bytes)
{
    unsigned char *memory = ctx->tp->alloc(ctx, size_bytes);
    CHECK(memory != NULL);
    return memory;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void all_lengths(hk_ctx_t *ctx)
{
    unsigned char *buf = room(ctx, LARGE_BYTES);
    const int peer = 1 - ctx->rank;
    for (unsigned i = 0; i < LENGTHS_COUNT; i++) {
        if (ctx->rank == 0) {
            fill(buf, lengths[i], 0, 1, i);
            CHECK(ctx->tp->send(ctx, peer, buf, lengths[i]) == HK_OK);
        }
        CHECK(ctx->tp->recv(ctx, peer, buf, lengths[i]) == HK_OK);
        check_filled(buf, lengths[i], peer, ctx->rank, i);
        if (ctx->rank == 1) {
            fill(buf, lengths[i], 1, 0, i);
            CHECK(ctx->tp->send(ctx, peer, buf, lengths[i]) == HK_OK);
        }
    }
    CHECK(ctx->tp->send(ctx, peer, NULL, 0) == HK_OK);
    CHECK(ctx->tp->recv(ctx, peer, NULL, 0) == HK_OK);
    ctx->tp->free(ctx, buf, LARGE_BYTES);
}

static void interrupt(int signal_number)
{
    (void)signal_number;
}

/* Without SA_RESTART a signal can end every wait in the kernel early. */
static void all_lengths_interrupted(hk_ctx_t *ctx)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    all_lengths(ctx);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(CHECK_LIMIT_S);
}

/* Every rank sends to every other, far more than the kernel buffers. */
static void large_to_all(hk_ctx_t *ctx)
{
    hk_req_t reqs[2 * RANKS_MAX];
    unsigned char *out[RANKS_MAX] = {NULL}, *in[RANKS_MAX] = {NULL};
    size_t count = 0;
    for (int peer = 0; peer < ctx->size; peer++) {
        if (peer != ctx->rank) {
            out[peer] = room(ctx, LARGE_BYTES);
            in[peer] = room(ctx, LARGE_BYTES);
            fill(out[peer], LARGE_BYTES, ctx->rank, peer, 1);
            CHECK(ctx->tp->isend(ctx, peer, out[peer], LARGE_BYTES, &reqs[count++]) == HK_OK);
        }
    }
    for (int peer = 0; peer < ctx->size; peer++) {
        if (peer != ctx->rank) {
            CHECK(ctx->tp->irecv(ctx, peer, in[peer], LARGE_BYTES, &reqs[count++]) == HK_OK);
        }
    }
    CHECK(ctx->tp->wait_all(ctx, reqs, count) == HK_OK);
    for (int peer = ctx->size - 1; peer >= 0; peer--) {
        if (peer != ctx->rank) {
            check_filled(in[peer], LARGE_BYTES, peer, ctx->rank, 1);
            ctx->tp->free(ctx, in[peer], LARGE_BYTES);
            ctx->tp->free(ctx, out[peer], LARGE_BYTES);
        }
    }
}

/* Both post a receive, then send plainly: the receives must make progress inside send. */
static void plain_during_requests(hk_ctx_t *ctx)
{
    const int peer = 1 - ctx->rank;
    unsigned char *out = room(ctx, LARGE_BYTES), *in = room(ctx, LARGE_BYTES);
    hk_req_t req;
    for (unsigned i = 0; i < 3; i++) {
        fill(out, LARGE_BYTES, ctx->rank, peer, i);
        CHECK(ctx->tp->irecv(ctx, peer, in, LARGE_BYTES, &req) == HK_OK);
        CHECK(ctx->tp->send(ctx, peer, out, LARGE_BYTES) == HK_OK);
        CHECK(ctx->tp->wait_all(ctx, &req, 1) == HK_OK);
        check_filled(in, LARGE_BYTES, peer, ctx->rank, i);

        CHECK(ctx->tp->isend(ctx, peer, out, LARGE_BYTES, &req) == HK_OK);
        CHECK(ctx->tp->recv(ctx, peer, in, LARGE_BYTES) == HK_OK);
        CHECK(ctx->tp->wait_all(ctx, &req, 1) == HK_OK);
        check_filled(in, LARGE_BYTES, peer, ctx->rank, i);
    }
    ctx->tp->free(ctx, in, LARGE_BYTES);
    ctx->tp->free(ctx, out, LARGE_BYTES);
}

static size_t length_in_window(unsigned k)
{
    static const size_t some[] = {5, 0, 4096, 1, 70000, 333, 0, 65536};
    return some[k % (sizeof some / sizeof some[0])];
}

typedef enum side { REQUESTS, PLAIN, MIXED } side_t;

static void send_window(hk_ctx_t *ctx, int peer, side_t side, unsigned char *out, hk_req_t *reqs)
{
    size_t offset = 0, count = 0;
    for (unsigned k = 0; k < WINDOW; offset += length_in_window(k), k++) {
        fill(out + offset, length_in_window(k), ctx->rank, peer, k);
    }
    offset = 0;
    for (unsigned k = 0; k < WINDOW; offset += length_in_window(k), k++) {
        if (side == PLAIN || (side == MIXED && k % 3 == 2)) {
            CHECK(ctx->tp->send(ctx, peer, out + offset, length_in_window(k)) == HK_OK);
        } else {
            CHECK(ctx->tp->isend(ctx, peer, out + offset, length_in_window(k), &reqs[count++]) == HK_OK);
        }
    }
    CHECK(ctx->tp->wait_all(ctx, reqs, count) == HK_OK);
}

static void receive_window(hk_ctx_t *ctx, int peer, side_t side, unsigned char *in, hk_req_t *reqs)
{
    size_t offset = 0, count = 0;
    for (unsigned k = 0; k < WINDOW; offset += length_in_window(k), k++) {
        if (side == PLAIN || (side == MIXED && k % 3 == 1)) {
            CHECK(ctx->tp->recv(ctx, peer, in + offset, length_in_window(k)) == HK_OK);
        } else {
            CHECK(ctx->tp->irecv(ctx, peer, in + offset, length_in_window(k), &reqs[count++]) == HK_OK);
        }
    }
    CHECK(ctx->tp->wait_all(ctx, reqs, count) == HK_OK);
    offset = 0;
    for (unsigned k = 0; k < WINDOW; offset += length_in_window(k), k++) {
        check_filled(in + offset, length_in_window(k), peer, ctx->rank, k);
    }
}

/* Messages arrive in the order in which they were started, for all kinds of calls. */
static void windows(hk_ctx_t *ctx)
{
    size_t total_bytes = 0;
    for (unsigned k = 0; k < WINDOW; k++) {
        total_bytes += length_in_window(k);
    }
    unsigned char *buf = room(ctx, total_bytes);
    hk_req_t reqs[WINDOW];
    for (int sender = 0; sender < 2; sender++) {
        for (side_t mine = REQUESTS; mine <= MIXED; mine++) {
            for (side_t theirs = REQUESTS; theirs <= MIXED; theirs++) {
                if (ctx->rank == sender) {
                    send_window(ctx, 1 - sender, mine, buf, reqs);
                } else {
                    receive_window(ctx, sender, theirs, buf, reqs);
                }
            }
        }
    }
    ctx->tp->free(ctx, buf, total_bytes);
}

/* Rank 0 receives from all others at once; the last one starts late. */
static void one_receives_all(hk_ctx_t *ctx)
{
    enum { EACH = 8, LEN = 30000 };
    unsigned char *buf = room(ctx, (size_t)RANKS_MAX * EACH * LEN);
    hk_req_t reqs[RANKS_MAX * EACH];
    size_t count = 0;
    if (ctx->rank == 0) {
        for (unsigned k = 0; k < EACH; k++) {
            for (int peer = ctx->size - 1; peer > 0; peer--, count++) {
                CHECK(ctx->tp->irecv(ctx, peer, buf + count * LEN, LEN, &reqs[count]) == HK_OK);
            }
        }
        CHECK(ctx->tp->wait_all(ctx, reqs, count) == HK_OK);
        for (size_t i = 0; i < count; i++) {
            const size_t others = (size_t)ctx->size - 1;
            check_filled(buf + i * LEN, LEN, (int)(others - i % others), 0, (unsigned)(i / others));
        }
    } else {
        (void)usleep(ctx->rank == ctx->size - 1 ? STEPS_MS * 1000 : 0);
        for (unsigned k = 0; k < EACH; k++) {
            fill(buf, LEN, ctx->rank, 0, k);
            CHECK(ctx->tp->send(ctx, 0, buf, LEN) == HK_OK);
        }
    }
    ctx->tp->free(ctx, buf, (size_t)RANKS_MAX * EACH * LEN);
}

static bool blocks(const hk_ctx_t *ctx)
{
    return strchr(ctx->tp->name, ':') == NULL;
}

/* A token around the ring, then plain receives that wait: after requests a blocking variant blocks again. */
static void ring(hk_ctx_t *ctx)
{
    const hk_stream_t *stream = (const hk_stream_t *)ctx;
    const int next = (ctx->rank + 1) % ctx->size, last = (ctx->rank + ctx->size - 1) % ctx->size;
    hk_req_t reqs[2];
    for (unsigned turn = 0; turn < 50; turn++) {
        CHECK(ctx->tp->irecv(ctx, last, NULL, 0, &reqs[0]) == HK_OK);
        CHECK(ctx->tp->isend(ctx, next, NULL, 0, &reqs[1]) == HK_OK);
        CHECK(ctx->tp->wait_all(ctx, reqs, 2) == HK_OK);
        const uint64_t before = stream->would_block_count;
        if (ctx->rank == 0) {
            (void)usleep(turn % 10 == 0 ? STEPS_MS * 1000 : 0);
            CHECK(ctx->tp->send(ctx, next, NULL, 0) == HK_OK);
        }
        CHECK(ctx->tp->recv(ctx, last, NULL, 0) == HK_OK);
        if (ctx->rank != 0) {
            CHECK(ctx->tp->send(ctx, next, NULL, 0) == HK_OK);
        }
        CHECK(!blocks(ctx) || stream->would_block_count == before);
    }
    CHECK(blocks(ctx) || stream->would_block_count > 0); /* rank 0's pauses had an effect */
    CHECK(ctx->tp->wait_all(ctx, reqs, 0) == HK_OK);
}

/* A single rank opens and closes. */
static void alone(hk_ctx_t *ctx)
{
    CHECK(ctx->tp->wait_all(ctx, NULL, 0) == HK_OK);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void peer_dies(hk_ctx_t *ctx)
{
    unsigned char *buf = room(ctx, LARGE_BYTES);
    hk_req_t reqs[2];
    if (ctx->rank == 1) {
        _exit(0); /* as if killed: nothing is closed explicitly */
    }
    memset(buf, 1, LARGE_BYTES);
    CHECK(ctx->tp->recv(ctx, 1, buf, 8) == HK_ERR_PEER);
    hk_status_t status = HK_OK;
    for (int i = 0; i < 10 && status == HK_OK; i++) { /* TCP accepts one message before it detects the closed peer */
        status = ctx->tp->send(ctx, 1, buf, LARGE_BYTES);
    }
    CHECK(status == HK_ERR_PEER);
    CHECK(ctx->tp->irecv(ctx, 1, buf, 8, &reqs[0]) == HK_OK);
    CHECK(ctx->tp->isend(ctx, 1, buf, LARGE_BYTES, &reqs[1]) == HK_OK);
    CHECK(ctx->tp->wait_all(ctx, reqs, 2) == HK_ERR_PEER);
    CHECK(ctx->tp->wait_all(ctx, reqs, 0) == HK_OK); /* no request is left in a queue */
    ctx->tp->free(ctx, buf, LARGE_BYTES);
}

/* A rank that waits for two others notices the death of one. */
static void one_of_three_dies(hk_ctx_t *ctx)
{
    unsigned char in[2][8];
    hk_req_t reqs[2];
    if (ctx->rank == 2) {
        (void)usleep(STEPS_MS * 1000);
        _exit(0);
    }
    if (ctx->rank == 1) {
        CHECK(ctx->tp->recv(ctx, 0, in[0], 0) == HK_OK); /* until rank 0 has noticed it */
        return;
    }
    CHECK(ctx->tp->irecv(ctx, 1, in[0], 8, &reqs[0]) == HK_OK);
    CHECK(ctx->tp->irecv(ctx, 2, in[1], 8, &reqs[1]) == HK_OK);
    CHECK(ctx->tp->wait_all(ctx, reqs, 2) == HK_ERR_PEER);
    CHECK(ctx->tp->send(ctx, 1, NULL, 0) == HK_OK);
}

/* Connected sockets: what is sent over the first one is unacknowledged, or does not fit, for 50 ms at most. */
static void connect_tcp(int fds[2])
{
    const int buffer_bytes = 4096;
    const unsigned limit_ms = 50;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0 && bind(listener, (const struct sockaddr *)&at, len) == 0);
    CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes) == 0);
    CHECK(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fds[0] >= 0 && connect(fds[0], (const struct sockaddr *)&at, len) == 0);
    CHECK(setsockopt(fds[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms) == 0);
    fds[1] = accept(listener, NULL, NULL);
    CHECK(fds[1] >= 0 && close(listener) == 0);
}

/* A host that no longer answers is gone: here its socket takes nothing until the kernel gives up (ETIMEDOUT). */
static void host_is_silent(void)
{
    const hk_job_t job = {.rank = 0, .size = 2};
    unsigned char *buf = calloc(1, LARGE_BYTES);
    hk_stream_t *stream = NULL;
    int fds[2];
    connect_tcp(fds);
    CHECK(buf != NULL && hk_stream_create(&hk_transport_tcp, &job, &stream) == HK_OK);
    stream->out[1].fd = stream->in[1].fd = fds[0];
    CHECK(hk_stream_start(stream, false) == HK_OK);
    CHECK(hk_stream_send(&stream->base, 1, buf, LARGE_BYTES) == HK_ERR_PEER);
    hk_stream_close(&stream->base);
    CHECK(close(fds[1]) == 0);
    free(buf);
}

/* In a child, because a hard limit cannot be raised again. */
static void limits_of_descriptors(const hk_transport_t *tp)
{
    const pid_t pid = check_fork();
    if (pid == 0) {
        const struct rlimit enough = {40, 400}, few = {40, 60};
        hk_job_t job = {.rank = 0, .size = 8};
        hk_ctx_t *ctx = NULL;
        CHECK(setrlimit(RLIMIT_NOFILE, &enough) == 0);
        CHECK(tp->prepare(tp, job.size, &job.shared) == HK_OK); /* raises the soft limit */
        CHECK(tp->open(tp, &job, &ctx) == HK_OK);
        tp->close(ctx);

        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        job.shared = NULL;
        CHECK(tp->prepare(tp, 16, &job.shared) == HK_ERR_UNSUPPORTED);
        CHECK(job.shared == NULL);
        exit(0);
    }
    check_end(pid);
}

static void test_transport(const hk_transport_t *tp)
{
    run(tp, 1, 0, alone);
    run(tp, 2, 0, all_lengths);
    /* Oversubscribed from here on: without yields four spinning ranks take very long on a small machine. */
    run(tp, 2, 1, all_lengths_interrupted);
    run(tp, 4, 1, large_to_all);
    run(tp, 2, 1, plain_during_requests);
    run(tp, 2, 1, windows);
    run(tp, 4, 1, one_receives_all);
    run(tp, 3, 1, ring);
    run(tp, 2, 1, peer_dies);
    run(tp, 3, 1, one_of_three_dies);
    if (tp->prepare != NULL) {
        limits_of_descriptors(tp);
    }
    (void)printf("%s: fine\n", tp->name);
}

/* With an argument: each family and each way to wait once, pipe, unix:nonblock and tcp:spin. */
int main(int argc, char **argv)
{
    (void)argv;
    static const hk_transport_t *const all[] = {
        &hk_transport_pipe,          &hk_transport_unix,          &hk_transport_tcp,
        &hk_transport_pipe_nonblock, &hk_transport_unix_nonblock, &hk_transport_tcp_nonblock,
        &hk_transport_pipe_spin,     &hk_transport_unix_spin,     &hk_transport_tcp_spin,
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as the worker's main does */
    (void)alarm(CHECK_LIMIT_S);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i += argc > 1 ? 4 : 1) {
        test_transport(all[i]);
    }
    host_is_silent();
    return 0;
}
