/* What the bare programs share. */
#ifndef BARE_H
#define BARE_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline void check(int fine, const char *what)
{
    if (!fine) {
        perror(what);
        exit(1);
    }
}

static inline void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    check(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static inline void send_all(int fd, const char *buf, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t count = write(fd, buf + done, size_bytes - done);
        check(count > 0, "write");
        done += (size_t)count;
    }
}

static inline void recv_all(int fd, char *buf, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t count = read(fd, buf + done, size_bytes - done);
        check(count > 0, "read");
        done += (size_t)count;
    }
}

static inline double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts the values. */
static inline double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

#endif
