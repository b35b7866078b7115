/* The TCP address of a rank. */
#ifndef HK_ADDRESS_H
#define HK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "status.h"

enum { HK_TOKEN_BYTES = 16 };

/* What a rank needs to join over TCP. */
typedef struct hk_address {
    char host[64]; /* numeric */
    uint16_t port;
    int protocol;                        /* of the sockets: IPPROTO_MPTCP, or 0 for TCP */
    unsigned char token[HK_TOKEN_BYTES]; /* a connection without this token is refused */
} hk_address_t;

/* The same for system calls. */
typedef struct hk_place {
    struct sockaddr_storage at;
    socklen_t len;
} hk_place_t;

/* Fill bytes with random ones. Here and below, rank is only for the log. */
hk_status_t hk_draw_random(int rank, void *bytes, size_t size_bytes);

/* host: a numeric address or a name. */
hk_status_t hk_address_resolve(int rank, const char *host, uint16_t port, hk_place_t *place);

/* Listen on host (a numeric address, a name or a network interface; NULL: the loopback). *address_p gets the numeric
 * address and a new random token. The caller closes the socket. */
hk_status_t hk_address_listen(const char *host, int rank, int *listener_p, hk_address_t *address_p);

/* The same for another protocol than TCP. */
hk_status_t hk_address_listen_by(int protocol, const char *host, int rank, int *listener_p, hk_address_t *address_p);

/* The loopback's numeric address, on hosts without IPv4 its IPv6 one. HK_ERR_SYSTEM if that interface is down: a
 * connection would be tried until its limit. */
hk_status_t hk_address_of_loopback(int rank, char host[64]);

/* The numeric address of an interface of this host. */
hk_status_t hk_address_of_interface(const char *name, int rank, char host[64]);

/* The numeric address of this end of a TCP connection. Other hosts reach this host under it. */
hk_status_t hk_address_of_socket(int fd, int rank, char host[64]);

/* An address of this host that others can reach, IPv4 before IPv6: that of its name or, if /etc/hosts maps the name to
 * the loopback, that of the first interface that is up. False: there is none. */
bool hk_address_of_host(char *host_p, size_t room);

#endif
