/* Unix-domain stream sockets: one pair for each two ranks, made before the ranks are forked. */
#include <sys/socket.h>

#include "stream.h"

static const hk_stream_family_t unix_family = {
    .carrier = "Unix-domain stream sockets",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
};

static int make_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
}

static hk_status_t unix_prepare(int size, void **shared_p)
{
    return hk_stream_prepare("unix", size, true, make_pair, shared_p);
}

static hk_status_t unix_open_blocking(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_unix, &unix_family, HK_STREAM_BLOCK, ctx_p);
}

static hk_status_t unix_open_nonblock(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_unix_nonblock, &unix_family, HK_STREAM_NONBLOCK, ctx_p);
}

static hk_status_t unix_open_spin(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    return hk_stream_open(job, &hk_transport_unix_spin, &unix_family, HK_STREAM_SPIN, ctx_p);
}

const hk_transport_t hk_transport_unix = {
    .name = "unix",
    .summary = "Unix-domain sockets between processes; a rank that waits sleeps in send or recv",
    .caps = HK_STREAM_CAPS | HK_CAP_STREAM,
    HK_STREAM_BYTES,
    .prepare = unix_prepare,
    .release = hk_stream_release,
    .open = unix_open_blocking,
    HK_STREAM_HOOKS,
};

const hk_transport_t hk_transport_unix_nonblock = {
    .name = "unix:nonblock",
    .summary = "Unix-domain sockets between processes, O_NONBLOCK; a rank that waits sleeps in poll",
    .caps = HK_STREAM_CAPS,
    .prepare = unix_prepare,
    .release = hk_stream_release,
    .open = unix_open_nonblock,
    HK_STREAM_HOOKS,
};

const hk_transport_t hk_transport_unix_spin = {
    .name = "unix:spin",
    .summary = "Unix-domain sockets between processes, O_NONBLOCK; a rank that waits tries again at once",
    .caps = HK_STREAM_CAPS | HK_CAP_SPINS,
    .prepare = unix_prepare,
    .release = hk_stream_release,
    .open = unix_open_spin,
    HK_STREAM_HOOKS,
};
