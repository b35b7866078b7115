/* cold */
/* TCP: one connection per pair of ranks, on the loopback or between hosts. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../control.h"
#include "../rendezvous.h"
#include "tcp.h"

enum { MEET_LIMIT_S = 30 };

const hk_stream_family_t hk_tcp_family = {
    .carrier = "TCP",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
};

/* Sent to all ranks: where this rank listens, or that it cannot, so that no rank waits for it. */
typedef struct tcp_place {
    hk_status_t status;
    hk_address_t address;
} tcp_place_t;

static hk_status_t listen_here(const hk_job_t *job, int protocol, int *listener_p, hk_address_t *address_p)
{
    char host[sizeof address_p->host];
    const bool is_between = job->remote != 0 && job->size > 1;
    HK_TRY(is_between ? hk_control_address(job->control, job->interface, host) : HK_OK);
    return hk_address_listen_by(protocol, is_between ? host : NULL, job->rank, listener_p, address_p);
}

static hk_status_t exchange_places(const hk_job_t *job, int protocol, int *listener_p, tcp_place_t *places)
{
    tcp_place_t mine;
    memset(&mine, 0, sizeof mine);
    mine.status = listen_here(job, protocol, listener_p, &mine.address);
    hk_status_t status = hk_control_allgather(job->control, &mine, sizeof mine, places);
    for (int peer = 0; status == HK_OK && peer < job->size; peer++) {
        status = places[peer].status;
    }
    return status;
}

/* Every rank connects to those below it and then accepts those above it. So there is no deadlock. */
static hk_status_t meet(const hk_job_t *job, int listener, const tcp_place_t *places, int *fds)
{
    const char *from = job->interface == NULL ? NULL : places[job->rank].address.host;
    for (int peer = 0; peer < job->rank; peer++) {
        HK_TRY(hk_rendezvous_connect(&places[peer].address, from, job->rank, job->size, MEET_LIMIT_S, &fds[peer]));
    }
    return hk_rendezvous_accept(listener, &places[job->rank].address, job->rank, job->rank + 1, job->size, MEET_LIMIT_S,
                                fds, &job->control->strangers);
}

static hk_status_t tcp_connect_all(const hk_job_t *job, hk_stream_t *stream, tcp_place_t *places, int *fds)
{
    int listener = -1;
    for (int peer = 0; peer < job->size; peer++) {
        fds[peer] = -1;
    }
    hk_status_t status = exchange_places(job, stream->family->protocol, &listener, places);
    if (status == HK_OK) {
        status = meet(job, listener, places, fds);
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    for (int peer = 0; peer < job->size; peer++) {
        stream->out[peer].fd = stream->in[peer].fd = fds[peer];
    }
    return status;
}

/* The description includes the congestion control, which matters even on the loopback. bbr paces a connection by its
 * history, so large messages vary by 10-50 % between connections; with reno and cubic they do not. */
static void tcp_describe(const hk_job_t *job, hk_stream_t *stream, const tcp_place_t *mine)
{
    char control[16] = "";
    socklen_t len = sizeof control - 1;
    const int fd = job->size > 1 ? stream->out[job->rank == 0 ? 1 : 0].fd : -1;
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &len) != 0) {
        (void)snprintf(control, sizeof control, "unknown");
    }
    (void)snprintf(stream->library, sizeof stream->library, "%s over %s, TCP_NODELAY, congestion control %s, %s",
                   stream->family->carrier, job->remote != 0 ? mine->address.host : "loopback", control,
                   hk_stream_wait_name(stream->base.tp));
}

/* Allocates memory, on all ranks or on none. */
static hk_status_t open_room(const hk_transport_t *tp, const hk_job_t *job, hk_stream_t **stream_p,
                             tcp_place_t **places_p, int **fds_p)
{
    hk_stream_t *stream = NULL;
    int *fds = calloc((size_t)job->size, sizeof *fds);
    tcp_place_t *places = calloc((size_t)job->size, sizeof *places);
    hk_status_t mine = hk_stream_create(tp, job, &stream);
    if (mine == HK_OK && (fds == NULL || places == NULL)) {
        hk_log(job->rank, "%s: no memory for the addresses of %d ranks", tp->name, job->size);
        mine = HK_ERR_MEMORY;
    }
    const hk_status_t status = hk_control_agree(job->control, mine);
    if (mine != HK_OK || status != HK_OK) {
        free(places);
        free(fds);
        if (stream != NULL) {
            hk_stream_close(&stream->base);
        }
        return mine != HK_OK ? mine : status;
    }
    *stream_p = stream;
    *places_p = places;
    *fds_p = fds;
    return HK_OK;
}

hk_status_t hk_tcp_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    hk_stream_t *stream;
    tcp_place_t *places;
    int *fds;
    hk_status_t status = open_room(tp, job, &stream, &places, &fds);
    if (status != HK_OK) {
        return status;
    }
    status = tcp_connect_all(job, stream, places, fds);
    if (status == HK_OK) {
        tcp_describe(job, stream, &places[job->rank]);
        status = hk_stream_start(stream, job->oversubscribed != 0);
    }
    free(places);
    free(fds);
    if (status != HK_OK) {
        hk_stream_close(&stream->base);
        return status;
    }
    *ctx_p = &stream->base;
    return HK_OK;
}

/* What the kernel counts for all connections of this rank; 0 where it does not. A segment that was sent again for
 * nothing was late, not lost: its receiver had it twice. The places are those of Linux's struct tcp_info, of which the
 * C library declares only the beginning. */
bool hk_tcp_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    static const struct {
        const char *name;
        size_t place;
        bool is_short; /* of 16 bits, since Linux 6.7 */
    } counters[] = {{"segments", 136, false},
                    {"retransmits", 100, false},
                    {"needless_retransmits", 216, false},
                    {"timeouts", 240, true}};
    const hk_stream_t *stream = (const hk_stream_t *)ctx;
    if (i >= sizeof counters / sizeof counters[0]) {
        return false;
    }
    *counter_p = (hk_counter_t){.name = counters[i].name};
#ifdef __linux__
    for (int peer = 0; peer < ctx->size; peer++) {
        unsigned char info[256] = {0};
        socklen_t len = sizeof info;
        uint32_t count = 0;
        uint16_t few = 0;
        if (stream->out[peer].fd >= 0 && getsockopt(stream->out[peer].fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0) {
            memcpy(&count, info + counters[i].place, sizeof count);
            memcpy(&few, info + counters[i].place, sizeof few);
        }
        counter_p->value += counters[i].is_short ? few : count;
    }
#else
    (void)stream;
#endif
    return true;
}

static const hk_limit_t tcp_limits[] = {
    {"net.ipv4.tcp_rmem (default)", 0, "tcp_receive_buffer_bytes", "the receive buffer that a connection starts with",
     "sysctl net.ipv4.tcp_rmem", "https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html"},
    {0},
};

HK_STREAM_TABLES(tcp, "TCP connections", "send or recv", "unix", HK_CAP_HOSTS, .own = &hk_tcp_family,
                 .limits = tcp_limits, .open = hk_tcp_open, .counter = hk_tcp_counter);
