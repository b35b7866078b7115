/* Pipes: one for each ordered pair of ranks, made before the ranks are forked. */
#include <fcntl.h>
#include <unistd.h>

#include "stream.h"

static ssize_t pipe_put(int fd, const void *buf, size_t len_bytes)
{
    return write(fd, buf, len_bytes);
}

static ssize_t pipe_get(int fd, void *buf, size_t len_bytes)
{
    return read(fd, buf, len_bytes);
}

/* A pipe has no MSG_DONTWAIT, so the engine switches O_NONBLOCK. Each end is this rank's alone. */
static const hk_stream_family_t pipe_family = {.carrier = "pipes of the kernel", .put = pipe_put, .get = pipe_get};

static int make_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

static hk_status_t pipe_prepare(int size, void **shared_p)
{
    return hk_stream_prepare("pipe", size, false, make_pipe, shared_p);
}

static hk_status_t pipe_open_blocking(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_pipe, &pipe_family, HK_STREAM_BLOCK, ctx_p);
}

static hk_status_t pipe_open_nonblock(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_pipe_nonblock, &pipe_family, HK_STREAM_NONBLOCK, ctx_p);
}

static hk_status_t pipe_open_spin(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_pipe_spin, &pipe_family, HK_STREAM_SPIN, ctx_p);
}

const hk_transport_t hk_transport_pipe = {
    .name = "pipe",
    .summary = "pipes between processes; a rank that waits sleeps in read or write",
    .caps = HK_STREAM_CAPS | HK_CAP_STREAM,
    HK_STREAM_BYTES,
    .prepare = pipe_prepare,
    .release = hk_stream_release,
    .open = pipe_open_blocking,
    HK_STREAM_HOOKS,
};

const hk_transport_t hk_transport_pipe_nonblock = {
    .name = "pipe:nonblock",
    .summary = "pipes between processes, O_NONBLOCK; a rank that waits sleeps in poll",
    .caps = HK_STREAM_CAPS,
    .prepare = pipe_prepare,
    .release = hk_stream_release,
    .open = pipe_open_nonblock,
    HK_STREAM_HOOKS,
};

const hk_transport_t hk_transport_pipe_spin = {
    .name = "pipe:spin",
    .summary = "pipes between processes, O_NONBLOCK; a rank that waits tries again at once",
    .caps = HK_STREAM_CAPS | HK_CAP_SPINS,
    .prepare = pipe_prepare,
    .release = hk_stream_release,
    .open = pipe_open_spin,
    HK_STREAM_HOOKS,
};
