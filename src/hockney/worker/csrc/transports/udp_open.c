/* cold */
/* UDP: joining and leaving a job, and the clerk, which answers questions at any time. */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../control.h"
#include "../rendezvous.h"
#include "udp.h"

/* Sent to all ranks. Rank 0's key is the job's. */
typedef struct udp_place {
    hk_status_t status;
    uint64_t key;
    uint16_t clerk;
    char host[64];
} udp_place_t;

/* Each rank has a socket for each peer. Rank 0 hands out their ports; no other rank learns all of them. */
typedef struct room {
    udp_place_t *places; /* [size] */
    uint16_t *mine;      /* [peer]: this rank's sockets, then the peers' sockets for this rank */
    uint16_t *ports;     /* rank 0: [rank * size + peer]; otherwise NULL */
} room_t;

/* ---- the clerk --------------------------------------------------------------------------------------------------- */

/* The answer takes the same path as the data, so it arrives after the messages it counts. */
static void answer_question(hk_udp_t *udp, const hk_udp_ask_t *question)
{
    const uint64_t rank = be64toh(question->rank);
    if (question->key != udp->key || rank >= (uint64_t)udp->base.size || udp->peer[rank].fd < 0) {
        return;
    }
    hk_udp_peer_t *peer = &udp->peer[rank];
    const uint64_t sent = atomic_load_explicit(&peer->sent, memory_order_acquire);
    if (sent > be64toh(question->seq)) {
        const hk_udp_head_t head = {udp->key, htobe64(sent | HK_UDP_MARK)};
        const ssize_t count = send(peer->fd, &head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)count; /* if lost, the question is repeated */
    }
}

static void *be_clerk(void *argument)
{
    hk_udp_t *udp = argument;
    for (;;) {
        struct pollfd ready[] = {{.fd = udp->clerk_fd, .events = POLLIN}, {.fd = udp->stop[0], .events = POLLIN}};
        (void)poll(ready, 2, -1);
        if (ready[1].revents != 0) {
            return NULL;
        }
        hk_udp_ask_t question;
        if (recv(udp->clerk_fd, &question, sizeof question, MSG_DONTWAIT) == (ssize_t)sizeof question) {
            answer_question(udp, &question);
        }
    }
}

static hk_status_t start_clerk(hk_udp_t *udp)
{
    if (pipe(udp->stop) != 0) {
        udp->stop[0] = udp->stop[1] = -1;
        return hk_fail(HK_ERR_SYSTEM, udp->base.rank, "%s: no pipe: %s", udp->base.tp->name, strerror(errno));
    }
    const int reason = pthread_create(&udp->clerk, NULL, be_clerk, udp);
    if (reason != 0) {
        return hk_fail(HK_ERR_SYSTEM, udp->base.rank, "%s: no thread to answer questions: %s", udp->base.tp->name,
                       strerror(reason));
    }
    udp->has_clerk = true;
    return HK_OK;
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

static void close_one(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

void hk_udp_close(hk_ctx_t *ctx)
{
    hk_udp_t *udp = (hk_udp_t *)ctx;
    close_one(udp->stop[1]);
    if (udp->has_clerk) {
        (void)pthread_join(udp->clerk, NULL);
    }
    close_one(udp->stop[0]);
    close_one(udp->clerk_fd);
    for (int peer = 0; udp->peer != NULL && peer < udp->base.size; peer++) {
        close_one(udp->peer[peer].fd);
        free(udp->peer[peer].held);
    }
    free(udp->peer);
    free(udp);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static bool find(const char *host, uint16_t port, struct sockaddr_storage *at_p, socklen_t *len_p)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host, service, &hints, &list) != 0) {
        return false;
    }
    memset(at_p, 0, sizeof *at_p);
    memcpy(at_p, list->ai_addr, list->ai_addrlen);
    *len_p = list->ai_addrlen;
    freeaddrinfo(list);
    return true;
}

/* Bind a socket to a port that the system chooses; -1 with errno. Its receives time out when it is time to ask. */
static int bind_one(const char *host, uint16_t *port_p)
{
    struct sockaddr_storage at;
    socklen_t len;
    if (!find(host, 0, &at, &len)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    const int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_usec = HK_UDP_ASK_MS * 1000};
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        bind(fd, (const struct sockaddr *)&at, len) == 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0) {
        *port_p = at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)(const void *)&at)->sin6_port
                                           : ((const struct sockaddr_in *)(const void *)&at)->sin_port;
        *port_p = be16toh(*port_p);
        return fd;
    }
    const int reason = errno;
    close_one(fd);
    errno = reason;
    return -1;
}

static hk_status_t bind_all(const hk_job_t *job, hk_udp_t *udp, udp_place_t *mine, uint16_t *ports)
{
    const bool is_between = job->remote != 0 && job->size > 1;
    HK_TRY(is_between ? hk_control_address(job->control, job->interface, mine->host)
                      : hk_address_of_loopback(job->rank, mine->host));
    HK_TRY(hk_draw_random(job->rank, &mine->key, sizeof mine->key));
    for (int peer = 0; peer < job->size; peer++) {
        const bool is_clerk = peer == job->rank;
        int *fd_p = is_clerk ? &udp->clerk_fd : &udp->peer[peer].fd;
        *fd_p = bind_one(mine->host, is_clerk ? &mine->clerk : &ports[peer]);
        if (*fd_p < 0) {
            const bool too_many = errno == EMFILE || errno == ENFILE;
            return hk_fail(too_many ? HK_ERR_UNSUPPORTED : HK_ERR_SYSTEM, job->rank,
                           "%s: cannot open a socket at %s: %s", udp->base.tp->name, mine->host, strerror(errno));
        }
    }
    return HK_OK;
}

static hk_status_t connect_all(const hk_job_t *job, hk_udp_t *udp, const room_t *room)
{
    for (int peer = 0; peer < job->size; peer++) {
        hk_udp_peer_t *to = &udp->peer[peer];
        const udp_place_t *place = &room->places[peer];
        struct sockaddr_storage at;
        socklen_t len;
        if (peer == job->rank) {
            continue;
        }
        if (!find(place->host, room->mine[peer], &at, &len) ||
            !find(place->host, place->clerk, &to->clerk, &to->clerk_len) ||
            connect(to->fd, (const struct sockaddr *)&at, len) != 0) {
            return hk_fail(HK_ERR_SYSTEM, job->rank, "%s: no way to rank %d at %s: %s", udp->base.tp->name, peer,
                           place->host, strerror(errno));
        }
    }
    return HK_OK;
}

/* Replaces this rank's ports in `mine` by those of the peers' sockets for this rank. */
static hk_status_t swap_ports(const hk_job_t *job, const room_t *room)
{
    const size_t size = (size_t)job->size, row_bytes = size * sizeof *room->mine;
    HK_TRY(hk_control_gather(job->control, room->mine, row_bytes, room->ports));
    for (size_t rank = 0; job->rank == 0 && rank < size; rank++) {
        for (size_t peer = 0; peer < rank; peer++) {
            const uint16_t port = room->ports[rank * size + peer];
            room->ports[rank * size + peer] = room->ports[peer * size + rank];
            room->ports[peer * size + rank] = port;
        }
    }
    return hk_control_scatter(job->control, room->ports, row_bytes, room->mine);
}

/* No rank sends before all are connected. */
static hk_status_t join(const hk_job_t *job, hk_udp_t *udp, const room_t *room)
{
    udp_place_t mine;
    memset(&mine, 0, sizeof mine);
    mine.status = bind_all(job, udp, &mine, room->mine);
    hk_status_t status = hk_control_allgather(job->control, &mine, sizeof mine, room->places);
    for (int peer = 0; status == HK_OK && peer < job->size; peer++) {
        status = room->places[peer].status;
    }
    if (status != HK_OK) {
        return status; /* the same on all ranks */
    }
    udp->key = room->places[0].key;
    status = swap_ports(job, room);
    if (status == HK_OK) {
        status = connect_all(job, udp, room);
        status = status == HK_OK ? start_clerk(udp) : status;
        status = hk_control_agree(job->control, status);
    }
    return status;
}

/* The receive buffer is part of the description, because it determines the losses. */
static void describe(const hk_job_t *job, hk_udp_t *udp, const udp_place_t *mine)
{
    int buffer_bytes = 0;
    socklen_t len = sizeof buffer_bytes;
    (void)getsockopt(udp->clerk_fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, &len);
    (void)snprintf(udp->library, sizeof udp->library, "UDP over %s, receive buffers of %d KiB, %s",
                   job->remote != 0 ? mine->host : "loopback", buffer_bytes / 1024,
                   udp->base.tp->variant == HK_UDP_SPIN ? "non-blocking, spinning" : "blocking");
}

static hk_status_t create(const hk_job_t *job, const hk_transport_t *tp, hk_udp_t **udp_p)
{
    hk_udp_t *udp = calloc(1, sizeof *udp);
    if (udp == NULL) {
        return HK_ERR_MEMORY;
    }
    udp->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    udp->clerk_fd = udp->stop[0] = udp->stop[1] = -1;
    udp->peer = calloc((size_t)job->size, sizeof *udp->peer);
    bool has_all = udp->peer != NULL;
    for (int peer = 0; udp->peer != NULL && peer < job->size; peer++) {
        udp->peer[peer].fd = -1;
        udp->peer[peer].held = peer == job->rank ? NULL : malloc(HK_UDP_MAX_BYTES);
        has_all = has_all && (peer == job->rank || udp->peer[peer].held != NULL);
    }
    *udp_p = udp;
    return has_all ? HK_OK : HK_ERR_MEMORY;
}

hk_status_t hk_udp_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    const size_t size = (size_t)job->size;
    room_t room = {calloc(size, sizeof *room.places), calloc(size, sizeof *room.mine),
                   job->rank == 0 ? calloc(size * size, sizeof *room.ports) : NULL};
    hk_udp_t *udp = NULL;
    const hk_status_t created = create(job, tp, &udp);
    const bool has_room = created == HK_OK && udp != NULL && room.places != NULL && room.mine != NULL &&
                          (job->rank != 0 || room.ports != NULL);
    if (!has_room) {
        hk_log(job->rank, "%s: no memory for %d connections", tp->name, job->size);
    }
    hk_status_t status = hk_control_agree(job->control, has_room ? HK_OK : HK_ERR_MEMORY);
    if (has_room && status == HK_OK) {
        status = join(job, udp, &room);
    }
    if (has_room && status == HK_OK) {
        udp->get = tp->variant == HK_UDP_BLOCK ? hk_udp_get_blocking : hk_udp_get_spinning;
        if (tp->variant == HK_UDP_SPIN && job->oversubscribed != 0) {
            udp->get = hk_udp_get_yielding;
        }
        describe(job, udp, &room.places[job->rank]);
        *ctx_p = &udp->base;
    } else if (udp != NULL) {
        hk_udp_close(&udp->base);
    }
    free(room.ports);
    free(room.mine);
    free(room.places);
    return status;
}
