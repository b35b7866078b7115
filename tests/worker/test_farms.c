/* The trigger-farm patterns on a recording transport with a scripted clock: the order of
 * each rank's messages, and delays. Letters: s send, r recv, S isend, R irecv, each with the peer; w wait_all;
 * d spin, c compute. */
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_oneway;
extern const hk_pattern_t hk_pattern_pushfarm, hk_pattern_pullfarm, hk_pattern_robpush, hk_pattern_robpull;

typedef struct recorder {
    hk_ctx_t base;
    char text[512];
    size_t len;
    uint64_t clock_ns, read_ns, turn_ns; /* a clock read advances the clock by read_ns, a turn of the loop by turn_ns */
} recorder_t;

static recorder_t *of(hk_ctx_t *ctx)
{
    return (recorder_t *)(void *)ctx;
}

static hk_status_t note(hk_ctx_t *ctx, char letter, int peer)
{
    recorder_t *recorder = of(ctx);
    CHECK(recorder->len + 3 < sizeof recorder->text);
    recorder->text[recorder->len++] = letter;
    if (peer >= 0) {
        recorder->text[recorder->len++] = (char)('0' + peer);
    }
    return HK_OK;
}

static hk_status_t on_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)buf, (void)size_bytes;
    return note(ctx, 's', peer);
}

static hk_status_t on_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    (void)buf, (void)size_bytes;
    return note(ctx, 'r', peer);
}

static hk_status_t on_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)buf, (void)size_bytes, (void)req;
    return note(ctx, 'S', peer);
}

static hk_status_t on_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    (void)buf, (void)size_bytes, (void)req;
    return note(ctx, 'R', peer);
}

static hk_status_t on_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)reqs, (void)count;
    return note(ctx, 'w', -1);
}

static uint64_t on_now_ns(hk_ctx_t *ctx)
{
    return of(ctx)->clock_ns += of(ctx)->read_ns;
}

static void on_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    of(ctx)->clock_ns += duration_ns;
    (void)note(ctx, 'c', -1);
}

static void on_spin(hk_ctx_t *ctx, uint64_t turns)
{
    of(ctx)->clock_ns += turns * of(ctx)->turn_ns;
    (void)note(ctx, 'd', -1);
}

static const hk_transport_t transport = {
    .name = "recorder",
    .send = on_send,
    .recv = on_recv,
    .isend = on_isend,
    .irecv = on_irecv,
    .wait_all = on_wait_all,
    .now_ns = on_now_ns,
    .compute = on_compute,
    .spin = on_spin,
};

typedef struct point {
    const hk_pattern_t *pattern;
    int rank, size;
    int64_t option[HK_OPTIONS_MAX];
    uint64_t read_ns, turn_ns;
} point_t;

static hk_status_t play(const point_t *point, uint64_t reps, recorder_t *recorder, double counted[2])
{
    *recorder = (recorder_t){.base = {.tp = &transport, .rank = point->rank, .size = point->size},
                             .read_ns = point->read_ns,
                             .turn_ns = point->turn_ns};
    unsigned char out[256] = {0};
    unsigned char in[1024] = {0};
    hk_req_t reqs[256];
    _Alignas(16) unsigned char state[512] = {0};
    hk_run_t run = {.ctx = &recorder->base,
                    .pattern = point->pattern,
                    .bytes = 16,
                    .out = out,
                    .in = in,
                    .reqs = reqs,
                    .state = state};
    memcpy(run.option, point->option, sizeof point->option);
    const hk_plan_t plan = point->pattern->plan(&run);
    CHECK(plan.out_bytes <= sizeof out && plan.in_bytes <= sizeof in && plan.state_bytes <= sizeof state);
    CHECK(plan.reqs_count <= 256);
    run.reqs_count = plan.reqs_count;
    hk_status_t status = point->pattern->prepare(&run);
    recorder->len = 0; /* forget the calibration */
    if (status == HK_OK) {
        status = point->pattern->repeat(&run, reps);
    }
    hk_counter_t counter;
    for (size_t i = 0; counted != NULL && status == HK_OK && point->pattern->counter(&run, i, &counter); i++) {
        counted[i] = counter.value;
    }
    recorder->text[recorder->len] = '\0';
    return status;
}

static void check_calls(point_t point, uint64_t reps, const char *text)
{
    recorder_t recorder;
    CHECK(play(&point, reps, &recorder, NULL) == HK_OK);
    if (strcmp(recorder.text, text) != 0) {
        (void)fprintf(stderr, "%s rank %d: %s, not %s\n", point.pattern->name, point.rank, recorder.text, text);
        exit(1);
    }
}

/* Two senders (1, 2) and two receivers (3, 4); three events: receivers 3, 4, 3. */
static void test_farms(void)
{
    const hk_pattern_t *push = &hk_pattern_pushfarm;
    check_calls((point_t){.pattern = push, .rank = 0, .size = 5, .option = {2, 1}}, 3, "S1S2R3wS1S2R4wS1S2R3w");
    check_calls((point_t){.pattern = push, .rank = 2, .size = 5, .option = {2, 1}}, 3, "r0s3r0s4r0s3");
    check_calls((point_t){.pattern = push, .rank = 3, .size = 5, .option = {2, 1}}, 3, "R1R2ws0R1R2ws0");
    check_calls((point_t){.pattern = push, .rank = 4, .size = 5, .option = {2, 1}}, 3, "R1R2ws0");
    const hk_pattern_t *pull = &hk_pattern_pullfarm;
    check_calls((point_t){.pattern = pull, .rank = 0, .size = 5, .option = {2, 1}}, 3, "S3R3wS4R4wS3R3w");
    check_calls((point_t){.pattern = pull, .rank = 1, .size = 5, .option = {2, 1}}, 3, "r3s3r4s4r3s3");
    check_calls((point_t){.pattern = pull, .rank = 4, .size = 5, .option = {2, 1}}, 3, "r0R1R2S1S2ws0");
    /* Two in flight, one sender, receivers 2 and 3: 32 events. From the third start on, an end comes first. */
    char text[512] = "S2S3";
    size_t len = strlen(text);
    for (int i = 0; i < 15; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "r2S2r3S3");
    }
    (void)snprintf(text + len, sizeof text - len, "R2R3w");
    check_calls((point_t){.pattern = pull, .rank = 0, .size = 4, .option = {1, 2}}, 1, text);
}

static void test_robs(void)
{
    const hk_pattern_t *push = &hk_pattern_robpush;
    const hk_pattern_t *pull = &hk_pattern_robpull;
    /* delay of 5 us by compute(); in-turn 0, parallel 1; buffers */
    check_calls((point_t){.pattern = push, .size = 3, .option = {5, 1, 0, 1}}, 2, "r1r2cr1r2c");
    check_calls((point_t){.pattern = push, .size = 3, .option = {5, 1, 1, 1}}, 2, "R1R2wcR1R2wc");
    check_calls((point_t){.pattern = push, .size = 3, .option = {5, 1, 0, 2}}, 2, "R1wr2R1cwr2c");
    check_calls((point_t){.pattern = push, .size = 3, .option = {5, 1, 1, 2}}, 2, "R1R2wR1R2cwc");
    check_calls((point_t){.pattern = push, .size = 3, .option = {0, 1, 0, 1}}, 2, "r1r2r1r2");
    check_calls((point_t){.pattern = push, .rank = 2, .size = 3, .option = {5, 1, 0, 1}}, 2, "s0s0");
    check_calls((point_t){.pattern = pull, .size = 3, .option = {5, 1, 0, 1}}, 1, "s1r1s2r2c");
    check_calls((point_t){.pattern = pull, .size = 3, .option = {5, 1, 0, 2}}, 2, "R1S1ws2r2R1S1cws2r2c");
    check_calls((point_t){.pattern = pull, .size = 3, .option = {5, 1, 1, 1}}, 1, "R1S1R2S2wc");
    check_calls((point_t){.pattern = pull, .rank = 1, .size = 3, .option = {5, 1, 0, 1}}, 2, "r0s0r0s0");
}

/* Computation after each message, on the selected side, within its time. */
static void test_computing(void)
{
    const hk_pattern_t *oneway = &hk_pattern_oneway;
    recorder_t recorder;
    double counted[2] = {0, 0};
    check_calls((point_t){.pattern = oneway, .size = 2, .option = {0, 1, 0, 0, 1, 3, 0}}, 2, "s1cs1cr1");
    check_calls((point_t){.pattern = oneway, .rank = 1, .size = 2, .option = {0, 1, 0, 0, 1, 3, 0}}, 2, "r0r0s0");
    check_calls((point_t){.pattern = oneway, .rank = 1, .size = 2, .option = {0, 1, 0, 0, 1, 0, 3}}, 2, "r0cr0cs0");
    check_calls((point_t){.pattern = oneway, .rank = 0, .size = 2, .option = {1, 1, 0, 1, 0, 3, 5}}, 2, "r1cr1c");
    check_calls((point_t){.pattern = oneway, .rank = 2, .size = 3, .option = {0, 1, 0, 0, 1, 3, 5}}, 2, "");
    const point_t point = {.pattern = oneway, .rank = 1, .size = 2, .option = {0, 1, 0, 0, 1, 3, 5}};
    CHECK(play(&point, 7, &recorder, counted) == HK_OK);
    CHECK(counted[0] == 7 && counted[1] == 7 * 5000 && recorder.clock_ns == 7 * 5000);
}

static void test_delays(void)
{
    recorder_t recorder;
    double counted[2] = {0, 0};
    /* A loop with turns of 4 ns: 7 us, three times. */
    point_t point = {.pattern = &hk_pattern_robpush, .size = 2, .option = {7, 0, 0, 1}, .turn_ns = 4};
    CHECK(play(&point, 3, &recorder, counted) == HK_OK);
    CHECK(strcmp(recorder.text, "r1dr1dr1d") == 0);
    CHECK(counted[0] == 3 && counted[1] == 21000);
    /* The clock does not move during the loop; compute() moves it. */
    point.turn_ns = 0;
    CHECK(play(&point, 1, &recorder, NULL) == HK_ERR_UNSUPPORTED);
    point.option[1] = 1;
    CHECK(play(&point, 1, &recorder, counted) == HK_OK && counted[0] == 1 && counted[1] == 7000);
    /* A clock with steps of 10 us: no delay, or at least one step. */
    point.read_ns = 10000;
    CHECK(play(&point, 1, &recorder, NULL) == HK_ERR_UNSUPPORTED);
    point.option[0] = 0;
    CHECK(play(&point, 1, &recorder, NULL) == HK_OK);
    point.option[0] = 10;
    CHECK(play(&point, 1, &recorder, NULL) == HK_OK);
}

int main(void)
{
    test_farms();
    test_robs();
    test_computing();
    test_delays();
    (void)printf("farms: fine\n");
    return 0;
}
