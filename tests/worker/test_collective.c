/* Collective patterns on a library of this test: if other ranks may write into `in` early, each repetition has another
 * one than the repetition before it, also across batches; the library is asked once, and told when it is over. Of an
 * operation by two others, the first is dropped if the second cannot be made, and both can count all blocks. Uneven
 * blocks have the sum of even ones, also of neighbours; fresh copies of them are in the same places on all ranks. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "pattern.h"

enum { SIZE_BYTES = 64, REPS = 5, ROOM = 8192 };

typedef struct calls {
    hk_ctx_t base;
    const unsigned char *in[REPS];
    int count, made, dropped, fails_at; /* fails_at: this call of make_call does */
} calls_t;

static hk_status_t note(hk_ctx_t *ctx, hk_call_t *call)
{
    calls_t *calls = (calls_t *)(void *)ctx;
    CHECK(call->out != NULL && call->bytes == SIZE_BYTES && calls->count < REPS);
    calls->in[calls->count++] = call->in;
    return HK_OK;
}

static bool has_call(const hk_transport_t *tp, const hk_call_t *call, char *why, size_t len)
{
    (void)tp, (void)why, (void)len;
    return call->operation != HK_BARRIER && call->form == HK_BLOCKING && call->bytes <= INT_MAX;
}

enum { OWN_BYTES = 40 };

static size_t call_bytes(const hk_call_t *call)
{
    (void)call;
    return OWN_BYTES;
}

static hk_status_t make_call(hk_ctx_t *ctx, hk_call_t *call)
{
    calls_t *calls = (calls_t *)(void *)ctx;
    if (++calls->made == calls->fails_at) {
        calls->made--;
        return HK_ERR_SYSTEM;
    }
    CHECK((uintptr_t)call->own % _Alignof(max_align_t) == 0);
    for (size_t i = 0; i < OWN_BYTES; i++) {
        CHECK(((const unsigned char *)call->own)[i] == 0);
    }
    memset(call->own, 1, OWN_BYTES);
    call->run = note;
    return HK_OK;
}

static void drop_call(hk_ctx_t *ctx, hk_call_t *call)
{
    ((calls_t *)(void *)ctx)->dropped++;
    memset(call->own, 0, OWN_BYTES);
}

static unsigned char out[ROOM], in[ROOM];
static _Alignas(16) unsigned char state[ROOM];

static int64_t *option_of(hk_run_t *run, const char *name)
{
    size_t i = 0;
    while (strcmp(run->pattern->option[i].name, name) != 0) {
        i++;
    }
    return &run->option[i];
}

/* A run over this library, planned; algorithm: the number of its word. */
static hk_run_t begin(calls_t *calls, const hk_pattern_t *pattern, int algorithm)
{
    hk_run_t run = {.ctx = &calls->base, .pattern = pattern, .bytes = SIZE_BYTES, .out = out, .in = in};
    for (size_t i = 0; i < HK_OPTIONS_MAX; i++) {
        run.option[i] = pattern->option[i].fallback;
    }
    *option_of(&run, "algorithm") = algorithm;
    memset(state, 0, sizeof state);
    run.state = state;
    const hk_plan_t plan = pattern->plan(&run);
    CHECK(plan.in_bytes <= ROOM && plan.state_bytes <= ROOM && plan.out_bytes <= ROOM);
    return run;
}

static void check_places(const hk_pattern_t *allreduce, bool separate)
{
    const hk_transport_t tp = {.writes_early = separate,
                               .has_call = has_call,
                               .call_bytes = call_bytes,
                               .make_call = make_call,
                               .drop_call = drop_call};
    calls_t calls = {.base = {.tp = &tp, .size = 3}};
    hk_run_t run = begin(&calls, allreduce, 0);
    CHECK(allreduce->prepare(&run) == HK_OK && calls.made == 1);
    for (int batch = 1; calls.count < REPS; batch = 2) { /* batches of an odd and of an even number */
        hk_expected_t expected;
        CHECK(allreduce->repeat(&run, (uint64_t)batch) == HK_OK);
        CHECK(allreduce->expected(&run, 0, &expected) && in + expected.in_offset == calls.in[calls.count - 1]);
    }
    for (int i = 0; i < REPS; i++) {
        CHECK(calls.in[i] + SIZE_BYTES <= in + allreduce->plan(&run).in_bytes);
        CHECK(i == 0 || (calls.in[i] != calls.in[i - 1]) == separate);
    }
    CHECK(allreduce->finish(&run) == HK_OK && calls.dropped == 1);
}

static void check_failure(const hk_pattern_t *allreduce, int fails_at)
{
    enum { PARTS = 6 };
    const hk_transport_t tp = {
        .has_call = has_call, .call_bytes = call_bytes, .make_call = make_call, .drop_call = drop_call};
    calls_t calls = {.base = {.tp = &tp, .size = 3}, .fails_at = fails_at};
    hk_run_t run = begin(&calls, allreduce, PARTS);
    CHECK((allreduce->prepare(&run) == HK_OK) == (fails_at == 0));
    CHECK(fails_at > 0 || allreduce->finish(&run) == HK_OK);
    CHECK(calls.made == (fails_at == 0 ? 2 : fails_at - 1) && calls.dropped == calls.made);
}

/* A gather of blocks, and a bcast of all of them. */
static void check_counts(const hk_pattern_t *allgather)
{
    enum { PARTS = 7 };
    char why[256];
    const hk_transport_t tp = {.has_call = has_call, .call_bytes = call_bytes};
    calls_t calls = {.base = {.tp = &tp, .size = 3}};
    hk_run_t run = begin(&calls, allgather, PARTS);
    run.bytes = INT_MAX / 3;
    CHECK(allgather->fits(&run, why, sizeof why));
    run.bytes++;
    CHECK(!allgather->fits(&run, why, sizeof why) && strstr(why, "made of the library's own operations") != NULL);
}

static void check_neighbours(const hk_pattern_t *neighbours)
{
    enum { LINEAR = 1, ONE_BIG, NEIGHBOURS = 4 };
    const hk_transport_t tp = {.has_call = has_call, .call_bytes = call_bytes};
    for (int rank = 0; rank < 16; rank++) {
        calls_t calls = {.base = {.tp = &tp, .rank = rank, .size = 16}};
        hk_run_t run = begin(&calls, neighbours, 0);
        for (int counts = 0; counts <= ONE_BIG; counts++) {
            *option_of(&run, "counts") = counts;
            const size_t bytes = neighbours->plan(&run).out_bytes, even = NEIGHBOURS * SIZE_BYTES;
            CHECK(counts == LINEAR ? bytes <= even && bytes + SIZE_BYTES >= even : bytes == even);
        }
    }
}

/* As many on all ranks, where a warm-up uses all; in the same places, too, where ranks name each other's memory by
 * their own. */
static void check_fresh_copies(const hk_pattern_t *allgatherv, bool separate)
{
    enum { LINEAR = 1, ONE_BIG, RANKS = 3, FRESH = 1 };
    const hk_transport_t tp = {
        .caps = separate ? 0 : HK_CAP_KEEPS, .writes_early = separate, .has_call = has_call, .call_bytes = call_bytes};
    for (int counts = LINEAR; counts <= ONE_BIG; counts++) {
        hk_plan_t plan[RANKS];
        for (int rank = 0; rank < RANKS; rank++) {
            calls_t calls = {.base = {.tp = &tp, .rank = rank, .size = RANKS}};
            hk_run_t run = begin(&calls, allgatherv, 0);
            *option_of(&run, "counts") = counts;
            *option_of(&run, "data") = FRESH;
            run.bytes = 300000; /* not so many copies that there are as many of any size */
            plan[rank] = allgatherv->plan(&run);
            CHECK(plan[rank].period > 2 && plan[rank].period == plan[0].period);
            CHECK(plan[rank].in_bytes == plan[0].in_bytes);
            CHECK(!separate || plan[rank].out_bytes == plan[0].out_bytes);
        }
    }
}

int main(void)
{
    extern const hk_pattern_t hk_pattern_allreduce, hk_pattern_allgather, hk_pattern_allgatherv,
        hk_pattern_neighbor_alltoallv;
    check_counts(&hk_pattern_allgather);
    check_fresh_copies(&hk_pattern_allgatherv, true);
    check_fresh_copies(&hk_pattern_allgatherv, false);
    check_neighbours(&hk_pattern_neighbor_alltoallv);
    check_places(&hk_pattern_allreduce, true);
    check_places(&hk_pattern_allreduce, false);
    for (int fails_at = 0; fails_at <= 2; fails_at++) {
        check_failure(&hk_pattern_allreduce, fails_at);
    }
    return 0;
}
