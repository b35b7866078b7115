/* NVIDIA devices, through libcuda.so.1 (the CUDA driver API), which comes with their driver. Prototypes and constants
 * as in its documentation; all symbols have existed since CUDA 11. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "device_ptx.h"

typedef int cuda_result_t;
typedef uintptr_t cuda_address_t;
typedef struct cuda_handle {
    unsigned char bytes[HK_HANDLE_BYTES];
} cuda_handle_t;

enum {
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_DEVICE_UNAVAILABLE = 46,
    CUDA_INVALID_DEVICE = 101,
    CUDA_PEER_UNSUPPORTED = 217,
    CUDA_PEER_ALREADY = 704,
    CUDA_MULTIPROCESSORS = 16, /* attributes */
    CUDA_COMPUTE_MODE = 20,
    CUDA_EXCLUSIVE = 3, /* a compute mode */
    CUDA_PROHIBITED = 2,
    CUDA_NON_BLOCKING = 1, /* a flag of streams */
    CUDA_HOST_FLAGS = 3,   /* of pinned memory: for all contexts, and mapped for kernels */
    CUDA_ATTACH_GLOBAL = 1,
    CUDA_LAZY_PEER = 1,
    PAGE_BYTES = 4096,
    SHARED_GRAIN_BYTES = 2 << 20, /* the driver shares whole blocks of this size with another process */
    THREADS_OF_BLOCK = 512,
    BLOCKS_OF_MULTIPROCESSOR = 8,
    BYTES_OF_THREAD = 16,
};

/* As field, symbol and parameters. */
// clang-format off
#define CUDA_FUNCTIONS(X)                                                                                 \
    X(init,           "cuInit",                       (unsigned flags))                                   \
    X(version,        "cuDriverGetVersion",           (int *version))                                     \
    X(error_name,     "cuGetErrorName",               (cuda_result_t code, const char **name))            \
    X(device_count,   "cuDeviceGetCount",             (int *count))                                       \
    X(device_get,     "cuDeviceGet",                  (int *device, int number))                          \
    X(device_name,    "cuDeviceGetName",              (char *name, int len, int device))                  \
    X(attribute,      "cuDeviceGetAttribute",         (int *value, int attribute, int device))            \
    X(retain,         "cuDevicePrimaryCtxRetain",     (void **context, int device))                       \
    X(release,        "cuDevicePrimaryCtxRelease_v2", (int device))                                       \
    X(set_current,    "cuCtxSetCurrent",              (void *context))                                    \
    X(reach,          "cuCtxEnablePeerAccess",        (void *context, unsigned flags))                    \
    X(alloc,          "cuMemAlloc_v2",                (cuda_address_t *address, size_t size))             \
    X(alloc_managed,  "cuMemAllocManaged",            (cuda_address_t *address, size_t size, unsigned flags)) \
    X(free,           "cuMemFree_v2",                 (cuda_address_t address))                           \
    X(alloc_host,     "cuMemHostAlloc",               (void **memory, size_t size, unsigned flags))       \
    X(free_host,      "cuMemFreeHost",                (void *memory))                                     \
    X(copy,           "cuMemcpyAsync",                (cuda_address_t to, cuda_address_t from, size_t size, void *stream)) \
    X(stream_create,  "cuStreamCreate",               (void **stream, unsigned flags))                    \
    X(stream_wait,    "cuStreamSynchronize",          (void *stream))                                     \
    X(stream_destroy, "cuStreamDestroy_v2",           (void *stream))                                     \
    X(module_load,    "cuModuleLoadData",             (void **module, const void *text))                  \
    X(module_get,     "cuModuleGetFunction",          (void **function, void *module, const char *name))  \
    X(launch,         "cuLaunchKernel",               (void *function, unsigned x, unsigned y, unsigned z, unsigned across, \
                                                       unsigned down, unsigned deep, unsigned shared, void *stream, \
                                                       void **argument, void **more))                     \
    X(share,          "cuIpcGetMemHandle",            (cuda_handle_t *handle, cuda_address_t address))    \
    X(open_shared,    "cuIpcOpenMemHandle_v2",        (cuda_address_t *address, cuda_handle_t handle, unsigned flags)) \
    X(close_shared,   "cuIpcCloseMemHandle",          (cuda_address_t address))
// clang-format on

#define CUDA_FIELD(field, symbol, parameters) cuda_result_t(*field) parameters; // NOLINT(bugprone-macro-parentheses)
typedef struct cuda_library {
    CUDA_FUNCTIONS(CUDA_FIELD)
} cuda_library_t;

typedef struct cuda {
    hk_device_t base;
    cuda_library_t call;
    int device;
    int multiprocessors;
    void *context;
    void *stream[HK_STREAMS];
    void *kernel[HK_KERNELS];
} cuda_t;

static cuda_t *cuda_of(hk_device_t *device)
{
    return (cuda_t *)device;
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

/* Every process opens it once; it is never closed. False: why says what is wrong. */
static bool cuda_load(cuda_library_t *call, char *why, size_t len, const char **how_p)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)snprintf(why, len, "no NVIDIA driver");
        *how_p = "use a machine with an NVIDIA GPU and its driver";
        return false;
    }
#define CUDA_SYMBOL(field, symbol, parameters) {symbol, offsetof(cuda_library_t, field)},
    static const struct {
        const char *symbol;
        size_t place;
    } wanted[] = {CUDA_FUNCTIONS(CUDA_SYMBOL)};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = dlsym(library, wanted[i].symbol);
        memcpy((unsigned char *)call + wanted[i].place, &found, sizeof found);
        if (found == NULL) {
            (void)snprintf(why, len, "the NVIDIA driver is too old: it lacks %s", wanted[i].symbol);
            *how_p = "install a driver for CUDA 11 or newer";
            return false;
        }
    }
    return true;
}

static const char *cuda_error(const cuda_library_t *call, cuda_result_t code)
{
    const char *name = NULL;
    return call->error_name(code, &name) == 0 && name != NULL ? name : "an unknown error";
}

/* Load the library and count its devices. */
static int cuda_start(cuda_library_t *call, char *why, size_t len, const char **how_p)
{
    int count = 0;
    if (!cuda_load(call, why, len, how_p)) {
        return 0;
    }
    const cuda_result_t code = call->init(0);
    const cuda_result_t counted = code == 0 ? call->device_count(&count) : code;
    if (code == CUDA_NO_DEVICE && access("/dev/nvidiactl", F_OK) != 0) {
        (void)snprintf(why, len, "there is an NVIDIA driver, but no /dev/nvidiactl");
        *how_p = "start the container with its devices, as docker run --gpus all does";
    } else if (code == CUDA_NO_DEVICE || (counted == 0 && count == 0)) {
        (void)snprintf(why, len, "the NVIDIA driver finds no device");
        *how_p = "nvidia-smi lists devices; CUDA_VISIBLE_DEVICES may hide them";
    } else if (counted != 0) {
        (void)snprintf(why, len, "the NVIDIA driver does not start: %s", cuda_error(call, counted));
        *how_p = "nvidia-smi says more";
    }
    return counted == 0 ? count : 0;
}

static int cuda_count(char *why, size_t len, const char **how_p)
{
    cuda_library_t call;
    return cuda_start(&call, why, len, how_p);
}

/* One sentence with the driver's name of the error. */
static hk_status_t cuda_failed(const cuda_t *cuda, const char *what, cuda_result_t code)
{
    return hk_fail(code == CUDA_OUT_OF_MEMORY ? HK_ERR_MEMORY : HK_ERR_SYSTEM, cuda->base.rank, "device %d: %s: %s%s",
                   cuda->base.number, what, cuda_error(&cuda->call, code),
                   code == CUDA_OUT_OF_MEMORY ? "; smaller sizes may fit" : "");
}

static inline hk_status_t cuda_checked(const cuda_t *cuda, const char *what, cuda_result_t code)
{
    return __builtin_expect(code == 0, 1) ? HK_OK : cuda_failed(cuda, what, code);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* A context is a process's part of a device. */
static hk_status_t cuda_enter(cuda_t *cuda)
{
    int mode = 0;
    const cuda_result_t code = cuda->call.retain(&cuda->context, cuda->device);
    if (code != 0) {
        cuda->context = NULL;
        (void)cuda->call.attribute(&mode, CUDA_COMPUTE_MODE, cuda->device);
    }
    if (mode == CUDA_EXCLUSIVE || mode == CUDA_PROHIBITED) {
        return hk_fail(HK_ERR_SYSTEM, cuda->base.rank, "device %d: %s: its compute mode allows %s", cuda->base.number,
                       cuda_error(&cuda->call, code),
                       mode == CUDA_PROHIBITED ? "no process" : "one process at a time, and another one uses it");
    }
    HK_TRY(cuda_checked(cuda, "cuDevicePrimaryCtxRetain", code));
    return cuda_checked(cuda, "cuCtxSetCurrent", cuda->call.set_current(cuda->context));
}

static hk_status_t cuda_make_streams(cuda_t *cuda)
{
    for (int i = 0; i < HK_STREAMS; i++) {
        const cuda_result_t code = cuda->call.stream_create(&cuda->stream[i], CUDA_NON_BLOCKING);
        cuda->stream[i] = code == 0 ? cuda->stream[i] : NULL;
        HK_TRY(cuda_checked(cuda, "cuStreamCreate", code));
    }
    return HK_OK;
}

static hk_status_t cuda_make_kernels(cuda_t *cuda)
{
    void *module = NULL;
    HK_TRY(cuda_checked(cuda, "cuModuleLoadData", cuda->call.module_load(&module, device_ptx)));
    for (int i = 0; i < HK_KERNELS; i++) {
        HK_TRY(cuda_checked(cuda, "cuModuleGetFunction",
                            cuda->call.module_get(&cuda->kernel[i], module, device_kernels[i])));
    }
    return HK_OK;
}

static void cuda_close(hk_device_t *device)
{
    cuda_t *cuda = cuda_of(device);
    for (int i = 0; i < HK_STREAMS; i++) {
        if (cuda->stream[i] != NULL) {
            (void)cuda->call.stream_destroy(cuda->stream[i]);
        }
    }
    if (cuda->context != NULL) {
        (void)cuda->call.release(cuda->device); /* with the module */
    }
    free(cuda);
}

static hk_status_t cuda_open(int rank, int number, hk_device_t **device_p)
{
    char why[HK_DEVICE_WHY_MAX] = "";
    const char *how = "";
    cuda_t *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) {
        return hk_fail(HK_ERR_MEMORY, rank, "no memory for a device");
    }
    cuda->base = (hk_device_t){.driver = &hk_driver_cuda, .rank = rank, .number = number};
    hk_status_t status = HK_OK;
    if (cuda_start(&cuda->call, why, sizeof why, &how) == 0) {
        status = hk_fail(HK_ERR_UNSUPPORTED, rank, "%s; %s", why, how);
    }
    status = status != HK_OK ? status : cuda_checked(cuda, "cuDeviceGet", cuda->call.device_get(&cuda->device, number));
    status = status != HK_OK ? status : cuda_enter(cuda);
    status = status != HK_OK
                 ? status
                 : cuda_checked(cuda, "cuDeviceGetAttribute",
                                cuda->call.attribute(&cuda->multiprocessors, CUDA_MULTIPROCESSORS, cuda->device));
    status = status != HK_OK ? status : cuda_make_streams(cuda);
    status = status != HK_OK ? status : cuda_make_kernels(cuda);
    if (status != HK_OK) {
        cuda_close(&cuda->base);
        return status;
    }
    *device_p = &cuda->base;
    return HK_OK;
}

static void cuda_describe(hk_device_t *device, char *text, size_t len)
{
    cuda_t *cuda = cuda_of(device);
    char name[96] = "";
    int version = 0;
    (void)cuda->call.device_name(name, (int)sizeof name, cuda->device);
    (void)cuda->call.version(&version);
    (void)snprintf(text, len, "%s, CUDA %d.%d", name, version / 1000, version % 1000 / 10);
}

static hk_status_t cuda_use(hk_device_t *device)
{
    cuda_t *cuda = cuda_of(device);
    return cuda_checked(cuda, "cuCtxSetCurrent", cuda->call.set_current(cuda->context));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static hk_status_t cuda_alloc(hk_device_t *device, hk_memkind_t kind, size_t size_bytes, void **memory_p)
{
    static const char *const calls[] = {"aligned_alloc", "cuMemHostAlloc", "cuMemAlloc", "cuMemAllocManaged"};
    cuda_t *cuda = cuda_of(device);
    const size_t grain_bytes = kind == HK_MEM_DEVICE ? SHARED_GRAIN_BYTES : PAGE_BYTES;
    const size_t room_bytes = (size_bytes / grain_bytes + 1) * grain_bytes;
    char what[96];
    cuda_address_t address = 0;
    void *memory = NULL;
    cuda_result_t code = 0;
    if (kind == HK_MEM_HOST) {
        memory = aligned_alloc(PAGE_BYTES, room_bytes);
        code = memory != NULL ? 0 : CUDA_OUT_OF_MEMORY;
    } else if (kind == HK_MEM_PINNED) {
        code = cuda->call.alloc_host(&memory, room_bytes, CUDA_HOST_FLAGS);
    } else {
        code = kind == HK_MEM_DEVICE ? cuda->call.alloc(&address, room_bytes)
                                     : cuda->call.alloc_managed(&address, room_bytes, CUDA_ATTACH_GLOBAL);
        memory = (void *)address; // NOLINT(performance-no-int-to-ptr)
    }
    (void)snprintf(what, sizeof what, "%s of %zu B", calls[kind], room_bytes);
    HK_TRY(cuda_checked(cuda, what, code));
    *memory_p = memory;
    return HK_OK;
}

static void cuda_free(hk_device_t *device, hk_memkind_t kind, void *memory)
{
    cuda_t *cuda = cuda_of(device);
    if (kind == HK_MEM_HOST) {
        free(memory);
    } else if (kind == HK_MEM_PINNED) {
        (void)cuda->call.free_host(memory);
    } else {
        (void)cuda->call.free((cuda_address_t)memory);
    }
}

static hk_status_t cuda_share(hk_device_t *device, void *memory, unsigned char handle[HK_HANDLE_BYTES])
{
    cuda_t *cuda = cuda_of(device);
    cuda_handle_t made;
    HK_TRY(cuda_checked(cuda, "cuIpcGetMemHandle", cuda->call.share(&made, (cuda_address_t)memory)));
    memcpy(handle, made.bytes, HK_HANDLE_BYTES);
    return HK_OK;
}

static hk_status_t cuda_open_shared(hk_device_t *device, const unsigned char handle[HK_HANDLE_BYTES], void **memory_p)
{
    cuda_t *cuda = cuda_of(device);
    cuda_handle_t given;
    cuda_address_t address = 0;
    memcpy(given.bytes, handle, HK_HANDLE_BYTES);
    HK_TRY(cuda_checked(cuda, "cuIpcOpenMemHandle", cuda->call.open_shared(&address, given, CUDA_LAZY_PEER)));
    *memory_p = (void *)address; // NOLINT(performance-no-int-to-ptr)
    return HK_OK;
}

static void cuda_close_shared(hk_device_t *device, void *memory)
{
    (void)cuda_of(device)->call.close_shared((cuda_address_t)memory);
}

/* Copies between devices that cannot reach each other pass through the host, so that is no error. */
static hk_status_t cuda_reach(hk_device_t *device, int other)
{
    cuda_t *cuda = cuda_of(device);
    int peer = 0;
    void *context = NULL;
    HK_TRY(cuda_checked(cuda, "cuDeviceGet", cuda->call.device_get(&peer, other)));
    HK_TRY(cuda_checked(cuda, "cuDevicePrimaryCtxRetain", cuda->call.retain(&context, peer)));
    const cuda_result_t code = cuda->call.reach(context, 0);
    const bool is_fine = code == CUDA_PEER_ALREADY || code == CUDA_PEER_UNSUPPORTED || code == CUDA_INVALID_DEVICE;
    (void)cuda->call.release(peer); /* its own rank has it, too */
    return is_fine ? HK_OK : cuda_checked(cuda, "cuCtxEnablePeerAccess", code);
}

/* ---- timed ------------------------------------------------------------------------------------------------------- */

static hk_status_t cuda_copy(hk_device_t *device, int stream, void *to, const void *from, size_t size_bytes)
{
    cuda_t *cuda = cuda_of(device);
    return cuda_checked(cuda, "cuMemcpyAsync",
                        cuda->call.copy((cuda_address_t)to, (cuda_address_t)from, size_bytes, cuda->stream[stream]));
}

static hk_status_t cuda_launch(hk_device_t *device, int stream, hk_kernel_t kernel, const uint64_t *argument)
{
    cuda_t *cuda = cuda_of(device);
    uint64_t given[3] = {argument[0], argument[1], argument[2]};
    void *arguments[3] = {&given[0], &given[1], &given[2]};
    const uint64_t most = (uint64_t)cuda->multiprocessors * BLOCKS_OF_MULTIPROCESSOR;
    const uint64_t wanted = argument[2] / ((uint64_t)THREADS_OF_BLOCK * BYTES_OF_THREAD) + 1;
    const unsigned blocks = kernel != HK_KERNEL_COPY ? 1 : (unsigned)(wanted < most ? wanted : most);
    const unsigned threads = kernel != HK_KERNEL_COPY ? 1 : THREADS_OF_BLOCK;
    return cuda_checked(
        cuda, "cuLaunchKernel",
        cuda->call.launch(cuda->kernel[kernel], blocks, 1, 1, threads, 1, 1, 0, cuda->stream[stream], arguments, NULL));
}

static hk_status_t cuda_wait(hk_device_t *device, int stream)
{
    cuda_t *cuda = cuda_of(device);
    return cuda_checked(cuda, "cuStreamSynchronize", cuda->call.stream_wait(cuda->stream[stream]));
}

const hk_driver_t hk_driver_cuda = {
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .use = cuda_use,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .launch = cuda_launch,
    .wait = cuda_wait,
    .share = cuda_share,
    .open_shared = cuda_open_shared,
    .close_shared = cuda_close_shared,
    .reach = cuda_reach,
};
