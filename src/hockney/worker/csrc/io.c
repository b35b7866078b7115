/* cold */
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

hk_status_t hk_allow_files(const char *transport, int size, uint64_t files)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return hk_fail(HK_ERR_SYSTEM, 0, "%s: cannot ask for the limit of open files: %s", transport, strerror(errno));
    }
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= files) {
        return HK_OK;
    }
    const rlim_t most = limit.rlim_max;
    limit.rlim_cur = (rlim_t)files;
    if ((most != RLIM_INFINITY && most < files) || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return hk_fail(HK_ERR_UNSUPPORTED, 0,
                       "%s: %d ranks need %llu open files, and this system allows %llu (ulimit -Hn)", transport, size,
                       (unsigned long long)files, (unsigned long long)most);
    }
    return HK_OK;
}

/* An inherited descriptor (standard output of an mpiexec) may be O_NONBLOCK: wait instead of failing. */
static bool try_again(int fd, short events)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        struct pollfd ready = {.fd = fd, .events = events};
        (void)poll(&ready, 1, -1);
        return true;
    }
    return errno == EINTR;
}

int64_t hk_now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

hk_status_t hk_io_status(void)
{
    return errno == EPIPE || errno == ECONNRESET ? HK_ERR_PEER : HK_ERR_SYSTEM;
}

hk_status_t hk_write_all(int fd, const void *buf, size_t size_bytes)
{
    const unsigned char *from = buf;
    bool is_socket = true;
    while (size_bytes > 0) {
        /* A closed peer must not kill a process that has not ignored SIGPIPE. */
        const ssize_t count = is_socket ? send(fd, from, size_bytes, MSG_NOSIGNAL) : write(fd, from, size_bytes);
        if (count >= 0) {
            from += count;
            size_bytes -= (size_t)count;
        } else if (is_socket && errno == ENOTSOCK) {
            is_socket = false;
        } else if (!try_again(fd, POLLOUT)) {
            return hk_io_status();
        }
    }
    return HK_OK;
}

hk_status_t hk_read_all(int fd, void *buf, size_t size_bytes)
{
    unsigned char *to = buf;
    while (size_bytes > 0) {
        const ssize_t count = read(fd, to, size_bytes);
        if (count > 0) {
            to += count;
            size_bytes -= (size_t)count;
        } else if (count == 0) {
            return HK_ERR_PEER;
        } else if (!try_again(fd, POLLIN)) {
            return hk_io_status();
        }
    }
    return HK_OK;
}

size_t hk_read_some(int fd, void *buf, size_t room_bytes)
{
    ssize_t count;
    do {
        count = read(fd, buf, room_bytes);
    } while (count < 0 && try_again(fd, POLLIN));
    return count > 0 ? (size_t)count : 0;
}
