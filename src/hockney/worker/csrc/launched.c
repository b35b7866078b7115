/* cold */
#include "launched.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"

/* Slurm's variable comes last but one: a batch shell passes its value 0 to all processes that an mpiexec starts in
 * it. */
static int local_rank_from_launcher(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "PALS_LOCAL_RANKID",
        "SLURM_LOCALID",
        "PMIX_RANK",
        "PMI_RANK",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value >= '0' && *value <= '9') {
            return (int)strtol(value, NULL, 10);
        }
    }
    return -1;
}

hk_status_t hk_launched_begin(const hk_args_t *args, int *local_rank_p)
{
    *local_rank_p = local_rank_from_launcher();
    hk_die_with_parent(getppid());
    return *local_rank_p < 0 ? HK_OK : hk_pin(args, *local_rank_p);
}

/* Rank 0: a socket that the other ranks can reach. */
static hk_status_t listen_for_others(const hk_args_t *args, const hk_world_t *world, int *listener_p,
                                     hk_address_t *address_p)
{
    char host[NI_MAXHOST];
    if (world->one_host || args->interface != NULL) {
        return hk_address_listen(world->one_host ? NULL : args->interface, 0, listener_p, address_p);
    }
    if (!hk_address_of_host(host, sizeof host)) {
        return hk_fail(HK_ERR_SYSTEM, 0,
                       "%s: the ranks are on several hosts, and this host has only the loopback address",
                       hk_family.name);
    }
    return hk_address_listen(host, 0, listener_p, address_p);
}

/* Build the control star with one broadcast of the library. A waiting rank then sleeps in a read; few libraries can
 * do that. */
static hk_status_t join_star(const hk_args_t *args, const hk_world_t *world,
                             hk_status_t (*broadcast)(int, void *, size_t), hk_control_t *control_p)
{
    hk_address_t address = {0};
    int listener = -1;
    hk_status_t status = world->rank == 0 ? listen_for_others(args, world, &listener, &address) : HK_OK;
    if (status == HK_OK) { /* otherwise the caller aborts the job, so no rank waits for the broadcast */
        status = broadcast(world->rank, &address, sizeof address);
    }
    if (status != HK_OK) {
        return status;
    }
    return world->rank == 0 ? hk_control_accept(listener, &address, world->size, args->start_limit_s, control_p)
                            : hk_control_connect(&address, world->rank, world->size, args->start_limit_s, control_p);
}

typedef struct seat {
    char machine[HK_MACHINE_BYTES];
    int pinned_as;
} seat_t;

hk_status_t hk_pin_separately(const hk_args_t *args, hk_control_t *control, int pinned_as)
{
    if (args->cpus_count == 0 || control->size == 1) {
        return HK_OK;
    }
    seat_t mine = {.pinned_as = pinned_as};
    hk_machine_name(mine.machine);
    seat_t *all = calloc((size_t)control->size, sizeof *all);
    hk_status_t status = hk_control_agree(control, all == NULL ? HK_ERR_MEMORY : HK_OK);
    if (status == HK_OK) {
        status = hk_control_allgather(control, &mine, sizeof mine, all);
    }
    bool clash = pinned_as < 0;
    int place = 0; /* index among the ranks of this machine */
    for (int rank = 0; status == HK_OK && all != NULL && rank < control->size; rank++) {
        const bool is_here = strcmp(all[rank].machine, mine.machine) == 0;
        place += is_here && rank < control->rank;
        for (int other = 0; is_here && !clash && other < rank; other++) {
            clash = all[other].pinned_as == all[rank].pinned_as && strcmp(all[other].machine, mine.machine) == 0;
        }
    }
    free(all);
    return status == HK_OK && clash ? hk_pin(args, place) : status;
}

int hk_launched_run(const hk_args_t *args, const hk_world_t *world, int pinned_as,
                    hk_status_t (*broadcast)(int rank, void *buf, size_t size_bytes))
{
    hk_control_t control;
    if (args->size != 0 && world->size != args->size) {
        hk_log(world->rank,
               "%s: the job has %d ranks, but the library reports %d: use the launcher of the library that the "
               "worker was built with",
               hk_family.name, args->size, world->size);
        return HK_EXIT_USAGE;
    }
    if (pinned_as < 0) {
        pinned_as = world->local_rank;
        if (hk_pin(args, pinned_as) != HK_OK) {
            return HK_EXIT_FAILED;
        }
    }
    if (join_star(args, world, broadcast, &control) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    if (hk_pin_separately(args, &control, pinned_as) != HK_OK) {
        hk_control_close(&control);
        return HK_EXIT_FAILED;
    }
    const hk_job_t job = {
        .rank = world->rank,
        .size = world->size,
        .control = &control,
        .oversubscribed = args->oversubscribed,
        .remote = !world->one_host,
        .startup = world->startup,
    };
    const int code = hk_rank_main(args->tp, &job);
    hk_control_close(&control);
    return code;
}
