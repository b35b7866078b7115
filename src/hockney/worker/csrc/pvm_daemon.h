/* The PVM daemon of a job: the family's start finds or starts it (pvm_daemon.c), a rank enrols with it (transports/
 * pvm.c). */
#ifndef HK_PVM_DAEMON_H
#define HK_PVM_DAEMON_H

/* Empty and remove the job's folder of sockets. Called as soon as all ranks are joined, when nobody needs a name in it
 * any more, so that no way to end can leave it behind. */
void hk_pvm_remove_folder(void);

#endif
