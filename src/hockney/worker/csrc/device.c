/* cold */
#include "device.h"

#include <stdio.h>

#include "transport.h"

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
