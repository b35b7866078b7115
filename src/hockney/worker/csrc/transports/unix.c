/* cold */
/* Unix-domain stream sockets: one pair for each two ranks, created before the ranks are forked. */
#include <sys/socket.h>

#include "stream.h"

static int make_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
}

static const hk_stream_family_t unix_family = {
    .carrier = "Unix-domain stream sockets",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
    .make = make_pair,
    .duplex = true,
};

static const hk_limit_t unix_limits[] = {
    {"net.core.wmem_default", 0, "send_buffer_bytes", "with the kernel's overhead: a larger message waits",
     "sysctl net.core.wmem_default", "https://www.kernel.org/doc/html/latest/admin-guide/sysctl/net.html"},
    {0},
};

HK_STREAM_TABLES(unix, "Unix-domain sockets", "send or recv", NULL, 0, .own = &unix_family, .limits = unix_limits,
                 HK_STREAM_PREPARED);
