/* Bare loads, the reference for the load table. One pinned process follows a chain of cache lines, in random order
 * (chase) or in that of addresses (read-ahead), or adds up all their words (stream).
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o chase_bare chase_bare.c
 *     chase_bare CPU BYTES LOADS SAMPLES chase|read-ahead|stream
 *
 * It visits the whole set once, then takes SAMPLES times of LOADS lines each, and prints the median in ns per line
 * (stream: per word). */
#include "bare.h"

#include <stdint.h>

enum { LINE_BYTES = 64, LINE_WORDS = 8, PAGE_BYTES = 4096 };

struct line {
    _Alignas(LINE_BYTES) struct line *next;
    uint64_t rest[LINE_WORDS - 1];
};

/* All lines in one ring: their numbers are shuffled, and each line points to the line with the next number. */
static void link_lines(struct line *lines, uint32_t count, int is_shuffled)
{
    uint32_t *order = malloc(count * sizeof *order);
    check(order != NULL, "malloc");
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count - 1; is_shuffled && i > 0; i--) {
        const uint32_t other = (uint32_t)(random() % (i + 1));
        const uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (uint32_t i = 0; i < count; i++) {
        lines[order[i]].next = &lines[order[(i + 1) % count]];
    }
    free(order);
}

static struct line *chase(struct line *at, long loads)
{
    for (long i = 0; i < loads; i++) {
        at = at->next;
    }
    __asm__ volatile("" : : "r"(at)); /* keeps the loads */
    return at;
}

/* The words of LOADS lines from the line `first` on, which begins again at the end. */
static uint32_t add_up(const struct line *lines, uint32_t count, uint32_t first, long loads)
{
    uint64_t sum[LINE_WORDS] = {0};
    for (long left = loads; left > 0; first = 0) {
        const uint32_t end = left < count - first ? first + (uint32_t)left : count;
        left -= end - first;
        for (; first < end; first++) {
            for (int word = 0; word < LINE_WORDS; word++) {
                sum[word] += ((const uint64_t *)(const void *)&lines[first])[word];
            }
        }
        if (left == 0) {
            break;
        }
    }
    for (int word = 0; word < LINE_WORDS; word++) {
        __asm__ volatile("" : : "r"(sum[word])); /* keeps the loads */
    }
    return first < count ? first : 0;
}

int main(int argc, char **argv)
{
    check(argc == 6, "usage: chase_bare CPU BYTES LOADS SAMPLES chase|read-ahead|stream");
    const int is_stream = argv[5][0] == 's';
    pin(atoi(argv[1]));
    const size_t bytes = strtoul(argv[2], NULL, 10) / LINE_BYTES * LINE_BYTES;
    const long loads = atol(argv[3]);
    const int samples = atoi(argv[4]);
    const uint32_t count = (uint32_t)(bytes / LINE_BYTES);
    struct line *lines = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    double *load_ns = calloc((size_t)samples, sizeof *load_ns);
    check(count > 0 && loads > 0 && samples > 0 && lines != NULL && load_ns != NULL, "chase_bare");
    link_lines(lines, count, argv[5][0] == 'c');
    struct line *at = chase(lines, count);
    uint32_t place = 0;
    for (int i = 0; i < samples; i++) {
        const double start_ns = now_ns();
        if (is_stream) {
            place = add_up(lines, count, place, loads);
        } else {
            at = chase(at, loads);
        }
        load_ns[i] = (now_ns() - start_ns) / (double)(is_stream ? LINE_WORDS * loads : loads);
    }
    printf("%.4f\n", median_of(load_ns, (size_t)samples));
    free(load_ns);
    free(lines);
    return 0;
}
