/* Ranks are processes; messages go through memory that they share. The embedded default, and the yardstick. */
#include "channel.h"

extern const hk_transport_t hk_transport_shm;

static hk_status_t shm_attach(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_channel_open(job, &hk_transport_shm, ctx_p);
}

const hk_transport_t hk_transport_shm = {
    .abi = HK_TRANSPORT_ABI,
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_ONE_SIDED | HK_CAP_PAYLOAD | HK_CAP_SPINS,
    .name = "shm",
    .summary = "processes, shared memory",
    .prepare = hk_channel_prepare,
    .release = hk_channel_release,
    .open = shm_attach,
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
