/* Preloaded into a worker: its host has no MPTCP, but opens plain sockets in its place. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol)
{
    const int mptcp = 262;
    return (int)syscall(SYS_socket, domain, type, protocol == mptcp ? 0 : protocol);
}
