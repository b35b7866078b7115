/* Bare calls of the CUDA driver, the reference for the patterns of devices. One pinned process, the first device.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o device_bare device_bare.c -ldl
 *     device_bare CPU WHAT,BYTES,BATCH,SAMPLES…
 *
 * WHAT is a copy between two memories (pinned:device), launch or flag. After a batch that does not count, it prints the
 * median in ns of SAMPLES batches: per copy and wait, per empty kernel and wait, and per half a round trip. */
#include "../../src/hockney/worker/csrc/device_ptx.h"
#include "bare.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { ALIGNED_BYTES = 4096, LINE_BYTES = 256, MANY = 4096 };

static struct {
    int (*init)(unsigned);
    int (*device)(int *, int);
    int (*retain)(void **, int);
    int (*use)(void *);
    int (*alloc)(uintptr_t *, size_t);
    int (*alloc_host)(void **, size_t, unsigned);
    int (*free)(uintptr_t);
    int (*free_host)(void *);
    int (*copy)(uintptr_t, uintptr_t, size_t, void *);
    int (*stream)(void **, unsigned);
    int (*wait)(void *);
    int (*load)(void **, const void *);
    int (*kernel)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
} cuda;

static const char *const symbols[] = {
    "cuInit",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemAlloc_v2",
    "cuMemHostAlloc",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuMemcpyAsync",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
};

static void *stream;
static void *kernels[3]; /* of device_ptx.h */

static void open_device(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *module = NULL;
    int device = 0;
    check(library != NULL, "libcuda.so.1");
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i]);
        check(found != NULL, symbols[i]);
        memcpy((char *)&cuda + i * sizeof found, &found, sizeof found);
    }
    check(cuda.init(0) == 0 && cuda.device(&device, 0) == 0 && cuda.retain(&context, device) == 0, "cuInit");
    check(cuda.use(context) == 0 && cuda.stream(&stream, 1) == 0, "cuStreamCreate");
    check(cuda.load(&module, device_ptx) == 0, "cuModuleLoadData");
    for (int i = 0; i < 3; i++) {
        check(cuda.kernel(&kernels[i], module, device_kernels[i]) == 0, device_kernels[i]);
    }
}

/* Memory of the kind that the word names, up to a colon. */
static uintptr_t make(const char *kind, size_t bytes)
{
    uintptr_t address = 0;
    void *memory = NULL;
    if (strncmp(kind, "device", 6) == 0) {
        check(cuda.alloc(&address, bytes) == 0, "cuMemAlloc");
        return address;
    }
    if (strncmp(kind, "pinned", 6) == 0) {
        check(cuda.alloc_host(&memory, bytes, 3) == 0, "cuMemHostAlloc");
    } else {
        memory = aligned_alloc(ALIGNED_BYTES, (bytes / ALIGNED_BYTES + 1) * ALIGNED_BYTES);
        check(memory != NULL, "aligned_alloc");
    }
    memset(memory, 1, bytes);
    return (uintptr_t)memory;
}

static void drop(const char *kind, uintptr_t memory)
{
    if (strncmp(kind, "device", 6) == 0) {
        (void)cuda.free(memory);
    } else if (strncmp(kind, "pinned", 6) == 0) {
        (void)cuda.free_host((void *)memory);
    } else {
        free((void *)memory);
    }
}

static void launch(int kernel, uint64_t *first, uint64_t *second)
{
    void *arguments[] = {first, second};
    check(cuda.launch(kernels[kernel], 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL) == 0, "cuLaunchKernel");
}

static void copies(uintptr_t to, uintptr_t from, size_t bytes, int batch)
{
    for (int i = 0; i < batch; i++) {
        check(cuda.copy(to, from, bytes, stream) == 0 && cuda.wait(stream) == 0, "cuMemcpyAsync");
    }
}

static void launches(int batch)
{
    uint64_t nothing[2] = {0};
    for (int i = 0; i < batch; i++) {
        launch(0, &nothing[0], &nothing[1]);
        check(cuda.wait(stream) == 0, "cuStreamSynchronize");
    }
}

static uint64_t flags(_Atomic uint64_t *go, const _Atomic uint64_t *back, uint64_t number, int batch)
{
    for (int i = 0; i < batch; i++) {
        atomic_store_explicit(go, ++number, memory_order_release);
        while (atomic_load_explicit(back, memory_order_acquire) != number) {
        }
    }
    return number;
}

static double measure(const char *what, size_t bytes, int batch, int samples)
{
    const int is_flag = strcmp(what, "flag") == 0, is_launch = strcmp(what, "launch") == 0;
    const char *target = strchr(what, ':') != NULL ? strchr(what, ':') + 1 : what;
    const char *kinds[2] = {is_flag || is_launch ? "pinned" : what, is_flag || is_launch ? "pinned" : target};
    const size_t room = is_flag ? LINE_BYTES : bytes;
    uintptr_t memory[2] = {make(kinds[0], room + 1), make(kinds[1], room + 1)};
    double *time_ns = calloc((size_t)samples + 1, sizeof *time_ns);
    uint64_t number = 0, words[2] = {memory[0], memory[1]};
    check(time_ns != NULL, "calloc");
    if (is_flag) {
        memset((void *)memory[0], 0, room);
        memset((void *)memory[1], 0, room);
        launch(2, &words[0], &words[1]);
    }
    for (int i = 0; i <= samples; i++) {
        const double start_ns = now_ns();
        if (is_flag) {
            number = flags((_Atomic uint64_t *)memory[0], (_Atomic uint64_t *)memory[1], number, batch);
        } else if (is_launch) {
            launches(batch);
        } else {
            copies(memory[1], memory[0], bytes, batch);
        }
        time_ns[i] = (now_ns() - start_ns) / (is_flag ? 2.0 * batch : (double)batch);
    }
    if (is_flag) {
        atomic_store((_Atomic uint64_t *)memory[0], UINT64_MAX);
        check(cuda.wait(stream) == 0, "cuStreamSynchronize");
    }
    const double median_ns = median_of(time_ns + 1, (size_t)samples);
    free(time_ns);
    drop(kinds[1], memory[1]);
    drop(kinds[0], memory[0]);
    return median_ns;
}

int main(int argc, char **argv)
{
    check(argc > 2, "usage: device_bare CPU WHAT,BYTES,BATCH,SAMPLES…");
    pin(atoi(argv[1]));
    open_device();
    for (int i = 2; i < argc; i++) {
        char what[64];
        size_t bytes = 0;
        int batch = 0, samples = 0;
        check(sscanf(argv[i], "%63[^,],%zu,%d,%d", what, &bytes, &batch, &samples) == 4 && batch > 0 && samples > 0 &&
                  samples <= MANY,
              argv[i]);
        printf("%.2f\n", measure(what, bytes, batch, samples));
    }
    return 0;
}
