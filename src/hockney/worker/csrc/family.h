/* A family of workers is one executable: the transports that one compiler wrapper builds, and the way to start their
 * ranks. main.c is the same for all families. */
#ifndef HK_FAMILY_H
#define HK_FAMILY_H

#include <stdbool.h>

#include <sys/types.h>

#include "control.h"
#include "transport.h"

enum { HK_MACHINE_BYTES = 64 };

/* The parsed command line. Strings belong to argv. */
typedef struct hk_args {
    const hk_transport_t *tp;
    int size;              /* -n: ranks of a local job; a library that starts ranks overrides it */
    const int *cpus;       /* --bind: rank r of a host is pinned to cpus[r % cpus_count] */
    int cpus_count;        /* 0: not pinned */
    int oversubscribed;    /* --oversubscribed */
    int rank;              /* --rank: the first rank of this host in a job over several hosts; -1: a local job */
    int here;              /* --here: number of such a job's ranks on this host */
    const char *listen;    /* --listen HOST: rank 0 of such a job */
    const char *join;      /* --join HOST:PORT: all other hosts */
    const char *interface; /* --interface NAME: sockets between hosts use its address; NULL: any */
    int start_limit_s;     /* --start-limit: time limit for all ranks to join */
    const char *model;     /* --model FILE: the simulated machine; only for the family sim */
    int seed;              /* --seed, of the simulated noise */
} hk_args_t;

typedef struct hk_family {
    const char *name; /* "native", "mpi", … */
    bool takes_model; /* --model */

    /* Start the ranks of a job and call hk_rank_main on each. Returns the exit code of this process. */
    int (*start)(const hk_args_t *args, int argc, char **argv);

    /* Answer with the library's control variables whose names begin with one of the prefixes (up to NULL; none: all),
     * without a job. Optional: absent means that there is no such library. */
    hk_status_t (*variables)(char **prefixes, int fd);
} hk_family_t;

/* Each executable links exactly one family. */
extern const hk_family_t hk_family;

/* Start ranks as processes or threads of this host (local.c): the native family, and libraries without a launcher.
 * Returns the exit code. */
int hk_local_start(const hk_args_t *args);

/* The same for this host's ranks of a job over several hosts (remote.c). */
int hk_remote_start(const hk_args_t *args);

/* Runs one rank from open to close. Rank 0 reads commands from standard input and answers; all ranks execute them.
 * Returns the exit code. */
int hk_rank_main(const hk_transport_t *tp, const hk_job_t *job);

/* Pin the calling thread, as --bind demands for the local_rank-th rank of this host. Without --bind it does nothing. */
hk_status_t hk_pin(const hk_args_t *args, int local_rank);

/* An identifier of this machine that is the same in all containers and under all host names: its boot, or else its
 * host name. */
void hk_machine_name(char name[HK_MACHINE_BYTES]);

/* Called once the control star exists. Ranks whose hosts are one machine under several names get different CPUs.
 * `pinned_as`: the index among the ranks of the host that this rank was pinned by; -1: not pinned. */
hk_status_t hk_pin_separately(const hk_args_t *args, hk_control_t *control, int pinned_as);

/* End this process when its parent ends (Linux only; elsewhere the end of standard input does this). */
void hk_die_with_parent(pid_t parent);

#endif
