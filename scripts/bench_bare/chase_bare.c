/* A bare pointer chase, the reference for the latencies of the load table. One pinned process follows a chain of
 * cache lines in random order.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o chase_bare chase_bare.c
 *     chase_bare CPU BYTES LOADS SAMPLES
 *
 * It visits the whole set once, then takes SAMPLES times of LOADS loads each, and prints the median in ns per load. */
#include "bare.h"

#include <stdint.h>

enum { LINE_BYTES = 64, PAGE_BYTES = 4096 };

struct line {
    _Alignas(LINE_BYTES) struct line *next;
};

/* All lines in one ring: their numbers are shuffled, and each line points to the line with the next number. */
static void link_lines(struct line *lines, uint32_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    check(order != NULL, "malloc");
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count - 1; i > 0; i--) {
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

int main(int argc, char **argv)
{
    check(argc == 5, "usage: chase_bare CPU BYTES LOADS SAMPLES");
    pin(atoi(argv[1]));
    const size_t bytes = strtoul(argv[2], NULL, 10) / LINE_BYTES * LINE_BYTES;
    const long loads = atol(argv[3]);
    const int samples = atoi(argv[4]);
    const uint32_t count = (uint32_t)(bytes / LINE_BYTES);
    struct line *lines = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    double *load_ns = calloc((size_t)samples, sizeof *load_ns);
    check(count > 0 && loads > 0 && samples > 0 && lines != NULL && load_ns != NULL, "chase_bare");
    link_lines(lines, count);
    struct line *at = chase(lines, count);
    for (int i = 0; i < samples; i++) {
        const double start_ns = now_ns();
        at = chase(at, loads);
        load_ns[i] = (now_ns() - start_ns) / (double)loads;
    }
    printf("%.4f\n", median_of(load_ns, (size_t)samples));
    free(load_ns);
    free(lines);
    return 0;
}
