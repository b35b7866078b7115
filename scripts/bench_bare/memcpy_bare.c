/* A bare memcpy, the reference for the stream bandwidth of shm. One pinned process copies between two buffers
 * repeatedly.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o memcpy_bare memcpy_bare.c
 *     memcpy_bare CPU SAMPLES BYTES:BATCH ...
 *
 * Prints a line for each size: bytes, median ns per copy. */
#include "bare.h"

#include <string.h>

enum { SAMPLES_MAX = 10000, PAGE_BYTES = 4096 };

static void copy(char *to, const char *from, size_t size_bytes, long batch)
{
    for (long i = 0; i < batch; i++) {
        memcpy(to, from, size_bytes);
        __asm__ volatile("" : : "r"(to), "r"(from) : "memory"); /* keeps every copy, not only the last */
    }
}

static void measure(size_t size_bytes, long batch, int samples)
{
    static double copy_ns[SAMPLES_MAX];
    const size_t room = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *from = aligned_alloc(PAGE_BYTES, room);
    char *to = aligned_alloc(PAGE_BYTES, room);
    check(from != NULL && to != NULL, "aligned_alloc");
    memset(from, 1, room);
    memset(to, 2, room);
    copy(to, from, size_bytes, batch);
    for (int i = 0; i < samples; i++) {
        const double start_ns = now_ns();
        copy(to, from, size_bytes, batch);
        copy_ns[i] = (now_ns() - start_ns) / (double)batch;
    }
    printf("%zu %.2f\n", size_bytes, median_of(copy_ns, (size_t)samples));
    free(to);
    free(from);
}

int main(int argc, char **argv)
{
    const int samples = argc > 3 ? atoi(argv[2]) : 0;
    check(samples > 0 && samples <= SAMPLES_MAX, "usage: memcpy_bare CPU SAMPLES BYTES:BATCH ...");
    pin(atoi(argv[1]));
    for (int i = 3; i < argc; i++) {
        size_t size_bytes = 0;
        long batch = 0;
        check(sscanf(argv[i], "%zu:%ld", &size_bytes, &batch) == 2 && size_bytes > 0 && batch > 0, "not BYTES:BATCH");
        measure(size_bytes, batch, samples);
    }
    return 0;
}
