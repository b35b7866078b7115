/* Socket calls of the stream transports. */
#include <sys/socket.h>

#include "stream.h"

ssize_t hk_stream_socket_put(int fd, const void *buf, size_t size_bytes)
{
    return send(fd, buf, size_bytes, MSG_NOSIGNAL);
}

ssize_t hk_stream_socket_get(int fd, void *buf, size_t size_bytes)
{
    return recv(fd, buf, size_bytes, 0);
}

ssize_t hk_stream_socket_put_now(int fd, const void *buf, size_t size_bytes)
{
    return send(fd, buf, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t hk_stream_socket_get_now(int fd, void *buf, size_t size_bytes)
{
    return recv(fd, buf, size_bytes, MSG_DONTWAIT);
}
