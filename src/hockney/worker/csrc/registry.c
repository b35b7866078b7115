/* cold */
#include "registry.h"

#include <stdio.h>
#include <string.h>

/* One line for each pattern, in the order in which they are listed. */
// clang-format off
#define PATTERNS(X)         \
    X(pingpong)             \
    X(prtt)                 \
    X(oneway)               \
    X(twoway)               \
    X(pairs)                \
    X(alltoall)             \
    X(allreduce)            \
    X(outfarm)              \
    X(multicast)            \
    X(funnel)               \
    X(pushfarm)             \
    X(pullfarm)             \
    X(robpush)              \
    X(robpull)              \
    X(barrier)              \
    X(stream)               \
    X(bisection)            \
    X(rounds)               \
    X(ring)                 \
    X(putpong)              \
    X(put)                  \
    X(get)                  \
    X(putring)              \
    X(memload)              \
    X(ft)
// clang-format on

#define DECLARE_PATTERN(name) extern const hk_pattern_t hk_pattern_##name;
#define PATTERN_ENTRY(name) &hk_pattern_##name,

PATTERNS(DECLARE_PATTERN)

const hk_pattern_t *const hk_patterns[] = {PATTERNS(PATTERN_ENTRY) NULL};

/* One line for each transport, under the family that builds it. The first is what -t falls back to.
 * HK_EXTRA_TRANSPORTS: tests build a worker with wrappers that break things on purpose. */
#define TRANSPORTS(X)                                                                                                  \
    NATIVE(X)                                                                                                          \
    MPI(X)                                                                                                             \
    PVM(X)                                                                                                             \
    SHMEM(X)                                                                                                           \
    EXTRA(X)

#if defined(HK_FAMILY_NATIVE)
// clang-format off
#define NATIVE(X)           \
    X(shm)                  \
    X(shm_sync)             \
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
    X(tcp_spin)             \
    X(udp)                  \
    X(udp_spin)
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

bool hk_has_collective(const hk_transport_t *tp, const char *name)
{
    return strcmp(name, "barrier") == 0     ? tp->barrier != NULL
           : strcmp(name, "broadcast") == 0 ? tp->broadcast != NULL
           : strcmp(name, "alltoall") == 0  ? tp->alltoall != NULL
                                            : tp->allreduce != NULL;
}

/* How many ranks only send, as the pattern's option says; -1: it has no such option. */
static int64_t senders_of(const hk_pattern_t *pattern, const hk_command_t *command)
{
    for (unsigned i = 0; pattern->senders != NULL && i < HK_OPTIONS_MAX && pattern->option[i].name != NULL; i++) {
        if (strcmp(pattern->option[i].name, pattern->senders) == 0) {
            return command->option[i];
        }
    }
    return -1;
}

/* Of nothing there is no word to wait for, and a library's call may return at once: 0 is no such size. */
static bool is_grained(uint64_t size_bytes, size_t grain_bytes)
{
    return grain_bytes == 0 || (size_bytes != 0 && size_bytes % grain_bytes == 0);
}

bool hk_point_fits(hk_ctx_t *ctx, const hk_command_t *command, char why[HK_ERROR_MAX])
{
    const hk_transport_t *tp = ctx->tp;
    const int size = ctx->size;
    const hk_pattern_t *pattern = hk_patterns[command->pattern];
    const bool has_own = pattern->collective != NULL && hk_has_collective(tp, pattern->collective);
    const bool native = pattern->native != NULL && pattern->native(tp, command->option);
    const char *lack = native ? NULL : hk_missing_cap(pattern->needs, tp->caps);
    const int64_t senders = senders_of(pattern, command);
    if (native && !has_own) {
        snprintf(why, HK_ERROR_MAX, "%s has no %s of its own", tp->name, pattern->collective);
    } else if (lack != NULL) {
        snprintf(why, HK_ERROR_MAX, "%s needs %s, which %s does not offer%s", pattern->name, lack, tp->name,
                 has_own ? "; algorithm=native does without" : "");
    } else if (native && pattern->sized && !is_grained(command->bytes, tp->grain_bytes)) {
        snprintf(why, HK_ERROR_MAX, "%s of %s takes sizes that are multiples of %zu B, not %llu B", pattern->collective,
                 tp->name, tp->grain_bytes, (unsigned long long)command->bytes);
    } else if (senders >= size - 1) {
        snprintf(why, HK_ERROR_MAX, "%s with %s=%lld on %d ranks has no receivers: it needs %lld ranks or more",
                 pattern->name, pattern->senders, (long long)senders, size, (long long)senders + 2);
    } else if (size < pattern->ranks_min || (pattern->ranks_max != 0 && size > pattern->ranks_max)) {
        snprintf(why, HK_ERROR_MAX, "%s runs on %d%s ranks, not on %d", pattern->name, pattern->ranks_min,
                 pattern->ranks_max == pattern->ranks_min ? "" : " or more", size);
    } else if (size % pattern->ranks_step != 0) {
        snprintf(why, HK_ERROR_MAX, "%s needs a number of ranks that divides by %d, not %d", pattern->name,
                 pattern->ranks_step, size);
    } else if (!is_grained(command->bytes, pattern->grain_bytes)) {
        snprintf(why, HK_ERROR_MAX, "%s takes sizes that are multiples of %zu B, not %llu B", pattern->name,
                 pattern->grain_bytes, (unsigned long long)command->bytes);
    } else if (tp->max_bytes != 0 && command->bytes > tp->max_bytes) {
        snprintf(why, HK_ERROR_MAX, "%llu B is above the %llu B that %s sends in one message",
                 (unsigned long long)command->bytes, (unsigned long long)tp->max_bytes, tp->name);
    } else {
        hk_run_t run = {.ctx = ctx, .bytes = command->bytes};
        memcpy(run.option, command->option, sizeof run.option);
        return pattern->fits == NULL || pattern->fits(&run, why, HK_ERROR_MAX);
    }
    return false;
}
