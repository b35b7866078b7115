/* Unix-domain sockets of packets (SOCK_SEQPACKET). The engine of byte streams serves them, too: both ranks know how a
 * message is divided, so each read takes one packet. */
#include <sys/socket.h>

#include "stream.h"

/* The kernel refuses a packet larger than the send buffer (EMSGSIZE), and one of that size would have to leave before
 * the next is written. So a longer message is several packets, as a program on such sockets has to send it. */
enum { SEQPACKET_BYTES = 64 << 10 };

static size_t seqpacket_part(size_t size_bytes)
{
    return size_bytes < SEQPACKET_BYTES ? size_bytes : SEQPACKET_BYTES;
}

static ssize_t seqpacket_put(int fd, const void *buf, size_t size_bytes)
{
    return hk_stream_socket_put(fd, buf, seqpacket_part(size_bytes));
}

static ssize_t seqpacket_put_now(int fd, const void *buf, size_t size_bytes)
{
    return hk_stream_socket_put_now(fd, buf, seqpacket_part(size_bytes));
}

static int seqpacket_make(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds);
}

static const hk_stream_family_t seqpacket_family = {
    .carrier = "Unix-domain sockets of packets",
    .put = seqpacket_put,
    .get = hk_stream_socket_get,
    .put_now = seqpacket_put_now,
    .get_now = hk_stream_socket_get_now,
    .make = seqpacket_make,
    .duplex = true,
};

static const hk_limit_t seqpacket_limits[] = {
    {"hockney's packet", SEQPACKET_BYTES, NULL, "a larger message is sent in several packets",
     "docs/transports.md, section Names", "https://man7.org/linux/man-pages/man7/unix.7.html"},
    {0},
};

const hk_transport_t hk_transport_unix_seqpacket = {
    HK_STREAM_HOOKS,
    HK_STREAM_PREPARED,
    .name = "unix:seqpacket",
    .summary = "Unix-domain sockets of packets (SOCK_SEQPACKET); a rank that waits sleeps in send or recv",
    .caps = HK_STREAM_CAPS,
    .variant = HK_STREAM_BLOCK,
    .own = &seqpacket_family,
    .below = "unix",
    .limits = seqpacket_limits,
};
