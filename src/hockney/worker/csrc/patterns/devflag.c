/* The least that work on a device costs.
 *
 * devflag: a flag between a CPU and a kernel. Rank 0 writes a number to pinned memory and spins until a kernel, which
 * spins on it, has written it to another cache line. The kernel runs from prepare to finish.
 *
 * devlaunch: one rank launches an empty kernel and waits for its end. */
#include <stdatomic.h>
#include <string.h>

#include "../cacheline.h"
#include "../device.h"
#include "../pattern.h"

enum { DEVFLAG_DEVICE }; /* the only option */

typedef struct devflag {
    hk_device_t *device;
    void *memory;
    _Atomic uint64_t *go, *back;
    uint64_t number;
} devflag_t;

static bool devflag_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_device_fits(run->ctx, run->pattern->name, (int)run->option[DEVFLAG_DEVICE], why, len);
}

static hk_plan_t devflag_plan(const hk_run_t *run)
{
    (void)run;
    return (hk_plan_t){.state_bytes = sizeof(devflag_t), .divisor = 2};
}

static hk_status_t devflag_start(devflag_t *state)
{
    const uint64_t words[3] = {(uintptr_t)state->go, (uintptr_t)state->back, 0};
    return state->device->driver->launch(state->device, 0, HK_KERNEL_FLAG, words);
}

static hk_status_t devflag_prepare(hk_run_t *run)
{
    devflag_t *state = run->state;
    HK_TRY(hk_device_get(run->ctx, (int)run->option[DEVFLAG_DEVICE], &state->device));
    const hk_driver_t *driver = state->device->driver;
    HK_TRY(driver->alloc(state->device, HK_MEM_PINNED, 2 * (size_t)HK_SEPARATE_BYTES, &state->memory));
    memset(state->memory, 0, 2 * (size_t)HK_SEPARATE_BYTES);
    state->go = state->memory;
    state->back = (_Atomic uint64_t *)(void *)((unsigned char *)state->memory + HK_SEPARATE_BYTES);
    const hk_status_t status = devflag_start(state);
    if (status != HK_OK) {
        driver->free(state->device, HK_MEM_PINNED, state->memory);
    }
    return status;
}

static hk_status_t devflag_finish(hk_run_t *run)
{
    devflag_t *state = run->state;
    atomic_store_explicit(state->go, HK_FLAG_END, memory_order_release);
    const hk_status_t status = state->device->driver->wait(state->device, 0);
    state->device->driver->free(state->device, HK_MEM_PINNED, state->memory);
    return status;
}

static hk_status_t devflag_repeat(hk_run_t *run, uint64_t reps)
{
    devflag_t *state = run->state;
    uint64_t number = state->number;
    for (uint64_t i = 0; i < reps; i++) {
        atomic_store_explicit(state->go, ++number, memory_order_release);
        while (atomic_load_explicit(state->back, memory_order_acquire) != number) {
            hk_pause();
        }
    }
    state->number = number;
    return HK_OK;
}

/* ---- devlaunch --------------------------------------------------------------------------------------------------- */

static hk_plan_t devlaunch_plan(const hk_run_t *run)
{
    (void)run;
    return (hk_plan_t){.state_bytes = sizeof(devflag_t)};
}

static hk_status_t devlaunch_prepare(hk_run_t *run)
{
    return hk_device_get(run->ctx, (int)run->option[DEVFLAG_DEVICE], &((devflag_t *)run->state)->device);
}

static hk_status_t devlaunch_repeat(hk_run_t *run, uint64_t reps)
{
    static const uint64_t nothing[3] = {0};
    hk_device_t *device = ((devflag_t *)run->state)->device;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(device->driver->launch(device, 0, HK_KERNEL_EMPTY, nothing));
        HK_TRY(device->driver->wait(device, 0));
    }
    return HK_OK;
}

#define DEVFLAG_SHARED                                                                                                 \
    .kind = HK_KIND_MACHINE, .ranks_min = 1, .ranks_max = 1, .timed = HK_TIMED_ROOT, .untouched = true,                \
    .unsized = true, .option = {{"device", NULL, 0, 0, HK_DEVICES_MAX - 1, "its number"}}, .fits = devflag_fits

const hk_pattern_t hk_pattern_devflag = {
    DEVFLAG_SHARED,
    .name = "devflag",
    .summary = "a flag in pinned memory between a rank and a kernel; half a round trip (verified on a stand-in only)",
    .plan = devflag_plan,
    .prepare = devflag_prepare,
    .finish = devflag_finish,
    .repeat = devflag_repeat,
};

const hk_pattern_t hk_pattern_devlaunch = {
    DEVFLAG_SHARED,
    .name = "devlaunch",
    .summary = "one rank launches an empty kernel; time per launch and wait (verified on a stand-in only)",
    .plan = devlaunch_plan,
    .prepare = devlaunch_prepare,
    .repeat = devlaunch_repeat,
};
