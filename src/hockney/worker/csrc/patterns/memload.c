/* Local loads (the load table of the Cray T3D report): one rank reads a working set of the given size.
 *
 *   chase       each line holds the address of the next, in a random order of all lines: the latency of a load that
 *               the CPU cannot predict
 *   read-ahead  the same in the order of addresses, which a prefetcher can follow
 *   stream      all words in order, each load independent of the others: time per word
 *
 * Each batch continues where the last one ended. A repetition of chase and read-ahead is one load; of stream, the
 * words of one line. */
#include <stdatomic.h>
#include <stdio.h>

#include "../cacheline.h"
#include "../pattern.h"

enum { ACCESS };
enum { CHASE, STREAM, READ_AHEAD };
enum { LINE_WORDS = HK_LINE_BYTES / sizeof(uint64_t) };

typedef union line {
    uint64_t index;
    union line *next;
    uint64_t word[LINE_WORDS];
} line_t;

_Static_assert(sizeof(line_t) == HK_LINE_BYTES, "a line is what a cache loads at once");

typedef struct place {
    const line_t *at; /* the next line to load */
    uint64_t sum;     /* stream: uses every load, so that the compiler keeps it */
} place_t;

static bool memload_fits(const hk_run_t *run, char *why, size_t len)
{
    snprintf(why, len, "memload uses real memory, which a model does not have");
    return (run->ctx->tp->caps & HK_CAP_VIRTUAL) == 0;
}

static hk_plan_t memload_plan(const hk_run_t *run)
{
    const bool stream = run->option[ACCESS] == STREAM;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .state_bytes = sizeof(place_t),
                       .bytes_per_rep = stream ? sizeof(line_t) : sizeof(uint64_t),
                       .messages_per_rep = stream ? LINE_WORDS : 1,
                       .divisor = stream ? LINE_WORDS : 1};
}

/* xorshift64* (S. Vigna, ACM Trans. Math. Softw. 42 (2016) 30), with a fixed seed: every measurement uses the same
 * order. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* A random permutation that is a single cycle (S. Sattolo, Inf. Process. Lett. 22 (1986) 315). */
static void shuffle(line_t *line, uint64_t count)
{
    uint64_t state = UINT64_C(88172645463325252);
    for (uint64_t i = 0; i < count; i++) {
        line[i].index = i;
    }
    for (uint64_t i = count - 1; i > 0; i--) {
        const uint64_t k = draw(&state) % i;
        const uint64_t kept = line[i].index;
        line[i].index = line[k].index;
        line[k].index = kept;
    }
}

static hk_status_t memload_prepare(hk_run_t *run)
{
    place_t *place = run->state;
    line_t *line = (void *)run->out;
    const uint64_t count = run->bytes / sizeof *line;
    place->at = line;
    if (run->option[ACCESS] == STREAM) {
        return HK_OK;
    }
    if (run->option[ACCESS] == CHASE) {
        shuffle(line, count);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            line[i].index = i + 1 < count ? i + 1 : 0;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        line[i].next = &line[line[i].index];
    }
    return HK_OK;
}

static hk_status_t follow(hk_run_t *run, uint64_t reps)
{
    place_t *place = run->state;
    const line_t *at = place->at;
    for (uint64_t i = 0; i < reps; i++) {
        at = at->next;
    }
    place->at = at;
    return HK_OK;
}

/* Reads lines in order, from where the last batch ended; at the end of the set it continues at the start. */
static hk_status_t stream(hk_run_t *run, uint64_t reps)
{
    place_t *place = run->state;
    const line_t *const first = (const void *)run->out;
    const line_t *const end = first + run->bytes / sizeof *first;
    const line_t *line = place->at;
    uint64_t sum[LINE_WORDS] = {0};
    for (uint64_t left = reps; left > 0;) {
        const uint64_t row = left < (uint64_t)(end - line) ? left : (uint64_t)(end - line);
        for (uint64_t k = 0; k < row; k++) {
#pragma GCC unroll LINE_WORDS
            for (size_t word = 0; word < LINE_WORDS; word++) {
                sum[word] += line[k].word[word];
            }
        }
        left -= row;
        line = line + row < end ? line + row : first;
        atomic_signal_fence(memory_order_seq_cst); /* the next row loads again */
    }
    for (size_t word = 0; word < LINE_WORDS; word++) {
        place->sum += sum[word];
    }
    place->at = line;
    return HK_OK;
}

static hk_status_t memload_repeat(hk_run_t *run, uint64_t reps)
{
    return run->option[ACCESS] == STREAM ? stream(run, reps) : follow(run, reps);
}

const hk_pattern_t hk_pattern_memload = {
    .name = "memload",
    .kind = HK_KIND_MACHINE,
    .summary = "one rank reads a working set of the given size; time per load",
    .ranks_min = 1,
    .ranks_max = 1,
    .timed = HK_TIMED_ROOT,
    .grain_bytes = HK_LINE_BYTES,
    .option = {{"access", "chase|stream|read-ahead", CHASE, 0, 0,
                "each load needs the one before it, in random order; all words in order; like chase, but in order"}},
    .fits = memload_fits,
    .plan = memload_plan,
    .prepare = memload_prepare,
    .repeat = memload_repeat,
};
