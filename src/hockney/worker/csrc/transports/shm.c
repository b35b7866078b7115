/* Shared memory. shm: processes, the default and reference. threads: threads of one process over the same rings, so
 * the difference is the cost of a process. */
#include "channel_sleep.h"

/* Capabilities and hooks of all tables. */
#define CHANNEL_CAPS (HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS | HK_CAP_PROBE)
#define CHANNEL_CONTEXT                                                                                                \
    .carrier = HK_CARRIER_MEMORY, .limits = hk_channel_limits, .prepare = hk_channel_prepare,                          \
    .release = hk_channel_release, .open = hk_channel_open, .close = hk_channel_close, .library = hk_channel_library,  \
    .alloc = hk_channel_alloc, .free = hk_channel_free, .irecv = hk_channel_irecv, .now_ns = hk_real_now_ns,           \
    .compute = hk_real_compute
#define CHANNEL_HOOKS                                                                                                  \
    CHANNEL_CONTEXT, .send = hk_channel_send, .recv = hk_channel_recv, .probe = hk_channel_probe,                      \
        .isend = hk_channel_isend, .wait_all = hk_channel_wait_all, .barrier = hk_channel_barrier

/* Hooks for one-sided access, where a put is a plain copy, also one that is only started. */
#define ONE_SIDED_CAPS (HK_CAP_ONE_SIDED | HK_CAP_DEFERRED | HK_CAP_ATOMICS | HK_CAP_SIGNAL | HK_CAP_WINDOWS)
#define CHANNEL_ONE_SIDED                                                                                              \
    .put = hk_channel_put, .get = hk_channel_get, .put_start = hk_channel_put, .get_start = hk_channel_get,            \
    .quiet = hk_channel_quiet, .wait_word = hk_channel_wait_word, .put_signal = hk_channel_put_signal,                 \
    .has_atomic = hk_channel_has_atomic, .make_atomic = hk_channel_make_atomic, .use_window = hk_channel_use_window

const hk_transport_t hk_transport_shm = {
    CHANNEL_HOOKS,
    CHANNEL_ONE_SIDED,
    .caps = CHANNEL_CAPS | ONE_SIDED_CAPS,
    .name = "shm",
    .summary = "processes, shared memory",
};

const hk_transport_t hk_transport_shm_sync = {
    CHANNEL_HOOKS,
    .caps = CHANNEL_CAPS | HK_CAP_SYNCHRONOUS,
    .name = "shm:sync",
    .summary = "shm with synchronous sends: each returns once its message is taken",
};

const hk_transport_t hk_transport_shm_sleep = {
    CHANNEL_CONTEXT,
    .caps = (CHANNEL_CAPS & ~(uint32_t)HK_CAP_SPINS) | HK_CAP_SYSCALLS,
    .name = "shm:sleep",
    .summary = "shm whose ranks sleep in futex while they wait, as a consumer that gives its CPU away",
    .below = "shm",
    .is_here = hk_channel_can_sleep,
    .send = hk_channel_sleep_send,
    .recv = hk_channel_sleep_recv,
    .probe = hk_channel_sleep_probe,
    .isend = hk_channel_sleep_isend,
    .wait_all = hk_channel_sleep_wait_all,
    .barrier = hk_channel_sleep_barrier,
};

const hk_transport_t hk_transport_threads = {
    CHANNEL_HOOKS,
    CHANNEL_ONE_SIDED,
    .caps = CHANNEL_CAPS | ONE_SIDED_CAPS | HK_CAP_THREADS,
    .name = "threads",
    .summary = "threads of one process, shared memory",
    .below = "shm",
};
