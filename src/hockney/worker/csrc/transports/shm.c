/* Memory that ranks share: processes (the embedded default, and the yardstick), and threads of one process over the
 * same rings, so that the two differ by what a process costs. */
#include "channel.h"

const hk_transport_t hk_transport_shm = {
    HK_CHANNEL_HOOKS,
    HK_CHANNEL_ONE_SIDED,
    .caps = HK_CHANNEL_CAPS | HK_CAP_ONE_SIDED,
    .name = "shm",
    .summary = "processes, shared memory",
};

const hk_transport_t hk_transport_shm_sync = {
    HK_CHANNEL_HOOKS,
    .caps = HK_CHANNEL_CAPS | HK_CAP_SYNCHRONOUS,
    .name = "shm:sync",
    .summary = "shm with synchronous sends: each returns when its message is taken",
};

const hk_transport_t hk_transport_threads = {
    HK_CHANNEL_HOOKS,
    HK_CHANNEL_ONE_SIDED,
    .caps = HK_CHANNEL_CAPS | HK_CAP_ONE_SIDED | HK_CAP_THREADS,
    .name = "threads",
    .summary = "threads of one process, shared memory",
    .below = "shm",
};
