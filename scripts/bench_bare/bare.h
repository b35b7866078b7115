/* What the bare programs share. */
#ifndef BARE_H
#define BARE_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
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

/* A connection over the loopback. */
static inline void connect_tcp(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    const int yes = 1;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&at, &len) == 0, "getsockname");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(ends[0], (struct sockaddr *)&at, len) == 0, "connect");
    ends[1] = accept(listener, NULL, NULL);
    check(ends[1] >= 0, "accept");
    for (int i = 0; i < 2; i++) {
        check(setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
    }
    close(listener);
}

#endif
