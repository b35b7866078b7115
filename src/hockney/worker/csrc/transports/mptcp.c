/* cold */
/* Multipath TCP: the sockets and the engine of tcp, by protocol 262. A connection whose other end, or whose way, has no
 * MPTCP becomes a plain one in silence, and the figures would be those of tcp. So each is asked, and such a job is
 * refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../control.h"
#include "tcp.h"

enum { MPTCP_PROTOCOL = 262, MPTCP_LEVEL = 284, MPTCP_ASK_INFO = 1 }; /* which older headers lack */

static const hk_stream_family_t mptcp_family = {
    .carrier = "MPTCP",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
    .protocol = MPTCP_PROTOCOL,
};

static bool mptcp_is_here(const hk_transport_t *tp, char *why, size_t len, const char **how_p)
{
    (void)tp;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, MPTCP_PROTOCOL);
    if (fd >= 0) {
        (void)close(fd);
        return true;
    }
    *how_p = "as root: sysctl net.mptcp.enabled=1 (Linux 5.6 or newer)";
    (void)snprintf(why, len, "the kernel opens no MPTCP socket: %s", strerror(errno));
    return false;
}

/* Linux 5.16 or newer answers, and only for a connection that is MPTCP. The first word is the number of further
 * subflows. */
static bool mptcp_ask(int fd, unsigned char *subflows_p)
{
    unsigned char info[256] = {0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, MPTCP_LEVEL, MPTCP_ASK_INFO, info, &len) != 0) {
        return false;
    }
    *subflows_p = info[0];
    return true;
}

static hk_status_t mptcp_check(const hk_stream_t *stream, unsigned *subflows_p)
{
    for (int peer = 0; peer < stream->base.size; peer++) {
        unsigned char more = 0;
        if (peer != stream->base.rank && !mptcp_ask(stream->out[peer].fd, &more)) {
            return hk_fail(
                HK_ERR_UNSUPPORTED, stream->base.rank,
                "mptcp: the connection with rank %d fell back to plain TCP: its host has no MPTCP, or something "
                "on the way removes its options (before Linux 5.16 it cannot be asked)",
                peer);
        }
        *subflows_p += more;
    }
    return HK_OK;
}

static hk_status_t mptcp_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    char why[256] = "";
    const char *how = "";
    const bool is_here = mptcp_is_here(tp, why, sizeof why, &how);
    if (!is_here) {
        hk_log(job->rank, "mptcp: %s; %s", why, how);
    }
    HK_TRY(hk_control_agree(job->control, is_here ? HK_OK : HK_ERR_UNSUPPORTED));
    hk_ctx_t *ctx = NULL;
    unsigned subflows = 0;
    hk_status_t status = hk_tcp_open(tp, job, &ctx); /* may fail on one rank */
    hk_stream_t *stream = (hk_stream_t *)ctx;
    status = hk_control_agree(job->control, status == HK_OK ? mptcp_check(stream, &subflows) : status);
    if (status != HK_OK) {
        if (ctx != NULL) {
            hk_stream_close(ctx);
        }
        return status;
    }
    const size_t used = strlen(stream->library);
    (void)snprintf(stream->library + used, sizeof stream->library - used, ", %u further subflows", subflows);
    *ctx_p = ctx;
    return HK_OK;
}

const hk_transport_t hk_transport_mptcp = {
    HK_STREAM_HOOKS,
    .name = "mptcp",
    .summary = "Multipath TCP between processes; a rank that waits sleeps in send or recv",
    .caps = HK_STREAM_CAPS | HK_CAP_HOSTS,
    .variant = HK_STREAM_BLOCK,
    .own = &mptcp_family,
    .below = "tcp",
    .below_remote = "tcp",
    .is_here = mptcp_is_here,
    .open = mptcp_open,
    .counter = hk_tcp_counter,
};
