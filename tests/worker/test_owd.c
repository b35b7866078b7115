/* One-way delays between two clocks that are days apart and drift, over a cable with another rate and delay each way.
 */
#include <math.h>
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_owd;

static const double AHEAD_NS = 1e15, DRIFT = 1e-4; /* 100 us in a second */
static const double OUT_NS = 30e3, BACK_NS = 50e3; /* a short message */
static double out_ns_per_byte = 160;               /* 50 Mbit/s */
static double busy_ns = 50e6;                      /* much longer than the message */

static double here_ns, arrived_ns; /* by the source's clock */
/* Of the batches to come: in so many, another program has the target's CPU while the first 10 short messages are on
 * their way out. After 10 before the batch and 10 after it, the last one says whether it is made again. */
static int busy_batches, shorts;

static uint64_t now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    return (uint64_t)here_ns;
}

static hk_status_t send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)buf;
    CHECK(peer == 1 - ctx->rank);
    const bool is_busy = size_bytes == 8 && shorts < 10 && busy_batches > 0;
    arrived_ns = here_ns + OUT_NS + (size_bytes > 8 ? out_ns_per_byte * (double)size_bytes : is_busy ? busy_ns : 0);
    if (size_bytes == 8) {
        busy_batches -= is_busy && shorts == 9;
        shorts = (shorts + 1) % 21;
    }
    return HK_OK;
}

static hk_status_t recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const uint64_t read_ns = (uint64_t)(AHEAD_NS + arrived_ns * (1 + DRIFT));
    CHECK(peer == 1 - ctx->rank && size_bytes == sizeof read_ns);
    memcpy(buf, &read_ns, sizeof read_ns);
    here_ns = arrived_ns + BACK_NS;
    return HK_OK;
}

/* The mean delay of `reps` messages, and whether the pattern lets it count. */
static double delay_ns(int source, size_t bytes, uint64_t reps, hk_status_t *verdict_p)
{
    static _Alignas(max_align_t) unsigned char state[64], out[70000], in[70000];
    const hk_transport_t tp = {.name = "scripted", .now_ns = now_ns, .send = send, .recv = recv};
    hk_ctx_t ctx = {.tp = &tp, .rank = source, .size = 2};
    hk_run_t run = {.ctx = &ctx, .pattern = &hk_pattern_owd, .bytes = bytes, .out = out, .in = in, .state = state};
    run.option[0] = source;
    memset(state, 0, sizeof state);
    const hk_plan_t plan = hk_pattern_owd.plan(&run);
    CHECK(plan.root == source && plan.state_bytes <= sizeof state && plan.out_bytes <= sizeof out);
    const double start_ns = here_ns;
    CHECK(hk_pattern_owd.repeat(&run, reps) == HK_OK);
    *verdict_p = hk_pattern_owd.verdict(&run);
    hk_counter_t counter;
    CHECK(hk_pattern_owd.counter(&run, 0, &counter) && counter.value == 0); /* until the samples */
    CHECK(hk_pattern_owd.repeat(&run, 1) == HK_OK);
    CHECK(hk_pattern_owd.counter(&run, 0, &counter) && fabs(counter.value - (OUT_NS + BACK_NS) / 2) < 2);
    return (here_ns - start_ns - (double)run.untimed_ns) / (double)(reps + 1);
}

/* Whether a measurement of four batches counts if this many are made on a busy machine: its delays are those of an idle
 * one. */
static hk_status_t verdict_of(int busy, int left_out_expected)
{
    static _Alignas(max_align_t) unsigned char state[64], out[70000], in[70000];
    const hk_transport_t tp = {.name = "scripted", .now_ns = now_ns, .send = send, .recv = recv};
    hk_ctx_t ctx = {.tp = &tp, .rank = 0, .size = 2};
    hk_run_t run = {.ctx = &ctx, .pattern = &hk_pattern_owd, .bytes = 65536, .out = out, .in = in, .state = state};
    const double expected_ns = 65536 * out_ns_per_byte + (OUT_NS + BACK_NS) / 2;
    hk_counter_t left_out;
    memset(state, 0, sizeof state);
    CHECK(hk_pattern_owd.counter(&run, 1, &left_out) && left_out.value == 0);
    busy_batches = busy;
    shorts = 0;
    for (int i = 0; i < 4; i++) {
        const double start_ns = here_ns;
        run.untimed_ns = 0;
        CHECK(hk_pattern_owd.repeat(&run, 3) == HK_OK);
        const double delay_ns = (here_ns - start_ns - (double)run.untimed_ns) / 3;
        CHECK(busy > 10 || fabs(delay_ns - expected_ns) < DRIFT * expected_ns);
    }
    CHECK(hk_pattern_owd.counter(&run, 1, &left_out) && left_out.value == left_out_expected);
    return hk_pattern_owd.verdict(&run);
}

int main(void)
{
    hk_status_t verdict;
    for (int source = 0; source < 2; source++) {
        for (uint64_t reps = 1; reps <= 100; reps += 99) {
            /* Half of what the short messages' delays differ by cannot be known. The clocks drift by as much as the
             * tolerance in one message, and by a hundred times that in a hundred. */
            const double expected_ns = 65536 * out_ns_per_byte + (OUT_NS + BACK_NS) / 2;
            CHECK(fabs(delay_ns(source, 65536, reps, &verdict) - expected_ns) < DRIFT * expected_ns);
            CHECK(verdict == HK_OK);
        }
        (void)delay_ns(source, 8, 10, &verdict);
        CHECK(verdict == HK_ERR_CORRUPT);
    }
    CHECK(verdict_of(0, 0) == HK_OK && verdict_of(1, 1) == HK_OK && verdict_of(10, 10) == HK_OK);
    CHECK(verdict_of(11, 11) == HK_ERR_CORRUPT);
    out_ns_per_byte = 1600;
    busy_ns = 1e6; /* less than 1 % of the message */
    CHECK(verdict_of(11, 0) == HK_OK);
    return 0;
}
