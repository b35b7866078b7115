/* Successive allreduces: if other ranks may write into the sum early, each has a different place than the one before
 * it, also across batches, inside the buffer and separate from the library's work memory. */
#include "check.h"
#include "pattern.h"

enum { SIZE_BYTES = 64, REPS = 5, IN_MAX = 8192 };

typedef struct calls {
    hk_ctx_t base;
    const unsigned char *in[REPS], *work;
    int count;
} calls_t;

static hk_status_t note(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t size_bytes)
{
    calls_t *calls = (calls_t *)(void *)ctx;
    CHECK(out != NULL && size_bytes == SIZE_BYTES && calls->count < REPS);
    calls->in[calls->count++] = in;
    calls->work = work;
    return HK_OK;
}

static void check_places(const hk_pattern_t *allreduce, uint32_t caps, bool separate)
{
    static unsigned char out[SIZE_BYTES], in[IN_MAX];
    const hk_transport_t tp = {.caps = caps, .allreduce = note};
    calls_t calls = {.base = {.tp = &tp, .size = 3}};
    uint64_t state = 0;
    hk_run_t run = {.ctx = &calls.base, .bytes = SIZE_BYTES, .out = out, .in = in, .state = &state};
    const size_t in_bytes = allreduce->plan(&run).in_bytes;
    CHECK(in_bytes <= IN_MAX && allreduce->plan(&run).state_bytes == sizeof state);
    for (int batch = 1; calls.count < REPS; batch = 2) { /* batches of an odd and of an even number */
        hk_expected_t expected;
        CHECK(allreduce->repeat(&run, (uint64_t)batch) == HK_OK);
        CHECK(allreduce->expected(&run, 0, &expected) && in + expected.in_offset == calls.in[calls.count - 1]);
    }
    for (int i = 0; i < REPS; i++) {
        CHECK(calls.in[i] + SIZE_BYTES <= calls.work);
        CHECK(i == 0 || (calls.in[i] != calls.in[i - 1]) == separate);
    }
    CHECK(calls.work + SIZE_BYTES + HK_WORK_BYTES == in + in_bytes);
}

int main(void)
{
    extern const hk_pattern_t hk_pattern_allreduce;
    check_places(&hk_pattern_allreduce, HK_CAP_ONE_SIDED, true);
    check_places(&hk_pattern_allreduce, 0, false);
    return 0;
}
