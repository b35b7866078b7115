/* Pipes: one for each ordered pair of ranks, created before the ranks are forked. */
#include <fcntl.h>
#include <unistd.h>

#include "stream.h"

static ssize_t pipe_put(int fd, const void *buf, size_t size_bytes)
{
    return write(fd, buf, size_bytes);
}

static ssize_t pipe_get(int fd, void *buf, size_t size_bytes)
{
    return read(fd, buf, size_bytes);
}

static int make_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

/* A pipe has no MSG_DONTWAIT, so the engine switches O_NONBLOCK. No other rank uses this end. */
static const hk_stream_family_t pipe_family = {
    .carrier = "pipes of the kernel", .put = pipe_put, .get = pipe_get, .make = make_pipe};

static const hk_limit_t pipe_limits[] = {
    {"capacity of a pipe", 65536, NULL, "a larger message waits for its reader", "man 7 pipe",
     "https://man7.org/linux/man-pages/man7/pipe.7.html"},
    {0},
};

HK_STREAM_TABLES(pipe, "pipes", "read or write", NULL, 0, .own = &pipe_family, .limits = pipe_limits,
                 HK_STREAM_PREPARED);
