/* memload: the chain is one cycle through every line of the working set, in the requested order. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pattern.h"

extern const hk_pattern_t hk_pattern_memload;

enum { LINE_BYTES = 64, CHASE = 0, STREAM, READ_AHEAD };

/* Follows the chain from the first line back to it. Returns the number of steps; visits each line once. */
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

/* A prepared run of memload, with its memory. */
static hk_run_t open_run(hk_ctx_t *ctx, int64_t access, size_t lines)
{
    hk_run_t run = {.ctx = ctx, .bytes = lines * LINE_BYTES, .option = {access}};
    const hk_plan_t plan = hk_pattern_memload.plan(&run);
    CHECK(plan.out_bytes == run.bytes);
    run.out = aligned_alloc(4096, (plan.out_bytes + 4095) / 4096 * 4096);
    run.state = calloc(1, plan.state_bytes);
    for (size_t i = 0; i < run.bytes; i++) {
        run.out[i] = (unsigned char)(i * 7);
    }
    CHECK(hk_pattern_memload.prepare(&run) == HK_OK);
    return run;
}

static void close_run(hk_run_t *run)
{
    free(run->out);
    free(run->state);
}

static size_t lay_out(int64_t access, size_t lines, size_t *in_order_p)
{
    hk_ctx_t ctx = {.size = 1};
    hk_run_t run = open_run(&ctx, access, lines);
    CHECK(hk_pattern_memload.repeat(&run, 3 * lines + 1) == HK_OK);
    const size_t steps = walk(run.out, lines, in_order_p);
    close_run(&run);
    return steps;
}

/* Successive streams of any length add every word in order; the state keeps the sum. */
static void test_stream(size_t lines)
{
    static const uint64_t batches[] = {1, 5, 1000, 3};
    hk_ctx_t ctx = {.size = 1};
    hk_run_t run = open_run(&ctx, STREAM, lines);
    uint64_t wanted = 0, sum = 0;
    size_t line = 0;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        CHECK(hk_pattern_memload.repeat(&run, batches[i]) == HK_OK);
        for (uint64_t k = 0; k < batches[i]; k++, line = (line + 1) % lines) {
            for (size_t word = 0; word < LINE_BYTES / 8; word++) {
                uint64_t value;
                memcpy(&value, run.out + line * LINE_BYTES + 8 * word, 8);
                wanted += value;
            }
        }
    }
    memcpy(&sum, (const unsigned char *)run.state + sizeof(void *), sizeof sum);
    CHECK(sum == wanted);
    close_run(&run);
}

int main(void)
{
    static const size_t counts[] = {1, 2, 3, 64, 1000, 16384};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const size_t lines = counts[i];
        size_t in_order = 0;
        CHECK(lay_out(CHASE, lines, &in_order) == lines);
        CHECK(lines < 64 || in_order < lines / 8); /* a random order has few neighbours in sequence */
        CHECK(lay_out(READ_AHEAD, lines, &in_order) == lines);
        CHECK(in_order == lines - 1);
        test_stream(lines);
    }
    return 0;
}
