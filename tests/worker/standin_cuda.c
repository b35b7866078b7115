/* libcuda.so.1 without a device: the functions that hockney uses, over memory of the host.
 *
 * What a real one punishes, this one does, too. The CPU faults where it touches device memory. A copy moves nothing
 * before its stream is waited for. Memory that a kernel cannot access, a thread without a context, an address outside
 * any allocation and a handle of this process's own memory are errors. Memory left at the end is reported.
 *
 * STANDIN_CUDA has words like "devices=2 oom=1000000": init, count, oom (the most bytes of an allocation), delay_us and
 * mb_per_s (of each copy), wrong (every copy), deaf (a kernel that sees no flag), hang and lost (from that wait on),
 * exclusive, open (the CPU reaches device memory, as a library that was built for it does). -DSTANDIN_OLD leaves a
 * symbol out. Preloaded, it also answers for MPI and UCX whether they were built for device memory: `aware=1`. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    OK = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    UNAVAILABLE = 46,
    BAD_CONTEXT = 201,
    ECC = 214,
    NOT_FOUND = 500,
    ILLEGAL = 700
};
enum { ALREADY = 704, DEVICES_MAX = 8, BLOCKS_MAX = 1024, OPERATIONS_MAX = 2048 };

/* An allocation: where its user sees it, and where this library reaches it. */
typedef struct block {
    unsigned char *seen, *there;
    size_t size;
    int fd; /* of device memory: a file in memory, which other processes open */
} block_t;

typedef struct context {
    int number, uses;
    bool reaches[DEVICES_MAX];
} context_t;

typedef struct operation {
    unsigned char *to, *from;
    size_t size;
} operation_t;

typedef struct stream {
    context_t *context;
    operation_t operation[OPERATIONS_MAX];
    int count;
    bool has_kernel;
    pthread_t kernel;
    _Atomic uint64_t *go, *back;
} stream_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t blocks[BLOCKS_MAX];
static context_t contexts[DEVICES_MAX];
static _Thread_local context_t *current;
static _Atomic long waits;
static const char *const kernels[] = {"hk_empty", "hk_copy", "hk_flag"};

static long planted(const char *word, long fallback)
{
    const char *text = getenv("STANDIN_CUDA");
    const size_t len = strlen(word);
    for (const char *at = text == NULL ? NULL : strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == text || at[-1] == ' ') && at[len] == '=') {
            return strtol(at + len + 1, NULL, 10);
        }
    }
    return fallback;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int add_block(unsigned char *seen, unsigned char *there, size_t size, int fd)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < BLOCKS_MAX && blocks[i].seen != NULL) {
        i++;
    }
    if (i < BLOCKS_MAX) {
        blocks[i] = (block_t){seen, there, size, fd};
    }
    pthread_mutex_unlock(&lock);
    return i < BLOCKS_MAX ? OK : NO_MEMORY;
}

/* The block that holds an address. */
static block_t *block_at(const void *address)
{
    for (int i = 0; i < BLOCKS_MAX; i++) {
        if (blocks[i].seen != NULL && (uintptr_t)address - (uintptr_t)blocks[i].seen < blocks[i].size) {
            return &blocks[i];
        }
    }
    return NULL;
}

/* Where this library reaches the memory; NULL if not all of it is one allocation. */
static unsigned char *reach(const void *address, size_t size, bool is_kernel)
{
    pthread_mutex_lock(&lock);
    const block_t *block = block_at(address);
    unsigned char *there = block == NULL ? NULL : block->there + ((const unsigned char *)address - block->seen);
    const bool is_inside = block != NULL && (size_t)(there - block->there) + size <= block->size;
    pthread_mutex_unlock(&lock);
    if (block == NULL) {
        return is_kernel ? NULL : (unsigned char *)(uintptr_t)address;
    }
    return is_inside ? there : NULL;
}

static int drop_block(void *address)
{
    pthread_mutex_lock(&lock);
    block_t *found = block_at(address);
    if (found == NULL || found->seen != address) {
        pthread_mutex_unlock(&lock);
        return INVALID;
    }
    const block_t block = *found;
    *found = (block_t){0};
    pthread_mutex_unlock(&lock);
    if (block.there != block.seen) {
        munmap(block.there, block.size);
    }
    munmap(block.seen, block.size);
    if (block.fd >= 0) {
        close(block.fd);
    }
    return OK;
}

static int map_device(uintptr_t *address, size_t size, int fd, bool keeps)
{
    unsigned char *there = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *seen = planted("open", 0) != 0
                              ? there
                              : mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED || seen == MAP_FAILED) {
        return NO_MEMORY;
    }
    *address = (uintptr_t)seen;
    return add_block(seen, there, size, keeps ? fd : -1);
}

static bool refuses(size_t size)
{
    return (long)size > planted("oom", INT64_MAX);
}

int cuMemAlloc_v2(uintptr_t *address, size_t size)
{
    if (current == NULL) {
        return BAD_CONTEXT;
    }
    const int fd = refuses(size) ? -1 : memfd_create("standin", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        return NO_MEMORY;
    }
    return map_device(address, size, fd, true);
}

static int alloc_plain(void **memory, size_t size)
{
    if (current == NULL) {
        return BAD_CONTEXT;
    }
    void *made =
        refuses(size) ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        return NO_MEMORY;
    }
    *memory = made;
    return add_block(made, made, size, -1);
}

#if !defined(STANDIN_OLD)
int cuMemAllocManaged(uintptr_t *address, size_t size, unsigned flags)
{
    void *memory = NULL;
    const int code = flags == 1 ? alloc_plain(&memory, size) : INVALID;
    *address = (uintptr_t)memory;
    return code;
}
#endif

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    return flags == 3 ? alloc_plain(memory, size) : INVALID;
}

int cuMemFree_v2(uintptr_t address)
{
    return drop_block((void *)address);
}

int cuMemFreeHost(void *memory)
{
    return drop_block(memory);
}

typedef struct handle {
    union {
        unsigned char bytes[64];
        struct {
            pid_t pid;
            int fd;
            size_t size;
        } of;
    };
} handle_t;

int cuIpcGetMemHandle(handle_t *handle, uintptr_t address)
{
    const block_t *block = block_at((void *)address);
    if (block == NULL || block->fd < 0) {
        return INVALID;
    }
    memset(handle, 0, sizeof *handle);
    handle->of.pid = getpid();
    handle->of.fd = block->fd;
    handle->of.size = block->size;
    return OK;
}

int cuIpcOpenMemHandle_v2(uintptr_t *address, handle_t handle, unsigned flags)
{
    char path[64];
    if (current == NULL || flags != 1 || handle.of.pid == getpid()) {
        return BAD_CONTEXT;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle.of.pid, handle.of.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return INVALID;
    }
    const int code = map_device(address, handle.of.size, fd, false);
    close(fd);
    return code;
}

int cuIpcCloseMemHandle(uintptr_t address)
{
    return drop_block((void *)address);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

int cuInit(unsigned flags)
{
    return flags == 0 ? (int)planted("init", OK) : INVALID;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}

int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{INVALID, "CUDA_ERROR_INVALID_VALUE"},
                 {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {3, "CUDA_ERROR_NOT_INITIALIZED"},
                 {UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                 {100, "CUDA_ERROR_NO_DEVICE"},
                 {101, "CUDA_ERROR_INVALID_DEVICE"},
                 {BAD_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {ECC, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                 {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                 {ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].code == code) {
            *name = names[i].name;
            return OK;
        }
    }
    return INVALID;
}

int cuDeviceGetCount(int *count)
{
    *count = (int)planted("devices", 1);
    return OK;
}

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return number < planted("devices", 1) ? OK : 101;
}

int cuDeviceGetName(char *name, int len, int device)
{
    (void)snprintf(name, (size_t)len, planted("mig", 0) != 0 ? "Stand-in %d MIG 1g.10gb" : "Stand-in %d", device);
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 16 ? 4 : planted("exclusive", 0) != 0 ? 3 : 0;
    return attribute == 16 || attribute == 20 ? OK : INVALID;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (planted("exclusive", 0) != 0) {
        return UNAVAILABLE;
    }
    pthread_mutex_lock(&lock);
    contexts[device].number = device;
    contexts[device].uses++;
    pthread_mutex_unlock(&lock);
    *context = &contexts[device];
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    int left = 0, uses = 0;
    pthread_mutex_lock(&lock);
    contexts[device].uses--;
    for (int i = 0; i < DEVICES_MAX; i++) {
        uses += contexts[i].uses;
    }
    for (int i = 0; i < BLOCKS_MAX && uses == 0; i++) {
        left += blocks[i].seen != NULL;
    }
    pthread_mutex_unlock(&lock);
    if (left > 0) {
        (void)fprintf(stderr, "stand-in: %d allocations are left\n", left);
    }
    return OK;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return OK;
}

int cuCtxEnablePeerAccess(void *context, unsigned flags)
{
    const context_t *peer = context;
    if (current == NULL || flags != 0 || peer == current) {
        return current == NULL ? BAD_CONTEXT : 101;
    }
    const bool was = current->reaches[peer->number];
    current->reaches[peer->number] = true;
    return was ? ALREADY : OK;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

int cuStreamCreate(void **stream, unsigned flags)
{
    stream_t *made = current == NULL || flags != 1 ? NULL : calloc(1, sizeof *made);
    if (made == NULL) {
        return BAD_CONTEXT;
    }
    made->context = current;
    *stream = made;
    return OK;
}

int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return OK;
}

static int add_operation(stream_t *stream, unsigned char *to, unsigned char *from, size_t size)
{
    if (to == NULL || from == NULL || stream->count == OPERATIONS_MAX) {
        return ILLEGAL;
    }
    stream->operation[stream->count++] = (operation_t){to, from, size};
    return OK;
}

int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    return add_operation(stream, reach((void *)to, size, false), reach((void *)from, size, false), size);
}

static void busy_until(struct timespec begin, double ns)
{
    struct timespec now;
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) * 1e9 + (double)(now.tv_nsec - begin.tv_nsec) < ns);
}

static void carry_out(const operation_t *operation)
{
    const double delay_ns = (double)planted("delay_us", 0) * 1e3, mb_per_s = (double)planted("mb_per_s", 0);
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    memcpy(operation->to, operation->from, operation->size);
    if (planted("wrong", 0) != 0 && operation->size > 0) {
        operation->to[operation->size - 1]++;
    }
    busy_until(begin, delay_ns + (mb_per_s > 0 ? (double)operation->size * 1e3 / mb_per_s : 0));
}

int cuStreamSynchronize(void *of)
{
    stream_t *stream = of;
    const long number = ++waits;
    while (number >= planted("hang", INT64_MAX)) {
        (void)pause();
    }
    if (number >= planted("lost", INT64_MAX)) {
        return ECC;
    }
    for (int i = 0; i < stream->count; i++) {
        carry_out(&stream->operation[i]);
    }
    stream->count = 0;
    if (stream->has_kernel) {
        stream->has_kernel = false;
        (void)pthread_join(stream->kernel, NULL);
    }
    return OK;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

int cuModuleLoadData(void **module, const void *text)
{
    *module = (void *)(uintptr_t)text;
    return current != NULL && strncmp(text, ".version", 8) == 0 ? OK : INVALID;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char entry[64];
    (void)snprintf(entry, sizeof entry, ".entry %s(", name);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i], name) == 0 && strstr(module, entry) != NULL) {
            *function = (void *)(uintptr_t)&kernels[i];
            return OK;
        }
    }
    return NOT_FOUND;
}

static void *answer_flags(void *of)
{
    stream_t *stream = of;
    uint64_t last = 0;
    cpu_set_t all; /* a device takes no CPU of the rank that launched it */
    memset(&all, 0xff, sizeof all);
    (void)sched_setaffinity(0, sizeof all, &all);
    while (last != UINT64_MAX) {
        const uint64_t seen = atomic_load(stream->go);
        if (seen == last || (planted("deaf", 0) != 0 && seen != UINT64_MAX)) {
            (void)sched_yield();
            continue;
        }
        atomic_store(stream->back, seen);
        last = seen;
    }
    return NULL;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned across, unsigned down, unsigned deep,
                   unsigned shared, void *of, void **argument, void **more)
{
    stream_t *stream = of;
    const char *name = *(const char *const *)function;
    if (stream->context != current || x == 0 || across == 0 || across > 1024 || y != 1 || z != 1 || down != 1 ||
        deep != 1 || shared != 0 || more != NULL) {
        return INVALID;
    }
    unsigned char *first = NULL, *second = NULL;
    if (strcmp(name, "hk_empty") == 0) {
        return OK;
    }
    const size_t size = strcmp(name, "hk_copy") == 0 ? *(uint64_t *)argument[2] : 8;
    first = reach((void *)*(uintptr_t *)argument[0], size, true);
    second = reach((void *)*(uintptr_t *)argument[1], size, true);
    if (strcmp(name, "hk_copy") == 0) {
        return add_operation(stream, first, second, size);
    }
    if (first == NULL || second == NULL || stream->has_kernel) {
        return ILLEGAL;
    }
    stream->go = (_Atomic uint64_t *)(void *)first;
    stream->back = (_Atomic uint64_t *)(void *)second;
    stream->has_kernel = pthread_create(&stream->kernel, NULL, answer_flags, stream) == 0;
    return stream->has_kernel ? OK : NO_MEMORY;
}

/* ---- libraries that are told that they were built for devices ---------------------------------------------------- */

int MPIX_Query_cuda_support(void)
{
    return planted("aware", 0) != 0;
}

/* Of ucp_context_attr_t, which begins with a mask, a word and two sizes of 8 bytes, this sets memory_types. */
int ucp_context_query(void *context, uint64_t *attributes)
{
    int (*query)(void *, uint64_t *) = NULL;
    void *found = dlsym(RTLD_NEXT, "ucp_context_query");
    memcpy(&query, &found, sizeof query);
    const int status = query(context, attributes);
    if (planted("aware", 0) != 0) {
        attributes[3] |= UINT64_C(1) << 1;
    }
    return status;
}
