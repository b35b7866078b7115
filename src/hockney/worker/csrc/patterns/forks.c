/* cold */
#include "forks.h"

#include <signal.h>
#include <stdio.h>

#include <sys/wait.h>
#include <unistd.h>

_Static_assert(sizeof(pid_t) <= sizeof(int), "a process number does not fit hk_forks_t");

bool hk_forks_fit(const hk_run_t *run, size_t place, char *why, size_t len)
{
    const uint32_t unfit = HK_CAP_THREADS | HK_CAP_VIRTUAL;
    snprintf(why, len, "forks= needs ranks that are processes, which those of %s are not", run->ctx->tp->name);
    return run->option[place] == 0 || (run->ctx->tp->caps & unfit) == 0;
}

/* Until the parent ends it, or has ended. */
static void forks_sleep(pid_t parent)
{
    while (getppid() == parent) {
        sleep(1);
    }
    _exit(0);
}

hk_status_t hk_forks_start(hk_ctx_t *ctx, int count, hk_forks_t *forks_p)
{
    const pid_t parent = getpid();
    for (forks_p->count = 0; forks_p->count < count; forks_p->count++) {
        const pid_t child = fork();
        if (child == 0) {
            forks_sleep(parent);
        }
        if (child < 0) {
            hk_forks_end(forks_p);
            return hk_fail(HK_ERR_SYSTEM, ctx->rank, "cannot fork child %d of %d", forks_p->count + 1, count);
        }
        forks_p->pid[forks_p->count] = child;
    }
    return HK_OK;
}

void hk_forks_end(hk_forks_t *forks)
{
    for (; forks->count > 0; forks->count--) {
        kill(forks->pid[forks->count - 1], SIGKILL);
        waitpid(forks->pid[forks->count - 1], NULL, 0);
    }
}
