/* SimGrid's SMPI: the ranks of an MPI program on a simulated machine, in one thread of one process (smpirun).
 * Control messages are MPI's too, there is no floor, and time is SimGrid's. */
#include <mpi.h>
#include <time.h>

#include "../family.h"
#include "mpi_hooks.h"

/* ---- time -------------------------------------------------------------------------------------------------------- */

static uint64_t smpi_now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    return (uint64_t)(MPI_Wtime() * 1e9 + 0.5);
}

/* smpicc turns nanosleep into simulated time. */
static void smpi_pass(hk_ctx_t *ctx, uint64_t duration_ns)
{
    (void)ctx;
    const struct timespec duration = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                                      .tv_nsec = (long)(duration_ns % 1000000000u)};
    (void)nanosleep(&duration, NULL);
}

/* All ranks continue at the same moment, as with a model. MPI_Barrier would release them one after another. */
static hk_status_t smpi_meet(hk_ctx_t *ctx)
{
    const double mine_s = MPI_Wtime();
    double last_s = mine_s;
    const int code = MPI_Allreduce(&mine_s, &last_s, 1, MPI_DOUBLE, MPI_MAX, hk_mpi_comm(ctx));
    smpi_pass(ctx, (uint64_t)((last_s + 1.0 - MPI_Wtime()) * 1e9 + 0.5));
    return HK_MPI_CHECKED(ctx, "MPI_Allreduce", code);
}

static void smpi_cpu_ns(hk_ctx_t *ctx, uint64_t *user_ns_p, uint64_t *system_ns_p)
{
    (void)ctx;
    *user_ns_p = *system_ns_p = 0;
}

const hk_transport_t hk_transport_smpi = {
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_PROBE | HK_CAP_VIRTUAL,
    .name = "smpi",
    .summary = "SimGrid's MPI, on the platform of smpirun",
    .carrier = HK_CARRIER_LIBRARY,
    .max_bytes = INT_MAX,
    .open = hk_mpi_open,
    .close = hk_mpi_close,
    .library = hk_mpi_library,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .send = hk_mpi_send,
    .recv = hk_mpi_recv,
    .probe = hk_mpi_probe,
    .isend = hk_mpi_isend,
    .irecv = hk_mpi_irecv,
    .wait_all = hk_mpi_wait_all,
    .barrier = smpi_meet,
    .broadcast = hk_mpi_broadcast,
    .alltoall = hk_mpi_alltoall,
    .allreduce = hk_mpi_allreduce,
    .reduce = hk_mpi_reduce,
    .now_ns = smpi_now_ns,
    .compute = smpi_pass,
    .spin = smpi_pass, /* a turn takes 1 ns */
    .sleep = smpi_pass,
    .cpu_ns = smpi_cpu_ns,
};

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static hk_status_t gather(int rank, const void *mine, size_t size_bytes, void *all)
{
    const int code = MPI_Gather(mine, (int)size_bytes, MPI_BYTE, all, (int)size_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? HK_OK : hk_mpi_failed(rank, "MPI_Gather", code);
}

static hk_status_t broadcast(int rank, void *buf, size_t size_bytes)
{
    const int code = MPI_Bcast(buf, (int)size_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? HK_OK : hk_mpi_failed(rank, "MPI_Bcast", code);
}

static int smpi_start(const hk_args_t *args, int argc, char **argv)
{
    static const hk_control_calls_t calls = {.gather = gather, .broadcast = broadcast};
    hk_control_t control = {.calls = &calls};
    const int code = MPI_Init(&argc, &argv);
    if (code != MPI_SUCCESS) {
        hk_log(0, "MPI_Init failed with code %d", code);
        return HK_EXIT_FAILED;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &control.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &control.size);
    const hk_job_t job = {.rank = control.rank, .size = control.size, .control = &control, .oversubscribed = 1};
    const int exit_code = hk_rank_main(args->tp, &job);
    MPI_Finalize();
    return exit_code;
}

const hk_family_t hk_family = {.name = "smpi", .start = smpi_start};
