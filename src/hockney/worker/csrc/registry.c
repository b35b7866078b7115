/* cold */
#include "registry.h"

#include <stdio.h>
#include <string.h>

/* One line for each pattern, in the order of lists. */
// clang-format off
#define PATTERNS(X)              \
    X(pingpong)                  \
    X(prtt)                      \
    X(oneway)                    \
    X(twoway)                    \
    X(datatype)                  \
    X(stream)                    \
    X(owd)                       \
    X(pairs)                     \
    X(bisection)                 \
    X(pingping)                  \
    X(rounds)                    \
    X(flows)                     \
    X(ring)                      \
    X(partitioned)               \
    X(forked)                    \
    X(mt_pingpong)               \
    X(mt_pingping)               \
    X(mt_sendrecv)               \
    X(mt_exchange)               \
    X(mt_uniband)                \
    X(mt_biband)                 \
    X(mt_collective)             \
    X(random)                    \
    X(fanin)                     \
    X(fanout)                    \
    X(barrier)                   \
    X(bcast)                     \
    X(reduce)                    \
    X(allreduce)                 \
    X(gather)                    \
    X(gatherv)                   \
    X(scatter)                   \
    X(scatterv)                  \
    X(allgather)                 \
    X(allgatherv)                \
    X(alltoall)                  \
    X(alltoallv)                 \
    X(alltoallw)                 \
    X(reduce_scatter)            \
    X(reduce_scatter_block)      \
    X(scan)                      \
    X(exscan)                    \
    X(reduce_local)              \
    X(neighbor_allgather)        \
    X(neighbor_allgatherv)       \
    X(neighbor_alltoall)         \
    X(neighbor_alltoallv)        \
    X(neighbor_alltoallw)        \
    X(ringreduce)                \
    X(outfarm)                   \
    X(multicast)                 \
    X(funnel)                    \
    X(putpong)                   \
    X(put)                       \
    X(get)                       \
    X(putpairs)                  \
    X(getpairs)                  \
    X(putring)                   \
    X(getring)                   \
    X(putfan)                    \
    X(getfan)                    \
    X(putall)                    \
    X(getall)                    \
    X(putexchange)               \
    X(getexchange)               \
    X(accumulate)                \
    X(get_accumulate)            \
    X(fetch_and_op)              \
    X(compare_and_swap)          \
    X(passive)                   \
    X(window)                    \
    X(pushfarm)                  \
    X(pullfarm)                  \
    X(robpush)                   \
    X(robpull)                   \
    X(eventbuilder)              \
    X(halo2d)                    \
    X(halo3d)                    \
    X(halo4d)                    \
    X(sweep)                     \
    X(paramserver)               \
    X(ft)                        \
    X(memload)                   \
    X(memcpy)                    \
    X(devcopy)                   \
    X(devflag)                   \
    X(devlaunch)                 \
    X(clocks)                    \
    X(init)                      \
    X(first)
// clang-format on

#define DECLARE_PATTERN(name) extern const hk_pattern_t hk_pattern_##name;
#define PATTERN_ENTRY(name) &hk_pattern_##name,

PATTERNS(DECLARE_PATTERN)

const hk_pattern_t *const hk_patterns[] = {PATTERNS(PATTERN_ENTRY) NULL};

/* One line for each transport, under its family. The first is the default of -t. HK_EXTRA_TRANSPORTS: tests add
 * transports with deliberate faults. */
#define TRANSPORTS(X)                                                                                                  \
    NATIVE(X)                                                                                                          \
    MPI(X)                                                                                                             \
    PVM(X)                                                                                                             \
    SHMEM(X)                                                                                                           \
    ZMQ(X)                                                                                                             \
    UCX(X)                                                                                                             \
    OFI(X)                                                                                                             \
    SIM(X)                                                                                                             \
    EXTRA(X)

#if defined(HK_FAMILY_NATIVE)
// clang-format off
#define NATIVE(X)           \
    X(shm)                  \
    X(shm_sync)             \
    X(shm_sleep)            \
    X(threads)              \
    X(null)                 \
    X(pipe)                 \
    X(pipe_nonblock)        \
    X(pipe_spin)            \
    X(unix)                 \
    X(unix_nonblock)        \
    X(unix_spin)            \
    X(unix_seqpacket)       \
    X(tcp)                  \
    X(tcp_nonblock)         \
    X(tcp_spin)             \
    X(tcp_uring)            \
    X(tcp_uring_sqpoll)     \
    X(mptcp)                \
    X(udp)                  \
    X(udp_spin)             \
    X(cuda)                 \
    X(cuda_threads)
// clang-format on
#else
#define NATIVE(X)
#endif

#if defined(HK_FAMILY_MPI)
// clang-format off
#define MPI(X)              \
    X(mpi)                  \
    X(mpi_sync)             \
    X(mpi_ready)            \
    X(mpi_buffered)         \
    X(mpi_persistent)       \
    X(mpi_rma)              \
    X(mpi_rma_create)       \
    X(mpi_rma_dynamic)      \
    X(mpi_rma_shared)       \
    X(mpi_shared)           \
    X(mpi_threads)          \
    X(mpi_startup)
// clang-format on
#else
#define MPI(X)
#endif

#if defined(HK_FAMILY_PVM)
// clang-format off
#define PVM(X)              \
    X(pvm)                  \
    X(pvm_psend)            \
    X(pvm_psend_daemon)     \
    X(pvm_inplace)          \
    X(pvm_inplace_daemon)   \
    X(pvm_raw)              \
    X(pvm_raw_daemon)       \
    X(pvm_default)          \
    X(pvm_default_daemon)
// clang-format on
#else
#define PVM(X)
#endif

#if defined(HK_FAMILY_SHMEM)
#define SHMEM(X) X(shmem) X(shmem_static)
#else
#define SHMEM(X)
#endif

#if defined(HK_FAMILY_ZMQ)
#define ZMQ(X) X(zmq) X(zmq_tcp) X(zmq_inproc) X(zmq_push) X(zmq_push_tcp)
#else
#define ZMQ(X)
#endif

#if defined(HK_FAMILY_UCX)
#define UCX(X) X(ucx) X(ucx_am) X(ucx_put)
#else
#define UCX(X)
#endif

#if defined(HK_FAMILY_OFI)
#define OFI(X) X(ofi) X(ofi_write)
#else
#define OFI(X)
#endif

#if defined(HK_FAMILY_SIM)
#define SIM(X) X(sim)
#else
#define SIM(X)
#endif

#if defined(HK_EXTRA_TRANSPORTS)
#define EXTRA(X) HK_EXTRA_TRANSPORTS(X)
#else
#define EXTRA(X)
#endif

#define DECLARE(name) extern const hk_transport_t hk_transport_##name;
#define ENTRY(name) &hk_transport_##name,

TRANSPORTS(DECLARE)

const hk_transport_t *const hk_transports[] = {TRANSPORTS(ENTRY) NULL};

const hk_transport_t *hk_transport_find(const char *name)
{
    for (size_t i = 0; hk_transports[i] != NULL; i++) {
        if (strcmp(hk_transports[i]->name, name) == 0) {
            return hk_transports[i];
        }
    }
    return NULL;
}

const hk_transport_t *hk_variant_with(const hk_transport_t *tp, uint32_t needs)
{
    const size_t length = strcspn(tp->name, ":");
    for (size_t i = 0; hk_transports[i] != NULL; i++) {
        const hk_transport_t *other = hk_transports[i];
        const bool is_variant = strcspn(other->name, ":") == length && strncmp(other->name, tp->name, length) == 0;
        /* A model's transport has fewer capabilities than the one of its name here. */
        if (is_variant && strcmp(other->name, tp->name) != 0 && (needs & ~other->caps) == 0) {
            return other;
        }
    }
    return NULL;
}

const char *const hk_timed_names[] = {NULL, "root", "sources", "slowest", "mean"};

hk_timed_t hk_timed_of(const hk_pattern_t *pattern, const hk_plan_t *plan)
{
    return plan->timed != HK_TIMED_AS_DECLARED ? plan->timed : pattern->timed;
}

#define CAPABILITY(id, word, words) {word, words},

const hk_capability_t hk_capabilities[HK_CAPS_COUNT] = {HK_CAPABILITIES(CAPABILITY)};

const char *hk_missing_cap(uint32_t needs, uint32_t caps)
{
    for (unsigned i = 0; i < HK_CAPS_COUNT; i++) {
        if ((needs & ~caps & (1u << i)) != 0) {
            return hk_capabilities[i].words;
        }
    }
    return NULL;
}
