/* Patterns on a scripted transport: the place of each message, and counts over several samples. */
#include <stddef.h>

#include "check.h"
#include "patterns/flow.h"

enum { BLOCK_BYTES = 96 * 1024, WINDOW = 7, WRITES = 3 };

extern const hk_pattern_t hk_pattern_stream;

static unsigned char *landed[2 * WINDOW];
static size_t calls, moved_at_once;

static hk_status_t note_place(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    CHECK(ctx->rank == 1 && peer == 0 && size_bytes == BLOCK_BYTES && req != NULL && calls < 2 * WINDOW);
    landed[calls++] = buf;
    return HK_OK;
}

static hk_status_t take_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    (void)ctx;
    CHECK(reqs != NULL && count == WINDOW);
    return HK_OK;
}

/* Receives share the room of two blocks: messages alternate between them. */
static void check_places(void)
{
    static unsigned char in[2 * BLOCK_BYTES];
    static hk_req_t reqs[WINDOW];
    const hk_transport_t tp = {.name = "scripted", .irecv = note_place, .wait_all = take_all};
    hk_ctx_t ctx = {.tp = &tp, .rank = 1, .size = 2};
    hk_run_t run = {.ctx = &ctx, .bytes = BLOCK_BYTES, .in = in, .reqs = reqs, .reqs_count = WINDOW};
    run.option[HK_FLOW_UNTIL] = HK_UNTIL_SENT;
    run.option[HK_FLOW_WINDOW] = WINDOW;
    CHECK(hk_flow_plan(&run, 1, false).in_bytes == sizeof in && hk_flow_plan(&run, 1, false).reqs_count == WINDOW);
    CHECK(hk_flow_receive(&run, 0, 2, NULL) == HK_OK);
    CHECK(calls == 2 * WINDOW);
    for (size_t i = 0; i < calls; i++) {
        CHECK(landed[i] == in + i % WINDOW % 2 * BLOCK_BYTES);
    }
}

/* Every other call moves nothing, as with a full or empty buffer. */
static size_t move(size_t size_bytes)
{
    const size_t most = size_bytes < moved_at_once ? size_bytes : moved_at_once;
    return calls++ % 2 == 0 ? 0 : most;
}

static hk_status_t write_now(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p)
{
    CHECK(peer == 1 - ctx->rank && buf != NULL);
    *moved_p = move(size_bytes);
    return HK_OK;
}

static hk_status_t read_now(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p)
{
    CHECK(peer == 1 - ctx->rank && buf != NULL);
    *moved_p = move(size_bytes);
    return HK_OK;
}

static double counted(const hk_run_t *run, size_t i)
{
    hk_counter_t counter;
    CHECK(hk_pattern_stream.counter(run, i, &counter));
    return counter.value;
}

static void check_stream(int rank)
{
    static unsigned char out[100], in[200];
    static max_align_t state[64];
    const hk_transport_t tp = {.name = "scripted", .write_now = write_now, .read_now = read_now};
    hk_ctx_t ctx = {.tp = &tp, .rank = rank, .size = 2};
    hk_run_t run = {.ctx = &ctx, .bytes = sizeof out, .option = {1, 1, 0, WRITES}, .out = out, .in = in};
    run.state = state;
    CHECK(hk_pattern_stream.plan(&run).state_bytes <= sizeof state);
    for (size_t i = 0; i < sizeof state; i++) {
        ((unsigned char *)state)[i] = 0;
    }
    CHECK(hk_pattern_stream.prepare(&run) == HK_OK);
    calls = 0;
    moved_at_once = 40; /* writes of a block move 40, 40 and 20 B */
    for (int sample = 1; sample <= 3; sample++) {
        const double samples = sample, blocks = 2 * WRITES * samples;
        CHECK(hk_pattern_stream.repeat(&run, 2) == HK_OK);
        CHECK(counted(&run, 0) == (rank == 0 ? 3 * blocks : 0));
        if (rank == 0) {
            CHECK(counted(&run, 1) == 0 && counted(&run, 2) == 0 && (double)calls == 6 * blocks);
        } else { /* reads run over the end of a block: 600 B are 15 of 40 B, all but the last one short of 100 B */
            CHECK(counted(&run, 1) == 15 * samples && counted(&run, 2) == 15 * samples);
            CHECK(counted(&run, 3) == 14 * samples && (double)calls == 30 * samples);
        }
    }
}

int main(void)
{
    check_places();
    check_stream(0);
    check_stream(1);
    return 0;
}
