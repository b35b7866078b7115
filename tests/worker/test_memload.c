/* memload: what is walked is one cycle through every line of the working set, in the order that was asked for. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_memload;

enum { LINE_BYTES = 64, CHASE = 0, READ_AHEAD = 2 };

/* Follows the addresses from the first line until it is back there; the number of steps, each line seen once. */
static size_t walk(const unsigned char *set, size_t lines, size_t *in_order_p)
{
    unsigned char *seen = calloc(lines, 1);
    const unsigned char *at = set;
    size_t steps = 0;
    *in_order_p = 0;
    do {
        const unsigned char *next;
        memcpy(&next, at, sizeof next);
        const size_t line = (size_t)(next - set) / LINE_BYTES;
        CHECK(next >= set && line < lines && (size_t)(next - set) % LINE_BYTES == 0);
        CHECK(seen[line] == 0);
        seen[line] = 1;
        *in_order_p += next == at + LINE_BYTES;
        at = next;
        steps++;
    } while (at != set);
    free(seen);
    return steps;
}

static size_t lay_out(int64_t access, size_t lines, size_t *in_order_p)
{
    hk_ctx_t ctx = {.size = 1};
    hk_run_t run = {.ctx = &ctx, .bytes = lines * LINE_BYTES, .option = {access}};
    hk_plan_t plan;
    CHECK(hk_pattern_memload.plan(&run, &plan) == HK_OK);
    CHECK(plan.out_bytes == run.bytes);
    run.out = aligned_alloc(4096, (plan.out_bytes + 4095) / 4096 * 4096);
    run.state = calloc(1, plan.state_bytes);
    CHECK(hk_pattern_memload.prepare(&run) == HK_OK);
    CHECK(hk_pattern_memload.repeat(&run, 3 * lines + 1) == HK_OK);
    const size_t steps = walk(run.out, lines, in_order_p);
    free(run.out);
    free(run.state);
    return steps;
}

int main(void)
{
    static const size_t counts[] = {1, 2, 3, 64, 1000, 16384};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const size_t lines = counts[i];
        size_t in_order = 0;
        CHECK(lay_out(CHASE, lines, &in_order) == lines);
        CHECK(lines < 64 || in_order < lines / 8); /* a random order follows the addresses now and then only */
        CHECK(lay_out(READ_AHEAD, lines, &in_order) == lines);
        CHECK(in_order == lines - 1);
    }
    return 0;
}
