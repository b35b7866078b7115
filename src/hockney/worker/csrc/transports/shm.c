/* Ranks are processes; messages go through memory that they share. The embedded default, and the yardstick. */
#include "channel.h"

extern const hk_transport_t hk_transport_shm, hk_transport_shm_sync;

static hk_status_t shm_attach(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_channel_open(job, &hk_transport_shm, ctx_p);
}

static hk_status_t shm_attach_sync(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_channel_open(job, &hk_transport_shm_sync, ctx_p);
}

const hk_transport_t hk_transport_shm = {
    HK_CHANNEL_HOOKS,
    HK_CHANNEL_ONE_SIDED,
    .caps = HK_CHANNEL_CAPS | HK_CAP_ONE_SIDED,
    .name = "shm",
    .summary = "processes, shared memory",
    .open = shm_attach,
};

const hk_transport_t hk_transport_shm_sync = {
    HK_CHANNEL_HOOKS,        .caps = HK_CHANNEL_CAPS | HK_CAP_SYNCHRONOUS,
    .name = "shm:sync",      .summary = "shm with synchronous sends: each returns when its message is taken",
    .open = shm_attach_sync,
};
