/* Preloaded: corrupts the last byte of every piece of at least 1000 bytes received over a socket. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE 1
#include <stddef.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t recv(int fd, void *buf, size_t size_bytes, int flags)
{
    const ssize_t got = (ssize_t)syscall(SYS_recvfrom, fd, buf, size_bytes, flags, NULL, NULL);
    if (got >= 1000) {
        ((unsigned char *)buf)[got - 1] ^= 1;
    }
    return got;
}
