/* cold */
#include "device.h"

#include <stdio.h>

#include "pattern.h"

bool hk_device_fits(const hk_ctx_t *ctx, const char *pattern, int number, char *why, size_t len)
{
    char reason[HK_DEVICE_WHY_MAX] = "";
    const char *how = "";
    if ((ctx->tp->caps & HK_CAP_VIRTUAL) != 0) {
        (void)snprintf(why, len, "%s uses a real device, which a model does not have", pattern);
        return false;
    }
    const int count = hk_driver_cuda.count(reason, sizeof reason, &how);
    if (count == 0) {
        (void)snprintf(why, len, "%s needs a device: %s; %s", pattern, reason, how);
    } else {
        (void)snprintf(why, len, "%s: there is no device %d: this machine has %d, from 0 on", pattern, number, count);
    }
    return number < count;
}

/* Patterns of devices have an option of that name, too, and place their memory themselves. */
static int64_t asked_memory(const hk_run_t *run)
{
    return run->pattern->kind == HK_KIND_MACHINE ? 0 : hk_option_value(run->pattern, run->option, "memory", 0);
}

bool hk_asks_memory(const hk_run_t *run)
{
    return asked_memory(run) != 0;
}

hk_memkind_t hk_memory_of(const hk_run_t *run)
{
    static const hk_memkind_t kinds[][2] = {{HK_MEM_HOST, HK_MEM_HOST},
                                            {HK_MEM_DEVICE, HK_MEM_DEVICE},
                                            {HK_MEM_MANAGED, HK_MEM_MANAGED},
                                            {HK_MEM_HOST, HK_MEM_DEVICE},
                                            {HK_MEM_DEVICE, HK_MEM_HOST}};
    const int rank = run->ctx->rank;
    const bool is_source = run->pattern->links == HK_LINKS_ENDS
                               ? rank == hk_option_value(run->pattern, run->option, "source", 0)
                               : rank < run->ctx->size / 2;
    return kinds[asked_memory(run)][is_source ? 0 : 1];
}

hk_status_t hk_device_get(hk_ctx_t *ctx, int number, hk_device_t **device_p)
{
    hk_device_t *device = ctx->devices;
    while (device != NULL && device->number != number) {
        device = device->next;
    }
    if (device == NULL) {
        HK_TRY(hk_driver_cuda.open(ctx->rank, number, &device));
        device->next = ctx->devices;
        ctx->devices = device;
    }
    *device_p = device;
    return device->driver->use(device);
}

hk_status_t hk_device_move(hk_device_t *device, void *to, const void *from, size_t size_bytes)
{
    HK_TRY(device->driver->copy(device, 0, to, from, size_bytes));
    return device->driver->wait(device, 0);
}

void hk_devices_close(hk_ctx_t *ctx)
{
    while (ctx->devices != NULL) {
        hk_device_t *device = ctx->devices;
        ctx->devices = device->next;
        device->driver->close(device);
    }
}
