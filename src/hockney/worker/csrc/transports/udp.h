/* UDP: a connected pair of sockets for each two ranks, one datagram for each message, and nothing that repairs a loss.
 *
 * Messages between two ranks are numbered. A receive that sees a later number than its own knows that its message is
 * lost. Where nothing comes at all it asks the sender, every ASK_MS, how many were sent, and the answer comes in the
 * order of the data: so a message is counted as lost only when it really was sent, a slow sender is waited for, and no
 * receive waits for ever. Questions go to a thread of the sender's, the clerk, which sleeps until there is one; so the
 * answer doesn't depend on what the sender does meanwhile, not even on whether it is in this transport at all. */
#ifndef HK_UDP_H
#define HK_UDP_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "../transport.h"

/* Before each message, both in network byte order. */
typedef struct hk_udp_head {
    uint64_t key; /* the job's: a stranger's datagram is dropped */
    uint64_t seq; /* the message's number, or HK_UDP_MARK and how many were sent */
} hk_udp_head_t;

/* What a receive that waits asks the sender's clerk: has message seq been sent? */
typedef struct hk_udp_ask {
    uint64_t key, seq, rank;
} hk_udp_ask_t;

#define HK_UDP_MARK ((uint64_t)1 << 63)

enum {
    HK_UDP_DATAGRAM_BYTES = 65507, /* the longest over IPv4 */
    HK_UDP_MAX_BYTES = HK_UDP_DATAGRAM_BYTES - (int)sizeof(hk_udp_head_t),
    HK_UDP_ASK_MS = 10,
};

struct hk_udp_req;

typedef struct hk_udp_peer {
    int fd; /* connected; -1: this rank itself */
    struct sockaddr_storage clerk;
    socklen_t clerk_len;
    _Atomic uint64_t sent; /* messages sent; the clerk reads it */
    uint64_t taken;        /* receives begun: the number of the next message */
    uint64_t known;        /* messages below were sent; of those not taken, only the held one can still be had */
    bool is_held;          /* message known - 1 came before its turn and lies in held */
    size_t held_bytes;
    unsigned char *held; /* HK_UDP_MAX_BYTES */
} hk_udp_peer_t;

typedef struct hk_udp {
    hk_ctx_t base;
    ssize_t (*get)(int fd, struct msghdr *message); /* waits as the variant does, EAGAIN after HK_UDP_ASK_MS */
    uint64_t key;                                   /* in network byte order */
    hk_udp_peer_t *peer;                            /* [size] */
    struct hk_udp_req *head, *tail;                 /* receives that were started and not completed, oldest first */
    uint64_t lost, late;
    bool is_gone; /* an error was logged; what follows is its consequence */
    int clerk_fd;
    int stop[2]; /* a pipe: its end ends the clerk */
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
ssize_t hk_udp_get_yielding(int fd, struct msghdr *message); /* more ranks than CPUs */

#endif
