/* The start of OpenSHMEM ranks by the library's oshrun. */
#include <shmem.h>
#include <string.h>
#include <unistd.h>

#include "../launched.h"

enum { HOST_MAX = 256 };

/* Symmetric zeroed memory. Like shmem_free it waits for all ranks. */
static void *take_symmetric(int rank, size_t size_bytes)
{
    void *memory = shmem_malloc(size_bytes);
    if (memory == NULL) {
        hk_log(rank, "shmem: cannot allocate %zu bytes of symmetric memory", size_bytes);
        return NULL;
    }
    memset(memory, 0, size_bytes);
    shmem_barrier_all();
    return memory;
}

static hk_status_t broadcast_from_0(int rank, void *buf, size_t size_bytes)
{
    void *there = take_symmetric(rank, size_bytes);
    if (there == NULL) {
        return HK_ERR_MEMORY;
    }
    if (rank == 0) {
        memcpy(there, buf, size_bytes);
    }
    shmem_barrier_all();
    if (rank != 0) {
        shmem_getmem(buf, there, size_bytes, 0);
    }
    shmem_free(there);
    return HK_OK;
}

/* Every rank compares its host name with rank 0's and reports a difference to rank 0. */
static hk_status_t find_hosts(hk_world_t *world_p)
{
    hk_world_t world = {.rank = shmem_my_pe(), .size = shmem_n_pes()};
    char name[HOST_MAX] = "";
    char first[HOST_MAX] = "";
    gethostname(name, sizeof name - 1);
    memcpy(first, name, sizeof first);
    hk_status_t status = broadcast_from_0(world.rank, first, sizeof first);
    int *elsewhere = status == HK_OK ? take_symmetric(world.rank, sizeof *elsewhere) : NULL;
    if (elsewhere == NULL) {
        return HK_ERR_MEMORY;
    }
    if (strcmp(first, name) != 0) {
        shmem_int_p(elsewhere, 1, 0);
    }
    shmem_barrier_all();
    world.one_host = shmem_int_g(elsewhere, 0) == 0;
    shmem_free(elsewhere);
    world.local_rank = world.rank; /* used only without the launcher's variables, which our launchers always set */
    *world_p = world;
    return HK_OK;
}

static int run_ranks(const hk_args_t *args, int pinned_as, const hk_startup_t *startup)
{
    hk_world_t world;
    if (find_hosts(&world) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    world.startup = startup;
    return hk_launched_run(args, &world, pinned_as, broadcast_from_0);
}

static int shmem_start(const hk_args_t *args, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int local_rank = -1;
    if (hk_launched_begin(args, &local_rank) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    const uint64_t start_ns = hk_startup_now_ns();
    shmem_init();
    const hk_startup_t startup = {.init_ns = hk_startup_now_ns() - start_ns, .launch_ns = hk_since_parent_ns()};
    const int exit_code = run_ranks(args, local_rank, &startup);
    if (exit_code != HK_EXIT_OK) {
        shmem_global_exit(exit_code); /* shmem_finalize would wait for ended ranks */
    }
    shmem_finalize();
    return exit_code;
}

const hk_family_t hk_family = {.name = "shmem", .start = shmem_start};
