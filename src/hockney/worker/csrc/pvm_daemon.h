/* The PVM daemon of a job. The family's start finds or starts it (pvm_daemon.c); the ranks enrol with it
 * (transports/pvm.c). */
#ifndef HK_PVM_DAEMON_H
#define HK_PVM_DAEMON_H

/* Empty and remove the job's folder of sockets. Called once all ranks have joined and need no name in it any more,
 * so no later failure leaves it behind. */
void hk_pvm_remove_folder(void);

#endif
