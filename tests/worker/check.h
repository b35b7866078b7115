/* Shared by the C tests: a check that ends the process and prints its place, and ranks as processes. */
#ifndef HK_TEST_CHECK_H
#define HK_TEST_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHECK_LIMIT_S = 120 };

static inline void check_at(bool fine, const char *what, const char *file, int line)
{
    if (!fine) {
        (void)fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
        exit(1);
    }
}

#define CHECK(what) check_at((what), #what, __FILE__, __LINE__)

/* Fork a child with a time limit; 0 in the child. */
static inline pid_t check_fork(void)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    (void)alarm(CHECK_LIMIT_S);
    return pid;
}

/* Wait for a child and check that it exited with 0. */
static inline void check_end(pid_t pid)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
