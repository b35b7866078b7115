/* Where a rank can be reached over TCP. */
#ifndef HK_ADDRESS_H
#define HK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "status.h"

enum { HK_TOKEN_BYTES = 16 };

/* Everything a rank needs to join over TCP. */
typedef struct hk_address {
    char host[64]; /* numeric */
    uint16_t port;
    unsigned char token[HK_TOKEN_BYTES]; /* a stranger who doesn't know it is refused */
} hk_address_t;

/* The same, as the system's calls take it. */
typedef struct hk_place {
    struct sockaddr_storage at;
    socklen_t len;
} hk_place_t;

/* host: a numeric address or a name. rank only names the caller in the log, here and below. */
hk_status_t hk_address_resolve(int rank, const char *host, uint16_t port, hk_place_t *place);

/* A socket listening on host (a numeric address, a name, or a network interface; the loopback if NULL), its numeric
 * address and a fresh random token in *address_p. The caller closes it. */
hk_status_t hk_address_listen(const char *host, int rank, int *listener_p, hk_address_t *address_p);

/* The numeric address of this end of a TCP connection: one under which other hosts reach this one. */
hk_status_t hk_address_of_socket(int fd, int rank, char host[64]);

/* An IPv4 address of this host that others can reach: its name's, or where the name leads to the loopback (as
 * /etc/hosts often has it) that of the first interface that is up. False: it has none. */
bool hk_address_of_host(char *host_p, size_t room);

#endif
