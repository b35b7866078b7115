/* The timed part, on a transport that records every call and has a scripted clock. */
#include <string.h>

#include "check.h"
#include "registry.h"
#include "samples.h"

static char calls[256];
static size_t calls_len;
static const uint64_t *script_ns; /* advance of the clock at each read; afterwards 1000 */
static size_t script_len;
static uint64_t clock_ns;

static void note(char call)
{
    CHECK(calls_len + 1 < sizeof calls);
    calls[calls_len++] = call;
    calls[calls_len] = '\0';
}

static uint64_t scripted_now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    note('t');
    clock_ns += script_len > 0 ? script_ns[0] : 1000;
    if (script_len > 0) {
        script_ns++;
        script_len--;
    }
    return clock_ns;
}

static hk_status_t note_barrier(hk_ctx_t *ctx)
{
    (void)ctx;
    note('b');
    return HK_OK;
}

static hk_status_t note_send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    CHECK(ctx->rank == 0 && peer == 1 && buf != NULL && size_bytes == HK_REFERENCE_BYTES);
    note('s');
    return HK_OK;
}

static hk_status_t note_recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    CHECK(ctx->rank == 0 && peer == 1 && buf != NULL && size_bytes == HK_REFERENCE_BYTES);
    note('r');
    return HK_OK;
}

static hk_status_t note_call(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)call;
    return note_barrier(ctx);
}

static bool has_call(const hk_transport_t *tp, const hk_call_t *call, char *why, size_t len)
{
    (void)tp, (void)why, (void)len;
    return call->operation == HK_BARRIER;
}

static hk_status_t make_call(hk_ctx_t *ctx, hk_call_t *call)
{
    (void)ctx;
    call->run = note_call;
    return HK_OK;
}

static const hk_transport_t recorder = {.name = "recorder",
                                        .caps = HK_CAP_SEND,
                                        .barrier = note_barrier,
                                        .has_call = has_call,
                                        .make_call = make_call,
                                        .send = note_send,
                                        .recv = note_recv,
                                        .now_ns = scripted_now_ns};

static void forget(void)
{
    calls_len = 0;
    calls[0] = '\0';
    clock_ns = 0;
}

static uint32_t place_of(const char *name)
{
    uint32_t place = 0;
    while (strcmp(hk_patterns[place]->name, name) != 0) {
        place++;
    }
    return place;
}

/* Barriers are a stream: ranks meet once, the warm-up runs, and batches follow without a wait. */
static void test_warmup_is_made_before_the_samples_and_in_none_of_them(void)
{
    hk_ctx_t ctx = {.tp = &recorder, .rank = 0, .size = 2};
    uint64_t elapsed_ns[3] = {0};
    hk_result_t result = {.elapsed_ns = elapsed_ns};
    hk_command_t command = {.pattern = place_of("barrier"), .warmup = 4, .batch = 2, .samples = 3};
    for (size_t i = 0; i < HK_OPTIONS_MAX; i++) {
        command.option[i] = hk_patterns[command.pattern]->option[i].fallback;
    }
    static _Alignas(16) unsigned char state[2048];
    unsigned char in[256] = {0}, out[256] = {0};
    hk_run_t run = hk_run_of(&ctx, &command);
    run.state = state;
    run.in = in;
    run.out = out;
    CHECK(run.pattern->plan(&run).state_bytes <= sizeof state && run.pattern->prepare(&run) == HK_OK);
    static const uint64_t steps_ns[] = {10, 10, 100, 200, 400, 7};
    forget();
    script_ns = steps_ns;
    script_len = sizeof steps_ns / sizeof steps_ns[0];
    CHECK(hk_take_samples(&command, &run, &result) == HK_OK);
    /* Meeting, warm-up, start of both clocks; three batches; end of the account, meeting. */
    CHECK(strcmp(calls, "bbbbbttbbtbbtbbttb") == 0);
    CHECK(result.warmup == 4);
    CHECK(elapsed_ns[0] == 100 && elapsed_ns[1] == 200 && elapsed_ns[2] == 400);
    CHECK(result.account.wall_ns == 10 + 100 + 200 + 400 + 7);
    CHECK(result.started_ns == 0); /* virtual time */
}

static void test_reference_is_half_of_the_median_trip(void)
{
    hk_ctx_t ctx = {.tp = &recorder, .rank = 0, .size = 2};
    unsigned char out[HK_REFERENCE_BYTES] = {0}, in[HK_REFERENCE_BYTES] = {0};
    hk_bench_t bench = {.ctx = &ctx, .out = out, .in = in};
    static const uint64_t steps_ns[] = {0, 90000, 0, 8000, 0, 1000, 0, 3000, 0, 2000, 0, 5000};
    double half_ns = 0;
    forget();
    script_ns = steps_ns;
    script_len = sizeof steps_ns / sizeof steps_ns[0];
    CHECK(hk_refer(&bench, &half_ns) == HK_OK);
    CHECK(strcmp(calls, "tsrttsrttsrttsrttsrttsrt") == 0);
    CHECK(half_ns == 1500.0);
}

int main(void)
{
    test_warmup_is_made_before_the_samples_and_in_none_of_them();
    test_reference_is_half_of_the_median_trip();
    return 0;
}
