/* MPI's partitioned messages (MPI 4), and what a library without them, threads or device memory says. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "mpi_hooks.h"

#if HK_MPI_4

static MPI_Request *parts_request(hk_parted_t *message)
{
    return hk_mpi_request(&message->req);
}

static hk_status_t parts_make(hk_ctx_t *ctx, hk_parted_t *message)
{
    const int count = (int)message->part_bytes;
    MPI_Request *request = parts_request(message);
    const int code = message->is_sent ? MPI_Psend_init(message->buf, message->count, count, MPI_BYTE, message->peer,
                                                       HK_MPI_TAG, hk_mpi_comm(ctx), MPI_INFO_NULL, request)
                                      : MPI_Precv_init(message->buf, message->count, count, MPI_BYTE, message->peer,
                                                       HK_MPI_TAG, hk_mpi_comm(ctx), MPI_INFO_NULL, request);
    return HK_MPI_CHECKED(ctx, "MPI_Psend_init or MPI_Precv_init", code);
}

static hk_status_t parts_start(hk_ctx_t *ctx, hk_parted_t *message)
{
    return HK_MPI_CALL(ctx, MPI_Start, parts_request(message));
}

static hk_status_t parts_ready(hk_ctx_t *ctx, hk_parted_t *message, int part)
{
    return HK_MPI_CALL(ctx, MPI_Pready, part, *parts_request(message));
}

static hk_status_t parts_arrived(hk_ctx_t *ctx, hk_parted_t *message, int part, bool *is_there_p)
{
    int is_there = 0;
    const int code = MPI_Parrived(*parts_request(message), part, &is_there);
    *is_there_p = is_there != 0;
    return HK_MPI_CHECKED(ctx, "MPI_Parrived", code);
}

static hk_status_t parts_wait(hk_ctx_t *ctx, hk_parted_t *message)
{
    return HK_MPI_CALL(ctx, MPI_Wait, parts_request(message), MPI_STATUS_IGNORE);
}

static void parts_drop(hk_ctx_t *ctx, hk_parted_t *message)
{
    (void)ctx;
    MPI_Request_free(parts_request(message));
}

const hk_parts_hooks_t hk_mpi_parts = {parts_make, parts_start, parts_ready, parts_arrived, parts_wait, parts_drop};

#endif

static const char *parts_level(int level)
{
    return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                            : "MPI_THREAD_MULTIPLE";
}

/* The level is known once MPI has started. */
static bool parts_gave_less(char *why, size_t len)
{
    int is_started = 0, level = MPI_THREAD_MULTIPLE;
    MPI_Initialized(&is_started);
    if (is_started) {
        MPI_Query_thread(&level);
    }
    (void)snprintf(why, len, "the library was asked for MPI_THREAD_MULTIPLE and gave %s", parts_level(level));
    return level != MPI_THREAD_MULTIPLE;
}

/* Whether this library takes messages in device memory. Most know only after MPI_Init (MPICH 4 ends a process that asks
 * earlier): without a job they count as if they did, and the job asks again. */
static bool parts_has_devices(void)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION <= 4
    const bool knows_early = true;
#else
    const bool knows_early = false;
#endif
    int is_initialised = 0;
    int (*query)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"); /* of Open MPI 2, MPICH 4 and their kin */
    memcpy(&query, &found, sizeof query);
    MPI_Initialized(&is_initialised);
    return query != NULL && ((!is_initialised && !knows_early) || query() != 0);
}

bool hk_mpi_lacks(const hk_transport_t *tp, uint32_t needs, char *why, size_t len)
{
    if ((needs & HK_CAP_DEVICES) != 0 && !parts_has_devices()) {
        (void)snprintf(why, len, "this library was built without CUDA, as MPIX_Query_cuda_support says");
        return true;
    }
    if (!HK_MPI_4 && (needs & HK_CAP_PARTITIONS) != 0) {
        (void)snprintf(why, len, "this library has none; MPI 4 has (Open MPI 5, MPICH 4)");
        return true;
    }
    return (tp->caps & HK_CAP_MULTIPLE) != 0 && parts_gave_less(why, len);
}
