/* UDP: a connected pair of sockets for each two ranks, one datagram per message, and no repair of losses.
 *
 * Messages between two ranks are numbered. A receive that sees a later number than expected knows that its message is
 * lost. If nothing arrives, it asks the sender every HK_UDP_ASK_MS how many messages it has sent, and the answer stays
 * in order with the data. So a message counts as lost only if it was sent, a slow sender is waited for, and no receive
 * waits for ever.
 *
 * A thread of the sender, the clerk, answers questions and sleeps between them. So the answer does not depend on
 * what the sender's rank does. */
#ifndef HK_UDP_H
#define HK_UDP_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "../transport.h"

/* The header of each message, in network byte order. */
typedef struct hk_udp_head {
    uint64_t key; /* identifies the job: other datagrams are dropped */
    uint64_t seq; /* the message's number, or HK_UDP_MARK and the number of sent messages */
} hk_udp_head_t;

/* The question of a waiting receive to the sender's clerk: has message seq been sent? */
typedef struct hk_udp_ask {
    uint64_t key, seq, rank;
} hk_udp_ask_t;

#define HK_UDP_MARK ((uint64_t)1 << 63)

enum {
    HK_UDP_DATAGRAM_BYTES = 65507, /* the largest over IPv4 */
    HK_UDP_MAX_BYTES = HK_UDP_DATAGRAM_BYTES - (int)sizeof(hk_udp_head_t),
    HK_UDP_ASK_MS = 10,
};

struct hk_udp_req;

typedef struct hk_udp_peer {
    int fd; /* connected; -1: for this rank itself */
    struct sockaddr_storage clerk;
    socklen_t clerk_len;
    _Atomic uint64_t sent; /* number of sent messages; the clerk reads it */
    uint64_t taken;        /* receives begun, and the number of the next message */
    uint64_t known;        /* messages below this were sent; of those not taken only the held one is available */
    bool is_held;          /* message known - 1 arrived early and is in held */
    size_t held_bytes;
    unsigned char *held; /* HK_UDP_MAX_BYTES */
} hk_udp_peer_t;

typedef struct hk_udp {
    hk_ctx_t base;
    ssize_t (*get)(int fd, struct msghdr *message); /* waits as the variant does; EAGAIN after HK_UDP_ASK_MS */
    uint64_t key;                                   /* in network byte order */
    hk_udp_peer_t *peer;                            /* [size] */
    struct hk_udp_req *head, *tail;                 /* open receives, oldest first */
    uint64_t lost, late;
    bool is_gone; /* an error has been logged; later ones are its consequences */
    int clerk_fd;
    int stop[2]; /* a pipe: closing it ends the clerk */
    bool has_clerk;
    pthread_t clerk;
    char library[192];
} hk_udp_t;

/* The variants. */
enum { HK_UDP_BLOCK, HK_UDP_SPIN };

hk_status_t hk_udp_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);
void hk_udp_close(hk_ctx_t *ctx);

/* The three ways to wait for a datagram. */
ssize_t hk_udp_get_blocking(int fd, struct msghdr *message);
ssize_t hk_udp_get_spinning(int fd, struct msghdr *message);
ssize_t hk_udp_get_yielding(int fd, struct msghdr *message); /* oversubscribed */

#endif
