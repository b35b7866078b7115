#include "registry.h"

#include <stdio.h>
#include <string.h>

extern const hk_pattern_t hk_pattern_pingpong, hk_pattern_oneway, hk_pattern_twoway, hk_pattern_pairs,
    hk_pattern_alltoall, hk_pattern_outfarm, hk_pattern_multicast, hk_pattern_funnel, hk_pattern_barrier;

const hk_pattern_t *const hk_patterns[] = {
    &hk_pattern_pingpong, &hk_pattern_oneway,    &hk_pattern_twoway, &hk_pattern_pairs,   &hk_pattern_alltoall,
    &hk_pattern_outfarm,  &hk_pattern_multicast, &hk_pattern_funnel, &hk_pattern_barrier, NULL,
};

/* One line for each transport, under the family that builds it. The first is what -t falls back to.
 * HK_EXTRA_TRANSPORTS: tests build a worker with wrappers that break things on purpose. */
#define TRANSPORTS(X)                                                                                                  \
    NATIVE(X)                                                                                                          \
    MPI(X)                                                                                                             \
    SHMEM(X)                                                                                                           \
    EXTRA(X)

#if defined(HK_FAMILY_NATIVE)
// clang-format off
#define NATIVE(X)           \
    X(shm)                  \
    X(threads)              \
    X(null)                 \
    X(pipe)                 \
    X(pipe_nonblock)        \
    X(pipe_spin)            \
    X(unix)                 \
    X(unix_nonblock)        \
    X(unix_spin)            \
    X(tcp)                  \
    X(tcp_nonblock)         \
    X(tcp_spin)
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
    X(mpi_rma)
// clang-format on
#else
#define MPI(X)
#endif

#if defined(HK_FAMILY_SHMEM)
#define SHMEM(X) X(shmem) X(shmem_static)
#else
#define SHMEM(X)
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

const hk_pattern_t *hk_pattern_find(const char *name)
{
    for (size_t i = 0; hk_patterns[i] != NULL; i++) {
        if (strcmp(hk_patterns[i]->name, name) == 0) {
            return hk_patterns[i];
        }
    }
    return NULL;
}

const hk_transport_t *hk_transport_find(const char *name)
{
    for (size_t i = 0; hk_transports[i] != NULL; i++) {
        if (strcmp(hk_transports[i]->name, name) == 0) {
            return hk_transports[i];
        }
    }
    return NULL;
}

const char *hk_missing_cap(uint32_t needs, uint32_t caps)
{
    static const struct {
        uint32_t cap;
        const char *words;
    } names[] = {
        {HK_CAP_SEND, "send and receive"},
        {HK_CAP_NONBLOCKING, "several messages under way at once"},
        {HK_CAP_ONE_SIDED, "put and get"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((needs & names[i].cap) != 0 && (caps & names[i].cap) == 0) {
            return names[i].words;
        }
    }
    return NULL;
}

bool hk_point_fits(const hk_transport_t *tp, int size, const hk_command_t *command, char why[HK_ERROR_MAX])
{
    const hk_pattern_t *pattern = hk_patterns[command->pattern];
    const char *lack = hk_missing_cap(pattern->needs, tp->caps);
    if (lack != NULL) {
        snprintf(why, HK_ERROR_MAX, "%s needs %s, which %s does not offer", pattern->name, lack, tp->name);
    } else if (size < pattern->ranks_min || (pattern->ranks_max != 0 && size > pattern->ranks_max)) {
        snprintf(why, HK_ERROR_MAX, "%s runs on %d%s ranks, not on %d", pattern->name, pattern->ranks_min,
                 pattern->ranks_max == pattern->ranks_min ? "" : " or more", size);
    } else if (size % pattern->ranks_step != 0) {
        snprintf(why, HK_ERROR_MAX, "%s needs a number of ranks that divides by %d, not %d", pattern->name,
                 pattern->ranks_step, size);
    } else if (tp->max_bytes != 0 && command->bytes > tp->max_bytes) {
        snprintf(why, HK_ERROR_MAX, "%llu B is above the %llu B that %s sends in one message",
                 (unsigned long long)command->bytes, (unsigned long long)tp->max_bytes, tp->name);
    } else {
        return true;
    }
    return false;
}
