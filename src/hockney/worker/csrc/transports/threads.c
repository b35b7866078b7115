/* Ranks are threads of one process. The same rings as shm, so that the two differ by what a process costs. */
#include "channel.h"

extern const hk_transport_t hk_transport_threads;

static hk_status_t threads_open(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_channel_open(job, &hk_transport_threads, ctx_p);
}

const hk_transport_t hk_transport_threads = {
    HK_CHANNEL_HOOKS,
    HK_CHANNEL_ONE_SIDED,
    .caps = HK_CHANNEL_CAPS | HK_CAP_ONE_SIDED | HK_CAP_THREADS,
    .name = "threads",
    .summary = "threads of one process, shared memory",
    .open = threads_open,
};
