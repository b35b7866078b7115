/* A bare memcpy, the reference for the stream bandwidth of shm. One pinned process copies between two buffers
 * repeatedly. Before and after, it measures the floor with a child on the other CPU: half a round trip of
 * one cache line between them.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o memcpy_bare memcpy_bare.c
 *     memcpy_bare CPU OTHER_CPU [--samples N] BYTES:BATCH ...
 *
 * Prints `floor NS`, a line for each size (bytes, median and minimum ns per copy, GB/s of the median), `floor NS`. */
#include "bare.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES_MAX = 10000, FLOOR_BATCH = 200, FLOOR_SAMPLES = 11, PAGE_BYTES = 4096 };

static void bounce(_Atomic uint64_t *line, uint64_t first, int begins)
{
    for (uint64_t turn = first; turn < first + 2 * FLOOR_BATCH; turn += 2) {
        if (begins) {
            atomic_store_explicit(line, turn + 1, memory_order_release);
        }
        while (atomic_load_explicit(line, memory_order_acquire) != turn + (begins ? 2 : 1)) {
        }
        if (!begins) {
            atomic_store_explicit(line, turn + 2, memory_order_release);
        }
    }
}

static double floor_ns(int other_cpu)
{
    double samples_ns[FLOOR_SAMPLES];
    _Atomic uint64_t *line = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(line != MAP_FAILED, "mmap");
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        pin(other_cpu);
    }
    for (int i = -1; i < FLOOR_SAMPLES; i++) { /* the first is a warm-up */
        const double start_ns = now_ns();
        bounce(line, (uint64_t)(i + 1) * 2 * FLOOR_BATCH, child != 0);
        if (i >= 0) {
            samples_ns[i] = (now_ns() - start_ns) / (2.0 * FLOOR_BATCH);
        }
    }
    if (child == 0) {
        _exit(0);
    }
    check(waitpid(child, NULL, 0) == child, "waitpid");
    munmap((void *)line, PAGE_BYTES);
    return median_of(samples_ns, FLOOR_SAMPLES);
}

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
    const double middle_ns = median_of(copy_ns, (size_t)samples);
    printf("%zu %.2f %.2f %.2f\n", size_bytes, middle_ns, copy_ns[0], (double)size_bytes / middle_ns);
    free(to);
    free(from);
}

int main(int argc, char **argv)
{
    int samples = 51;
    int first = 3;
    if (argc > 4 && strcmp(argv[3], "--samples") == 0) {
        samples = atoi(argv[4]);
        first = 5;
    }
    if (first >= argc || samples < 1 || samples > SAMPLES_MAX) {
        fprintf(stderr, "usage: memcpy_bare CPU OTHER_CPU [--samples N] BYTES:BATCH ...\n");
        return 2;
    }
    pin(atoi(argv[1]));
    printf("floor %.2f\n", floor_ns(atoi(argv[2])));
    for (int i = first; i < argc; i++) {
        size_t size_bytes = 0;
        long batch = 0;
        if (sscanf(argv[i], "%zu:%ld", &size_bytes, &batch) != 2 || size_bytes < 1 || batch < 1) {
            fprintf(stderr, "memcpy_bare: not BYTES:BATCH: '%s'\n", argv[i]);
            return 2;
        }
        measure(size_bytes, batch, samples);
    }
    printf("floor %.2f\n", floor_ns(atoi(argv[2])));
    return 0;
}
