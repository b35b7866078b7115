/* Which of several exchanges tells a rank's clock from its parent's: the shortest one that is whole and counts. */
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_clocks;

/* The parent sends, this rank reads its clock, the parent gets the answer. Zeros: the message was lost. */
typedef struct exchange {
    uint64_t first_ns, read_ns, sent_ns, answered_ns;
} exchange_t;

static const exchange_t *next_exchange;
static bool has_begun;

static uint64_t now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    return next_exchange->read_ns;
}

static hk_status_t send(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    (void)ctx, (void)buf, (void)size_bytes;
    CHECK(peer == 0);
    return HK_OK;
}

static hk_status_t recv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    uint64_t stamp[2] = {next_exchange->first_ns, 0};
    (void)ctx;
    CHECK(peer == 0 && size_bytes == sizeof stamp);
    if (has_begun) {
        stamp[0] = next_exchange->sent_ns;
        stamp[1] = next_exchange->answered_ns;
        next_exchange++;
    }
    has_begun = !has_begun;
    memcpy(buf, stamp, sizeof stamp);
    return HK_OK;
}

static double counted(const hk_run_t *run, size_t i)
{
    hk_counter_t counter;
    CHECK(hk_pattern_clocks.counter(run, i, &counter));
    return counter.value;
}

int main(void)
{
    static const exchange_t exchanges[] = {
        {1000, 1500, 1000, 1010}, /* of the warm-up */
        {2000, 2700, 2000, 2400}, /* ahead by 500 +- 200 */
        {3000, 3600, 3000, 3100}, /* ahead by 550 +- 50 */
        {0, 4600, 4000, 4010},    /* the first message was lost */
        {5000, 5600, 0, 0},       /* the second one */
        {6000, 6900, 6000, 6300},
    };
    const hk_transport_t tp = {.name = "scripted", .now_ns = now_ns, .send = send, .recv = recv};
    hk_ctx_t ctx = {.tp = &tp, .rank = 1, .size = 2};
    _Alignas(max_align_t) unsigned char state[64] = {0}, out[64], in[64];
    hk_run_t run = {.ctx = &ctx, .pattern = &hk_pattern_clocks, .out = out, .in = in, .state = state};
    CHECK(hk_pattern_clocks.plan(&run).state_bytes <= sizeof state);
    next_exchange = exchanges;
    CHECK(hk_pattern_clocks.repeat(&run, 1) == HK_OK);
    CHECK(counted(&run, 0) == 0 && counted(&run, 1) == 0);
    CHECK(hk_pattern_clocks.repeat(&run, 5) == HK_OK);
    CHECK(counted(&run, 0) == 550 && counted(&run, 1) == 50);
    return 0;
}
