/* The PVM daemons of a job. On one host the family's start finds or starts one (pvm_daemon.c), between hosts the ranks
 * start one on each (pvm_hosts.c). The ranks enrol with them (transports/pvm.c). */
#ifndef HK_PVM_DAEMON_H
#define HK_PVM_DAEMON_H

#include <stddef.h>
#include <sys/types.h>

#include "status.h"
#include "transport.h"

/* The variable with the first rank of this host, in a job between hosts. */
#define HK_PVM_KEEPER "HOCKNEY_PVM_KEEPER"

/* Empty and remove the job's folder of sockets. Called once all ranks have joined and need no name in it any more,
 * so no later failure leaves it behind. */
void hk_pvm_remove_folder(void);

/* Start a daemon with these options, which are cut into words. It gets end_signal when this process ends. `line` gets
 * its greeting. *daemon_p is the process if there is one, also on failure. */
hk_status_t hk_pvm_start_daemon(int rank, char *options, int end_signal, char *line, size_t room, pid_t *daemon_p);

/* All ranks of a job between hosts: start a daemon on each host, and make them one virtual machine. The first rank of
 * each host gets the process of its daemon, which ends with it; for other ranks *daemon_p is unchanged. */
hk_status_t hk_pvm_join_hosts(const hk_job_t *job, pid_t *daemon_p);

#endif
