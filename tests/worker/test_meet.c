/* Two ranks over a link of 2 ms in virtual time, so all times are known exactly. Ranks that both act from the start
 * of a sample start at the same moment, and each way to receive takes the expected time. */
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "pattern.h"
#include "registry.h"
#include "samples.h"

enum { WAY_NS = 2000 * 1000, LATE_NS = 9000 * 1000, SLEEPS_LATE_NS = 150 * 1000 };
enum { PROBE_NS = 250 * 1000, COPY_NS = 3 * PROBE_NS };
enum { MESSAGES_MAX = 256, SAMPLES = 3, BATCH = 4 };

/* PLAIN: a send returns at once. SYNCHRONOUS: it returns when the confirmation of its receive arrives. READY: the
 * message leaves when the confirmation of its receive arrives. */
typedef enum mode { PLAIN, SYNCHRONOUS, READY } sending_t;

/* Messages from one rank to the other, in order. */
typedef struct way {
    struct {
        uint64_t left_ns, awaited_ns;
        unsigned char bytes[8]; /* only plain receives copy them */
    } message[MESSAGES_MAX];
    int left, awaited;
} way_t;

typedef struct link {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    sending_t mode;
    int late;         /* the message of rank 0 that takes LATE_NS more; -1: none */
    uint64_t copy_ns; /* cost of a receive that begins after its message has arrived */
    way_t from[2];
} link_t;

typedef struct end {
    hk_ctx_t base;
    link_t *link;
    uint64_t clock_ns;
    size_t open; /* open receives */
} end_t;

static end_t *of(hk_ctx_t *ctx)
{
    return (end_t *)(void *)ctx;
}

static void reach(hk_ctx_t *ctx, uint64_t moment_ns)
{
    end_t *end = of(ctx);
    end->clock_ns = end->clock_ns < moment_ns ? moment_ns : end->clock_ns;
}

/* When rank's receive of the k-th message began; waits for it. */
static uint64_t awaited_ns(link_t *link, const way_t *way, int k)
{
    while (way->awaited <= k) {
        CHECK(pthread_cond_wait(&link->moved, &link->lock) == 0);
    }
    return way->message[k].awaited_ns;
}

static uint64_t arrival_ns(const link_t *link, int from, int k)
{
    return link->from[from].message[k].left_ns + WAY_NS + (from == 0 && k == link->late ? LATE_NS : 0);
}

static hk_status_t virtual_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)peer;
    link_t *link = of(ctx)->link;
    way_t *way = &link->from[ctx->rank];
    CHECK(pthread_mutex_lock(&link->lock) == 0);
    const int k = way->left;
    CHECK(k < MESSAGES_MAX);
    if (link->mode == READY) {
        reach(ctx, awaited_ns(link, way, k) + WAY_NS);
    }
    way->message[k].left_ns = of(ctx)->clock_ns;
    memcpy(way->message[k].bytes, buf, size_bytes);
    way->left++;
    CHECK(pthread_cond_broadcast(&link->moved) == 0);
    if (link->mode == SYNCHRONOUS) {
        const uint64_t ready_ns = awaited_ns(link, way, k);
        const uint64_t there_ns = arrival_ns(link, ctx->rank, k);
        reach(ctx, (ready_ns > there_ns ? ready_ns : there_ns) + WAY_NS);
    }
    CHECK(pthread_mutex_unlock(&link->lock) == 0);
    return HK_OK;
}

static void await(hk_ctx_t *ctx)
{
    link_t *link = of(ctx)->link;
    way_t *way = &link->from[1 - ctx->rank];
    CHECK(pthread_mutex_lock(&link->lock) == 0);
    const int k = way->awaited;
    CHECK(k < MESSAGES_MAX);
    way->message[k].awaited_ns = of(ctx)->clock_ns;
    way->awaited++;
    CHECK(pthread_cond_broadcast(&link->moved) == 0);
    CHECK(pthread_mutex_unlock(&link->lock) == 0);
}

static void take(hk_ctx_t *ctx, int k)
{
    link_t *link = of(ctx)->link;
    CHECK(pthread_mutex_lock(&link->lock) == 0);
    while (link->from[1 - ctx->rank].left <= k) {
        CHECK(pthread_cond_wait(&link->moved, &link->lock) == 0);
    }
    const uint64_t there_ns = arrival_ns(link, 1 - ctx->rank, k);
    reach(ctx, there_ns);
    of(ctx)->clock_ns += link->from[1 - ctx->rank].message[k].awaited_ns >= there_ns ? link->copy_ns : 0;
    CHECK(pthread_mutex_unlock(&link->lock) == 0);
}

/* A failed probe takes PROBE_NS. */
static hk_status_t virtual_probe(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    link_t *link = of(ctx)->link;
    CHECK(pthread_mutex_lock(&link->lock) == 0);
    const int k = link->from[peer].awaited;
    while (link->from[peer].left <= k) {
        CHECK(pthread_cond_wait(&link->moved, &link->lock) == 0);
    }
    *is_there_p = arrival_ns(link, peer, k) <= of(ctx)->clock_ns;
    of(ctx)->clock_ns += *is_there_p ? 0 : PROBE_NS;
    CHECK(pthread_mutex_unlock(&link->lock) == 0);
    return HK_OK;
}

static hk_status_t virtual_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const way_t *way = &of(ctx)->link->from[peer];
    await(ctx);
    take(ctx, way->awaited - 1);
    memcpy(buf, way->message[way->awaited - 1].bytes, size_bytes);
    return HK_OK;
}

/* Samples use PLAIN mode only, where a sent message needs no further action. */
static hk_status_t virtual_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)req;
    return virtual_send(ctx, peer, buf, size_bytes);
}

static hk_status_t virtual_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)peer, (void)buf, (void)size_bytes, (void)req;
    await(ctx);
    of(ctx)->open++;
    return HK_OK;
}

static hk_status_t virtual_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs, (void)count;
    const int awaited = of(ctx)->link->from[1 - ctx->rank].awaited;
    for (; of(ctx)->open > 0; of(ctx)->open--) {
        take(ctx, awaited - (int)of(ctx)->open);
    }
    return HK_OK;
}

static uint64_t virtual_now_ns(hk_ctx_t *ctx)
{
    return of(ctx)->clock_ns;
}

static void virtual_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    of(ctx)->clock_ns += duration_ns;
}

static void virtual_sleep(hk_ctx_t *ctx, uint64_t duration_ns)
{
    of(ctx)->clock_ns += duration_ns + SLEEPS_LATE_NS;
}

#define HOOKS                                                                                                          \
    .send = virtual_send, .recv = virtual_recv, .probe = virtual_probe, .isend = virtual_isend,                        \
    .irecv = virtual_irecv, .wait_all = virtual_wait_all, .now_ns = virtual_now_ns, .compute = virtual_compute,        \
    .sleep = virtual_sleep

enum { CAPS = HK_CAP_SEND | HK_CAP_NONBLOCKING };

static const hk_transport_t transports[] = {
    [PLAIN] = {HOOKS, .caps = CAPS},
    [SYNCHRONOUS] = {HOOKS, .caps = CAPS | HK_CAP_SYNCHRONOUS},
    [READY] = {HOOKS, .caps = CAPS | HK_CAP_SYNCHRONOUS},
};

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

typedef struct rank {
    end_t end;
    const hk_pattern_t *pattern;
    int64_t option[HK_OPTIONS_MAX];
    hk_result_t result; /* of samples, where elapsed_ns says where to */
    double counted[2];
    pthread_t thread;
} rank_t;

static uint32_t place_of(const hk_pattern_t *pattern)
{
    uint32_t place = 0;
    for (; hk_patterns[place] != pattern; place++) {
        CHECK(hk_patterns[place] != NULL);
    }
    return place;
}

static void *be_rank(void *argument)
{
    rank_t *rank = argument;
    unsigned char out[16] = {0};
    unsigned char in[16] = {0};
    _Alignas(16) unsigned char state[128] = {0};
    hk_req_t reqs[2];
    hk_run_t run = {.ctx = &rank->end.base,
                    .pattern = rank->pattern,
                    .bytes = 8,
                    .out = out,
                    .in = in,
                    .reqs = reqs,
                    .reqs_count = 2,
                    .state = state};
    memcpy(run.option, rank->option, sizeof run.option);
    CHECK(rank->pattern->plan(&run).state_bytes <= sizeof state);
    if (rank->result.elapsed_ns == NULL) {
        CHECK(rank->pattern->meet(&run) == HK_OK);
    } else {
        const hk_command_t command = {.pattern = place_of(rank->pattern), .samples = SAMPLES, .batch = BATCH};
        CHECK(hk_take_samples(&command, &run, &rank->result) == HK_OK);
    }
    hk_counter_t counter;
    for (size_t i = 0; rank->pattern->counter != NULL && rank->pattern->counter(&run, i, &counter); i++) {
        rank->counted[i] = counter.value;
    }
    return NULL;
}

static link_t run_both(rank_t *ranks, sending_t mode, int late, uint64_t copy_ns)
{
    link_t link = {.lock = PTHREAD_MUTEX_INITIALIZER,
                   .moved = PTHREAD_COND_INITIALIZER,
                   .mode = mode,
                   .late = late,
                   .copy_ns = copy_ns};
    for (int rank = 0; rank < 2; rank++) {
        ranks[rank].end.base = (hk_ctx_t){.tp = &transports[mode], .rank = rank, .size = 2};
        ranks[rank].end.link = &link;
        CHECK(pthread_create(&ranks[rank].thread, NULL, be_rank, &ranks[rank]) == 0);
    }
    for (int rank = 0; rank < 2; rank++) {
        CHECK(pthread_join(ranks[rank].thread, NULL) == 0);
    }
    return link;
}

/* ---- known times ------------------------------------------------------------------------------------------------- */

/* For any rank that arrives first, and any delayed message except the start signal. */
static void check_start(const hk_pattern_t *pattern, sending_t mode)
{
    enum { WORD = 4 }; /* its index, after a meeting and three round trips */
    for (int first = 0; first < 2; first++) {
        for (int late = -1; late < WORD; late++) {
            rank_t ranks[2] = {{.pattern = pattern}, {.pattern = pattern}};
            ranks[1 - first].end.clock_ns = WAY_NS;
            (void)run_both(ranks, mode, late, 0);
            CHECK(ranks[0].end.clock_ns == ranks[1].end.clock_ns);
        }
    }
}

/* Each exchange takes the time of one message. */
static void check_samples(void)
{
    extern const hk_pattern_t hk_pattern_twoway;
    uint64_t elapsed_ns[2][SAMPLES];
    rank_t ranks[2] = {{.pattern = &hk_pattern_twoway, .result = {.elapsed_ns = elapsed_ns[0]}},
                       {.pattern = &hk_pattern_twoway, .result = {.elapsed_ns = elapsed_ns[1]}}};
    (void)run_both(ranks, PLAIN, -1, 0);
    for (int rank = 0; rank < 2; rank++) {
        for (int i = 0; i < SAMPLES; i++) {
            CHECK(elapsed_ns[rank][i] == (uint64_t)BATCH * WAY_NS);
        }
    }
}

/* Half a round trip is one way, plus a copy if the receive begins after the message has arrived. */
static void check_receives(void)
{
    extern const hk_pattern_t hk_pattern_pingpong;
    enum { BLOCKING, POSTED, LATE, PROBE, WAYS };
    const uint64_t half_ns[WAYS] = {WAY_NS, WAY_NS, WAY_NS + COPY_NS, WAY_NS + COPY_NS};
    const double trips = SAMPLES * BATCH;
    for (int64_t way = BLOCKING; way < WAYS; way++) {
        uint64_t elapsed_ns[2][SAMPLES];
        rank_t ranks[2] = {
            {.pattern = &hk_pattern_pingpong, .option = {0, 1, way}, .result = {.elapsed_ns = elapsed_ns[0]}},
            {.pattern = &hk_pattern_pingpong, .option = {0, 1, way}, .result = {.elapsed_ns = elapsed_ns[1]}}};
        const link_t link = run_both(ranks, PLAIN, -1, COPY_NS);
        for (int i = 0; i < SAMPLES; i++) {
            CHECK(elapsed_ns[0][i] == 2 * (uint64_t)BATCH * half_ns[way]);
        }
        int early = 0;
        int late = 0;
        for (int k = 0; k < link.from[1].left; k++) {
            early += link.from[1].message[k].awaited_ns <= link.from[1].message[k].left_ns;
            late += link.from[1].message[k].awaited_ns >= arrival_ns(&link, 1, k);
        }
        CHECK(way != POSTED || early >= (int)trips);
        CHECK((way != LATE && way != PROBE) || late >= (int)trips);
        for (int rank = 0; rank < 2; rank++) {
            CHECK(way == BLOCKING || ranks[rank].counted[0] == trips);
        }
        /* The wait is two plain round trips; a probe ends every PROBE_NS. */
        CHECK(way != LATE || ranks[0].counted[1] == trips * 4 * WAY_NS);
        const int probes = (2 * WAY_NS + COPY_NS) / PROBE_NS + 1;
        CHECK(way != PROBE || ranks[0].counted[1] == trips * probes);
    }
}

int main(void)
{
    extern const hk_pattern_t hk_pattern_twoway;
    (void)alarm(CHECK_LIMIT_S);
    for (sending_t mode = PLAIN; mode <= READY; mode++) {
        check_start(&hk_pattern_twoway, mode);
    }
    check_samples();
    check_receives();
    return 0;
}
