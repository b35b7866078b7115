/* cold */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "io.h"

hk_status_t hk_draw_random(int rank, void *bytes, size_t size_bytes)
{
    ssize_t got_bytes;
    do {
        got_bytes = getrandom(bytes, size_bytes, 0);
    } while (got_bytes < 0 && errno == EINTR);
    if (got_bytes == (ssize_t)size_bytes) {
        return HK_OK;
    }
    /* Kernels and containers may have no getrandom. */
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const hk_status_t status = fd < 0 ? HK_ERR_SYSTEM : hk_read_all(fd, bytes, size_bytes);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (status != HK_OK) {
        hk_log(rank, "rendezvous: cannot get random bytes: %s", strerror(errno));
    }
    return status == HK_OK ? HK_OK : HK_ERR_SYSTEM;
}

/* True if packets can leave for this address: the kernel finds a way to it. Sends none. */
static bool is_reachable(const char *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *at = NULL;
    bool ok = false;
    if (getaddrinfo(host, "9", &hints, &at) == 0) {
        const int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ok = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        freeaddrinfo(at);
    }
    return ok;
}

hk_status_t hk_address_of_loopback(int rank, char host[64])
{
    static const char *const known[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (is_reachable(known[i])) {
            (void)snprintf(host, 64, "%s", known[i]);
            return HK_OK;
        }
    }
    return hk_fail(HK_ERR_SYSTEM, rank,
                   "the loopback interface is down, so ranks cannot connect (as root: ip link set lo up)");
}

/* True if name is a network interface with an address. IPv4 has priority: a link-local IPv6 address needs a scope,
 * which a numeric address in a job's description cannot carry to another host. */
static bool find_interface(const char *name, hk_place_t *place)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0) {
        return false;
    }
    place->len = 0;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || strcmp(at->ifa_name, name) != 0) {
            continue;
        }
        if (at->ifa_addr->sa_family == AF_INET) {
            place->len = sizeof(struct sockaddr_in);
            memcpy(&place->at, at->ifa_addr, place->len);
            break;
        }
        if (at->ifa_addr->sa_family == AF_INET6 && place->len == 0) {
            const struct sockaddr_in6 *six = (const void *)at->ifa_addr;
            if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
                place->len = sizeof *six;
                memcpy(&place->at, six, place->len);
            }
        }
    }
    freeifaddrs(list);
    return place->len > 0;
}

hk_status_t hk_address_resolve(int rank, const char *host, uint16_t port, hk_place_t *place)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const int code = getaddrinfo(host, service, &hints, &list);
    if (code != 0) {
        hk_log(rank, "rendezvous: '%s' is not a known address, name or interface: %s", host, gai_strerror(code));
        return HK_ERR_ARGUMENT;
    }
    place->len = list->ai_addrlen;
    memcpy(&place->at, list->ai_addr, place->len);
    freeaddrinfo(list);
    return HK_OK;
}

static bool is_wildcard(const hk_place_t *place)
{
    if (place->at.ss_family == AF_INET6) {
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)&place->at)->sin6_addr);
    }
    return ((const struct sockaddr_in *)(const void *)&place->at)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Nonblocking, because a guest may leave between poll and accept. */
static int listen_at(const hk_place_t *place, int protocol)
{
    const int fd = socket(place->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    const int yes = 1;
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (const struct sockaddr *)&place->at, place->len) == 0 && listen(fd, SOMAXCONN) == 0) {
        return fd;
    }
    if (fd >= 0) {
        const int reason = errno;
        (void)close(fd);
        errno = reason;
    }
    return -1;
}

static bool name_place(const hk_place_t *place, hk_address_t *address)
{
    char service[8];
    if (getnameinfo((const struct sockaddr *)&place->at, place->len, address->host, sizeof address->host, service,
                    sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return false;
    }
    address->port = (uint16_t)strtoul(service, NULL, 10);
    return true;
}

static bool name_socket(int fd, hk_address_t *address)
{
    hk_place_t place = {.len = sizeof place.at};
    return getsockname(fd, (struct sockaddr *)&place.at, &place.len) == 0 && name_place(&place, address);
}

hk_status_t hk_address_listen(const char *host, int rank, int *listener_p, hk_address_t *address_p)
{
    return hk_address_listen_by(0, host, rank, listener_p, address_p);
}

hk_status_t hk_address_listen_by(int protocol, const char *host, int rank, int *listener_p, hk_address_t *address_p)
{
    char loopback[64] = "";
    HK_TRY(host == NULL ? hk_address_of_loopback(rank, loopback) : HK_OK);
    const char *where = host == NULL ? loopback : host;
    hk_place_t place;
    memset(&place, 0, sizeof place);
    if (host == NULL || !find_interface(host, &place)) {
        const hk_status_t status = hk_address_resolve(rank, where, 0, &place);
        if (status != HK_OK) {
            return status;
        }
    }
    if (is_wildcard(&place)) {
        hk_log(rank, "rendezvous: '%s' means all addresses; give one that the other hosts can reach", where);
        return HK_ERR_ARGUMENT;
    }
    hk_address_t address;
    memset(&address, 0, sizeof address);
    const hk_status_t status = hk_draw_random(rank, address.token, sizeof address.token);
    if (status != HK_OK) {
        return status;
    }
    const int fd = listen_at(&place, protocol);
    if (fd < 0 || !name_socket(fd, &address)) {
        hk_log(rank, "rendezvous: cannot listen on %s: %s", where, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return HK_ERR_SYSTEM;
    }
    *listener_p = fd;
    address.protocol = protocol;
    *address_p = address;
    return HK_OK;
}

hk_status_t hk_address_of_interface(const char *name, int rank, char host[64])
{
    hk_place_t place;
    hk_address_t address;
    memset(&place, 0, sizeof place);
    if (!find_interface(name, &place) || !name_place(&place, &address)) {
        return hk_fail(HK_ERR_ARGUMENT, rank, "rendezvous: this host has no interface '%s' with an address", name);
    }
    memcpy(host, address.host, sizeof address.host);
    return HK_OK;
}

hk_status_t hk_address_of_socket(int fd, int rank, char host[64])
{
    hk_address_t address;
    if (!name_socket(fd, &address)) {
        hk_log(rank, "rendezvous: cannot get this host's address: %s", strerror(errno));
        return HK_ERR_SYSTEM;
    }
    memcpy(host, address.host, sizeof address.host);
    return HK_OK;
}

static bool is_of_others(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 != 127;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(six) && !IN6_IS_ADDR_LINKLOCAL(six);
}

/* The address as text, if others can reach it and it is of that family. */
static bool name_if(const struct sockaddr *address, int family, char *host_p, size_t room)
{
    const socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return address != NULL && address->sa_family == family && is_of_others(address) &&
           getnameinfo(address, len, host_p, (socklen_t)room, NULL, 0, NI_NUMERICHOST) == 0;
}

static bool find_of_family(int family, char *host_p, size_t room)
{
    char name[256] = "";
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    bool ok = false;
    if (gethostname(name, sizeof name - 1) == 0 && getaddrinfo(name, NULL, &hints, &found) == 0) {
        for (const struct addrinfo *at = found; at != NULL && !ok; at = at->ai_next) {
            ok = name_if(at->ai_addr, family, host_p, room);
        }
        freeaddrinfo(found);
    }
    struct ifaddrs *interfaces = NULL;
    if (ok || getifaddrs(&interfaces) != 0) {
        return ok;
    }
    for (const struct ifaddrs *at = interfaces; at != NULL && !ok; at = at->ifa_next) {
        ok = (at->ifa_flags & IFF_UP) != 0 && name_if(at->ifa_addr, family, host_p, room);
    }
    freeifaddrs(interfaces);
    return ok;
}

bool hk_address_of_host(char *host_p, size_t room)
{
    return find_of_family(AF_INET, host_p, room) || find_of_family(AF_INET6, host_p, room);
}
