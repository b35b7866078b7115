/* The start of MPI ranks by the mpiexec of their library. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../launched.h"
#include "../watch.h"
#include "mpi_hooks.h"

enum { WORDS_NS = 200 * 1000 * 1000 };

/* Ranks are on one host if they share both memory and the host name. Two network namespaces of one machine share
 * memory, but not the loopback. */
static hk_status_t find_hosts(hk_world_t *world_p)
{
    hk_world_t world = {.rank = 0};
    MPI_Comm node;
    int local_size = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char first[MPI_MAX_PROCESSOR_NAME] = "";
    int len = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL, &node);
    if (code != MPI_SUCCESS) {
        return hk_mpi_failed(world.rank, "MPI_Comm_split_type", code);
    }
    MPI_Comm_rank(node, &world.local_rank);
    MPI_Comm_size(node, &local_size);
    MPI_Comm_free(&node);
    MPI_Get_processor_name(name, &len);
    memcpy(first, name, sizeof first);
    code = MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    int here = local_size == world.size && strcmp(first, name) == 0;
    if (code == MPI_SUCCESS) {
        code = MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    if (code != MPI_SUCCESS) {
        return hk_mpi_failed(world.rank, "MPI_Bcast or MPI_Allreduce", code);
    }
    world.one_host = here != 0;
    *world_p = world;
    return HK_OK;
}

static hk_status_t broadcast_world(int rank, void *buf, size_t size_bytes)
{
    const int code = MPI_Bcast(buf, (int)size_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return code == MPI_SUCCESS ? HK_OK : hk_mpi_failed(rank, "MPI_Bcast", code);
}

static int run_ranks(const hk_args_t *args, int pinned_as, hk_startup_t *startup)
{
    hk_world_t world = {.rank = 0};
    if ((args->tp->caps & HK_CAP_FIRST) != 0 && hk_mpi_exchange_first(startup) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    if (find_hosts(&world) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    world.startup = startup;
    return hk_launched_run(args, &world, pinned_as, broadcast_world);
}

/* A library that gives a lower level of threads than asked starts all the same: hk_mpi_lacks says so. */
static int initialise(const hk_args_t *args, int *argc_p, char ***argv_p, hk_startup_t *startup)
{
    int level = MPI_THREAD_SINGLE;
    const uint64_t start_ns = hk_startup_now_ns();
    const int code = (args->tp->caps & HK_CAP_MULTIPLE) != 0
                         ? MPI_Init_thread(argc_p, argv_p, MPI_THREAD_MULTIPLE, &level)
                         : MPI_Init(argc_p, argv_p);
    startup->init_ns = hk_startup_now_ns() - start_ns;
    startup->launch_ns = hk_since_parent_ns();
    return code;
}

static int mpi_start(const hk_args_t *args, int argc, char **argv)
{
    int local_rank = -1;
    if (hk_launched_begin(args, &local_rank) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    hk_startup_t startup = {.init_ns = 0};
    const int code = initialise(args, &argc, &argv, &startup);
    if (code != MPI_SUCCESS) {
        hk_log(local_rank, "MPI_Init failed with code %d", code);
        return HK_EXIT_FAILED;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int exit_code = run_ranks(args, local_rank, &startup);
    if (exit_code != HK_EXIT_OK) {
        hk_remove_shared_memory();
        /* MPICH's proxy drops what it has not yet read: the line that says why, once in thirty times. */
        nanosleep(&(struct timespec){.tv_nsec = WORDS_NS}, NULL);
        MPI_Abort(MPI_COMM_WORLD, exit_code); /* MPI_Finalize would wait for ended ranks */
    }
    MPI_Finalize();
    free(startup.first_ns);
    return exit_code;
}

const hk_family_t hk_family = {.name = "mpi", .start = mpi_start, .variables = hk_mpi_variables};
