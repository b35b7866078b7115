/* What is timed: a transport that writes down every call, and whose clock goes on by a script. */
#include <string.h>

#include "check.h"
#include "registry.h"
#include "samples.h"

static char calls[256];
static size_t calls_len;
static const uint64_t *script_ns; /* how far the clock goes at each look; afterwards 1000 */
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

static hk_status_t note_send(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes)
{
    CHECK(ctx->rank == 0 && peer == 1 && buf != NULL && len_bytes == HK_REFERENCE_BYTES);
    note('s');
    return HK_OK;
}

static hk_status_t note_recv(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes)
{
    CHECK(ctx->rank == 0 && peer == 1 && buf != NULL && len_bytes == HK_REFERENCE_BYTES);
    note('r');
    return HK_OK;
}

static const hk_transport_t recorder = {.name = "recorder",
                                        .caps = HK_CAP_SEND,
                                        .barrier = note_barrier,
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

/* Barriers are a stream: ranks come together once, the warm-up is made, and no batch waits for another. */
static void test_warmup_is_made_before_the_samples_and_in_none_of_them(void)
{
    hk_ctx_t ctx = {.tp = &recorder, .rank = 0, .size = 2};
    uint64_t elapsed_ns[3] = {0};
    hk_result_t result = {.elapsed_ns = elapsed_ns};
    const hk_command_t command = {.pattern = place_of("barrier"), .warmup = 4, .batch = 2, .samples = 3};
    hk_run_t run = hk_run_of(&ctx, &command);
    static const uint64_t looks_ns[] = {10, 10, 100, 200, 400, 7};
    forget();
    script_ns = looks_ns;
    script_len = sizeof looks_ns / sizeof looks_ns[0];
    CHECK(hk_take_samples(&command, &run, &result) == HK_OK);
    /* Together, warm-up, both clocks begin; three batches; the account ends, and together again. */
    CHECK(strcmp(calls, "bbbbbttbbtbbtbbttb") == 0);
    CHECK(result.warmup == 4);
    CHECK(elapsed_ns[0] == 100 && elapsed_ns[1] == 200 && elapsed_ns[2] == 400);
    CHECK(result.account.wall_ns == 10 + 100 + 200 + 400 + 7);
    CHECK(result.started_ns == 0); /* time is not the kernel's */
}

static void test_reference_is_half_of_the_median_trip(void)
{
    hk_ctx_t ctx = {.tp = &recorder, .rank = 0, .size = 2};
    unsigned char out[HK_REFERENCE_BYTES] = {0}, in[HK_REFERENCE_BYTES] = {0};
    hk_bench_t bench = {.ctx = &ctx, .out = out, .in = in};
    static const uint64_t looks_ns[] = {0, 90000, 0, 8000, 0, 1000, 0, 3000, 0, 2000, 0, 5000};
    double half_ns = 0;
    forget();
    script_ns = looks_ns;
    script_len = sizeof looks_ns / sizeof looks_ns[0];
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
