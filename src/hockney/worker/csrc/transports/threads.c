/* Ranks are threads of one process. The same rings as shm, so that the two differ by what a process costs. */
#include "channel.h"

extern const hk_transport_t hk_transport_threads;

static hk_status_t threads_open(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_channel_open(job, &hk_transport_threads, ctx_p);
}

const hk_transport_t hk_transport_threads = {
    .abi = HK_TRANSPORT_ABI,
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_ONE_SIDED | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_THREADS,
    .name = "threads",
    .summary = "threads of one process, shared memory",
    .prepare = hk_channel_prepare,
    .release = hk_channel_release,
    .open = threads_open,
    .close = hk_channel_close,
    .library = hk_channel_library,
    .alloc = hk_channel_alloc,
    .free = hk_channel_free,
    .send = hk_channel_send,
    .recv = hk_channel_recv,
    .isend = hk_channel_isend,
    .irecv = hk_channel_irecv,
    .wait_all = hk_channel_wait_all,
    .put = hk_channel_put,
    .get = hk_channel_get,
    .quiet = hk_channel_quiet,
    .wait_word = hk_channel_wait_word,
    .barrier = hk_channel_barrier,
    .now_ns = hk_real_now_ns,
    .compute = hk_real_compute,
};
