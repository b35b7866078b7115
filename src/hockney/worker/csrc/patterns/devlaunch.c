/* An empty kernel: one rank launches it and waits for its end. This is the least that work on a device costs. */
#include "../device.h"
#include "../pattern.h"

enum { DEVLAUNCH_DEVICE };

typedef struct devlaunch {
    hk_device_t *device;
} devlaunch_t;

static bool devlaunch_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_device_fits(run->ctx, "devlaunch", (int)run->option[DEVLAUNCH_DEVICE], why, len);
}

static hk_plan_t devlaunch_plan(const hk_run_t *run)
{
    (void)run;
    return (hk_plan_t){.state_bytes = sizeof(devlaunch_t)};
}

static hk_status_t devlaunch_prepare(hk_run_t *run)
{
    devlaunch_t *state = run->state;
    return hk_device_get(run->ctx, (int)run->option[DEVLAUNCH_DEVICE], &state->device);
}

static hk_status_t devlaunch_repeat(hk_run_t *run, uint64_t reps)
{
    static const uint64_t nothing[3] = {0};
    hk_device_t *device = ((devlaunch_t *)run->state)->device;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(device->driver->launch(device, 0, HK_KERNEL_EMPTY, nothing));
        HK_TRY(device->driver->wait(device, 0));
    }
    return HK_OK;
}

const hk_pattern_t hk_pattern_devlaunch = {
    .name = "devlaunch",
    .kind = HK_KIND_MACHINE,
    .summary = "one rank launches an empty kernel; time per launch and wait (verified on a stand-in only)",
    .ranks_min = 1,
    .ranks_max = 1,
    .timed = HK_TIMED_ROOT,
    .untouched = true,
    .unsized = true,
    .option = {{"device", NULL, 0, 0, HK_DEVICES_MAX - 1, "its number"}},
    .fits = devlaunch_fits,
    .plan = devlaunch_plan,
    .prepare = devlaunch_prepare,
    .repeat = devlaunch_repeat,
};
