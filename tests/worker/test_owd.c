/* One-way delays between two clocks that are days apart and drift, over a cable with another rate and delay each way.
 */
#include <math.h>
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_owd;

static const double AHEAD_NS = 1e15, DRIFT = 1e-4; /* 100 us in a second */
static const double OUT_NS = 30e3, BACK_NS = 50e3; /* a short message */
static const double OUT_NS_PER_BYTE = 160;         /* 50 Mbit/s */

static double here_ns, arrived_ns; /* by the source's clock */
static double busy_ns;             /* of short messages on their way out, while another program has the target's CPU */

static uint64_t now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    return (uint64_t)here_ns;
}

static hk_status_t send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)buf;
    CHECK(peer == 1 - ctx->rank);
    arrived_ns = here_ns + OUT_NS + (size_bytes > 8 ? OUT_NS_PER_BYTE * (double)size_bytes : busy_ns);
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

/* Whether a measurement counts in which some batches compare the clocks on a busy machine. */
static hk_status_t verdict_of(int batches, int busy)
{
    static _Alignas(max_align_t) unsigned char state[64], out[70000], in[70000];
    const hk_transport_t tp = {.name = "scripted", .now_ns = now_ns, .send = send, .recv = recv};
    hk_ctx_t ctx = {.tp = &tp, .rank = 0, .size = 2};
    hk_run_t run = {.ctx = &ctx, .pattern = &hk_pattern_owd, .bytes = 65536, .out = out, .in = in, .state = state};
    memset(state, 0, sizeof state);
    for (int i = 0; i < batches; i++) {
        const double start_ns = here_ns;
        run.untimed_ns = 0;
        busy_ns = i < busy ? 50e6 : 0; /* much longer than the message */
        CHECK(hk_pattern_owd.repeat(&run, 3) == HK_OK);
        CHECK((here_ns - start_ns - (double)run.untimed_ns) / 3 > 65536 * OUT_NS_PER_BYTE); /* never too little */
    }
    busy_ns = 0;
    return hk_pattern_owd.verdict(&run);
}

int main(void)
{
    hk_status_t verdict;
    for (int source = 0; source < 2; source++) {
        for (uint64_t reps = 1; reps <= 100; reps += 99) {
            /* Half of what the short messages' delays differ by cannot be known. The clocks drift by as much as the
             * tolerance in one message, and by a hundred times that in a hundred. */
            const double expected_ns = 65536 * OUT_NS_PER_BYTE + (OUT_NS + BACK_NS) / 2;
            CHECK(fabs(delay_ns(source, 65536, reps, &verdict) - expected_ns) < DRIFT * expected_ns);
            CHECK(verdict == HK_OK);
        }
        (void)delay_ns(source, 8, 10, &verdict);
        CHECK(verdict == HK_ERR_CORRUPT);
    }
    CHECK(verdict_of(4, 1) == HK_OK && verdict_of(4, 2) == HK_OK && verdict_of(4, 3) == HK_ERR_CORRUPT);
    return 0;
}
