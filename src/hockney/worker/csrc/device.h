/* Memory and kernels of a device (a GPU). The library of its driver is opened when a rank first uses it, so nothing is
 * needed to build against; another vendor's is one more table of these functions.
 *
 * What a rank has opened stays open until hk_devices_close. Functions that return a status log an error, with the name
 * that the driver gives it. */
#ifndef HK_DEVICE_H
#define HK_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct hk_ctx;
struct hk_run;

/* Where memory lies. Pinned memory is the host's, and devices access it. Managed memory moves to who uses it. */
typedef enum hk_memkind { HK_MEM_HOST, HK_MEM_PINNED, HK_MEM_DEVICE, HK_MEM_MANAGED, HK_MEMKINDS } hk_memkind_t;

/* Kernels:
 *   EMPTY  does nothing
 *   COPY   (to, from, size_bytes): copies, by all multiprocessors
 *   FLAG   (go, back): of two words, writes what it sees in `go` to `back`, until that is HK_FLAG_END, or until it has
 *          seen nothing new for minutes */
typedef enum hk_kernel { HK_KERNEL_EMPTY, HK_KERNEL_COPY, HK_KERNEL_FLAG, HK_KERNELS } hk_kernel_t;

#define HK_FLAG_END UINT64_MAX

enum {
    HK_STREAMS = 2,         /* of a device: operations of two streams may overlap */
    HK_HANDLE_BYTES = 64,   /* of memory, for another process */
    HK_DEVICES_MAX = 64,    /* that a point may name */
    HK_DEVICE_WHY_MAX = 240 /* room for a reason */
};

struct hk_driver;

/* A device that a rank has opened. Drivers embed it as their first member. */
typedef struct hk_device {
    const struct hk_driver *driver;
    int rank, number;
    struct hk_device *next; /* the rank's others */
} hk_device_t;

/* A driver. All functions but the first two are of a device that is open; timed are copy, launch and wait. */
typedef struct hk_driver {
    /* The number of devices that can be used here. 0: why[0..len) says why not, and *how_p what to do. */
    int (*count)(char *why, size_t len, const char **how_p);
    hk_status_t (*open)(int rank, int number, hk_device_t **device_p);
    void (*close)(hk_device_t *device);

    /* "NVIDIA H200, CUDA 13.0" */
    void (*describe)(hk_device_t *device, char *text, size_t len);

    /* Make the calling thread use this device: for alloc, launch and open_shared. */
    hk_status_t (*use)(hk_device_t *device);

    /* Page-aligned memory. */
    hk_status_t (*alloc)(hk_device_t *device, hk_memkind_t kind, size_t size_bytes, void **memory_p);
    void (*free)(hk_device_t *device, hk_memkind_t kind, void *memory);

    /* Start a copy between memory of any kinds, or a kernel with these arguments; what a stream has started runs in
     * order. wait returns when all of it is done. */
    hk_status_t (*copy)(hk_device_t *device, int stream, void *to, const void *from, size_t size_bytes);
    hk_status_t (*launch)(hk_device_t *device, int stream, hk_kernel_t kernel, const uint64_t *argument);
    hk_status_t (*wait)(hk_device_t *device, int stream);

    /* Device memory in another process: what it opens is the same memory. */
    hk_status_t (*share)(hk_device_t *device, void *memory, unsigned char handle[HK_HANDLE_BYTES]);
    hk_status_t (*open_shared)(hk_device_t *device, const unsigned char handle[HK_HANDLE_BYTES], void **memory_p);
    void (*close_shared)(hk_device_t *device, void *memory);

    /* Let this device access the memory of another one directly, where the hardware can. */
    hk_status_t (*reach)(hk_device_t *device, int other);
} hk_driver_t;

extern const hk_driver_t hk_driver_cuda;

/* For the hook `fits` of patterns: whether this machine has the device of that number; if not, why[0..len) holds a
 * sentence. */
bool hk_device_fits(const struct hk_ctx *ctx, const char *pattern, int number, char *why, size_t len);

/* Whether the option `memory` asks for more than a transport's own memory, and where it puts this rank's buffers. */
bool hk_asks_memory(const struct hk_run *run);
hk_memkind_t hk_memory_of(const struct hk_run *run);

/* This rank's device of that number, opened at the first call. */
hk_status_t hk_device_get(struct hk_ctx *ctx, int number, hk_device_t **device_p);

/* Copy and wait; not timed. */
hk_status_t hk_device_move(hk_device_t *device, void *to, const void *from, size_t size_bytes);

/* Close all devices of this rank. */
void hk_devices_close(struct hk_ctx *ctx);

#endif
