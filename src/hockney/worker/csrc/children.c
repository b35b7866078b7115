/* cold */
#include "children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "family.h"

/* Severity of an exit: the most severe is the cause, the others are its consequences. */
static int gravity(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return 3;
    }
    const int code = WEXITSTATUS(wait_status);
    return code == HK_EXIT_TIMEOUT ? 2 : code != HK_EXIT_OK ? 1 : 0;
}

static void report_loss(int rank, int wait_status)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "lost", 0);
    hk_answer_signed(&answer, "rank", rank);
    hk_answer_signed(&answer, "signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0);
    hk_answer_signed(&answer, "exit", WIFSIGNALED(wait_status) ? 0 : WEXITSTATUS(wait_status));
    hk_answer_send(&answer, STDOUT_FILENO);
}

static int find_child(const pid_t *pids, int count, pid_t pid)
{
    int place = 0;
    while (place < count && pids[place] != pid) {
        place++;
    }
    return place;
}

/* Sleeps until all ranks have ended. If one fails, it ends the others and reports the cause. */
static int supervise(pid_t *pids, int first, int count)
{
    int worst_place = -1;
    int worst_status = 0;
    for (int left = count; left > 0;) {
        int wait_status = 0;
        const pid_t pid = waitpid(-1, &wait_status, worst_place >= 0 ? WNOHANG : 0);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid > 0) {
            const int place = find_child(pids, count, pid);
            if (place == count) {
                continue; /* a child of the program that became this one by exec */
            }
            left--;
            pids[place] = -1;
            if (gravity(wait_status) > gravity(worst_status)) {
                worst_place = place;
                worst_status = wait_status;
            }
            continue;
        }
        /* A rank failed, and all that ended by themselves are counted: end the rest. */
        for (int place = 0; place < count; place++) {
            if (pids[place] > 0) {
                kill(pids[place], SIGKILL);
                waitpid(pids[place], NULL, 0);
            }
        }
        break;
    }
    if (worst_place < 0) {
        return HK_EXIT_OK;
    }
    report_loss(first + worst_place, worst_status);
    return gravity(worst_status) == 2 ? HK_EXIT_TIMEOUT : HK_EXIT_RANK_DIED;
}

int hk_run_children(int first, int count, const hk_children_t *hooks, void *start)
{
    const pid_t parent = getpid();
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (pids == NULL) {
        return HK_EXIT_FAILED;
    }
    for (int place = 0; place < count; place++) {
        pids[place] = fork();
        if (pids[place] == 0) {
            free(pids);
            hk_die_with_parent(parent);
            exit(hooks->run(start, first + place));
        }
        if (pids[place] < 0) {
            hk_log(first + place, "cannot start a process for this rank: %s", strerror(errno));
            for (int other = 0; other < place; other++) {
                kill(pids[other], SIGKILL);
            }
            free(pids);
            return HK_EXIT_FAILED;
        }
    }
    hooks->release(start);
    close(STDIN_FILENO); /* only rank 0 reads it */
    const int exit_code = supervise(pids, first, count);
    free(pids);
    return exit_code;
}
