/* cold */
#include "sleepers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Only system calls: the library is not this process's. */
static _Noreturn void sleep_until_end_of(pid_t parent)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    while (getppid() == parent) {
        (void)sleep(1);
    }
    _exit(0);
}

hk_status_t hk_sleepers_fork(int rank, int wanted, pid_t *pids, int *count_p)
{
    const pid_t me = getpid();
    while (*count_p < wanted) {
        const pid_t child = fork();
        if (child == 0) {
            sleep_until_end_of(me);
        }
        if (child < 0) {
            return hk_fail(HK_ERR_SYSTEM, rank, "cannot fork child %d of %d: %s", *count_p + 1, wanted,
                           strerror(errno));
        }
        pids[(*count_p)++] = child;
    }
    return HK_OK;
}

void hk_sleepers_end(const pid_t *pids, int *count_p)
{
    while (*count_p > 0) {
        const pid_t child = pids[--*count_p];
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
}
