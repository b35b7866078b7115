/* A family of workers is one executable: the transports that one compiler wrapper can build, and the way in which its
 * ranks come to life. main.c is the same for all families. */
#ifndef HK_FAMILY_H
#define HK_FAMILY_H

#include <stdbool.h>

#include <sys/types.h>

#include "control.h"
#include "transport.h"

enum { HK_MACHINE_BYTES = 64 };

/* The command line, checked. Strings belong to argv. */
typedef struct hk_args {
    const hk_transport_t *tp;
    int size;           /* -n: ranks of a local job; libraries that start ranks know better */
    const int *cpus;    /* --bind: rank r on a host is pinned to cpus[r % cpus_count] */
    int cpus_count;     /* 0: not pinned */
    int oversubscribed; /* --oversubscribed */
    int rank;           /* --rank: a job over several hosts, the first rank of this one; -1: a local job */
    int here;           /* --here: how many ranks such a job has on this host */
    const char *listen; /* --listen HOST: rank 0 of such a job */
    const char *join;   /* --join HOST:PORT: every other host */
    int start_limit_s;  /* --start-limit: how long ranks wait for each other when they start */
    const char *model;  /* --model FILE: the machine that ranks are simulated on; only the family sim takes it */
    int seed;           /* --seed: of its noise */
} hk_args_t;

typedef struct hk_family {
    const char *name; /* "native", "mpi", … */
    bool takes_model; /* --model */

    /* Bring up the ranks of a job and call hk_rank_main on each. Returns the exit code of this process. */
    int (*start)(const hk_args_t *args, int argc, char **argv);
} hk_family_t;

/* Each executable links exactly one. */
extern const hk_family_t hk_family;

/* Ranks that are processes or threads of this host: all of the native family's start, for families whose library has no
 * launcher of its own (local.c). Returns the exit code. */
int hk_local_start(const hk_args_t *args);

/* The same for the ranks that a job over several hosts has on this one (remote.c). */
int hk_remote_start(const hk_args_t *args);

/* One rank from open to close: rank 0 reads commands from standard input, all ranks carry them out, rank 0 answers.
 * Returns the exit code. */
int hk_rank_main(const hk_transport_t *tp, const hk_job_t *job);

/* The CPUs that this process may use, at most so many, a core's second thread after all first ones; returns how many: 0
 * where nothing can be pinned. For --bind own, since each host of a job has CPUs of its own. */
int hk_own_cpus(int *cpus, int most);

/* Pin the calling thread as args->cpus says for the local_rank-th rank of this host; no-op without --bind. */
hk_status_t hk_pin(const hk_args_t *args, int local_rank);

/* What this machine is, whatever names its host goes by and whatever container this is: its boot, else its host name.
 */
void hk_machine_name(char name[HK_MACHINE_BYTES]);

/* Once the control star is up: ranks whose hosts are one machine under several names get CPUs of their own.
 * `pinned_as`: the place among the ranks of its host that this rank was pinned by; -1: it was not. */
hk_status_t hk_pin_apart(const hk_args_t *args, hk_control_t *control, int pinned_as);

/* This process must not outlive parent, which started it (Linux; elsewhere the end of standard input must do). */
void hk_die_with_parent(pid_t parent);

#endif
