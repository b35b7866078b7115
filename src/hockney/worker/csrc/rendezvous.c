/* cold */
#include "rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"

/* The hello: magic, rank and size in network byte order, then the token. */
enum { MAGIC = 0x686b3031 /* "hk01" */, WORD_BYTES = 4, HELLO_BYTES = 3 * WORD_BYTES + HK_TOKEN_BYTES };

/* The reply. No reply and a closed connection mean "try again". */
enum { WELCOME = 'w', WRONG_TOKEN = 't', WRONG_RANK = 'r' };

enum {
    GUESTS_MAX = 32,       /* connections without a complete hello; more wait in the kernel */
    GUEST_LIMIT_MS = 2000, /* time for the hello: long for a rank on an oversubscribed machine */
    PAUSE_MS = 20,         /* between two attempts to connect */
};

typedef struct guest {
    int fd;
    int64_t until_ms;
    size_t got_bytes;
    unsigned char hello[HELLO_BYTES];
} guest_t;

/* One call of accept. Guests are in the order of arrival. */
typedef struct reception {
    const unsigned char *token;
    int rank, first, size; /* the accepting rank, and the ranks it expects */
    int *fds;
    int missing;
    unsigned strangers;
    nfds_t count;
    guest_t guests[GUESTS_MAX];
} reception_t;

static int wait_until(struct pollfd *ready, nfds_t count, int64_t until_ms)
{
    const int64_t left_ms = until_ms - hk_now_ms();
    return poll(ready, count, left_ms <= 0 ? 0 : (int)(left_ms < 1000 ? left_ms : 1000));
}

/* Constant time: the duration does not reveal where two tokens differ. */
static bool same_token(const unsigned char *a, const unsigned char *b)
{
    volatile unsigned char differ = 0;
    for (size_t i = 0; i < HK_TOKEN_BYTES; i++) {
        differ = (unsigned char)(differ | (a[i] ^ b[i]));
    }
    return differ == 0;
}

/* ---- both sides -------------------------------------------------------------------------------------------------- */

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/* Set up a connection: blocking, without delay, and with keep-alive, which detects a lost host within minutes. MPTCP
 * has it since Linux 6.10. */
static bool settle(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0 && set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
           set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
           ((set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60) && set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 20) &&
             set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3)) ||
            errno == EOPNOTSUPP);
}

static void put_word(unsigned char *at, uint32_t word)
{
    const uint32_t ordered = htonl(word);
    memcpy(at, &ordered, WORD_BYTES);
}

static uint32_t get_word(const unsigned char *at)
{
    uint32_t ordered;
    memcpy(&ordered, at, WORD_BYTES);
    return ntohl(ordered);
}

/* ---- accepting --------------------------------------------------------------------------------------------------- */

static void answer(int fd, unsigned char word)
{
    (void)send(fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Handles a complete hello. True if the guest became a rank's connection; otherwise the caller closes it. */
static bool judge(reception_t *at, const guest_t *guest)
{
    const unsigned char *hello = guest->hello;
    if (get_word(hello) != MAGIC || !same_token(hello + 3 * WORD_BYTES, at->token)) {
        at->strangers++;
        answer(guest->fd, WRONG_TOKEN);
        return false;
    }
    const uint32_t rank = get_word(hello + WORD_BYTES), size = get_word(hello + 2 * WORD_BYTES);
    const bool is_awaited = size == (uint32_t)at->size && rank >= (uint32_t)at->first && rank < size;
    if (!is_awaited || at->fds[rank] >= 0) {
        hk_log(at->rank, "rendezvous: refused rank %d of %d: %s", (int)rank, (int)size,
               is_awaited ? "it has already joined" : "not of this job");
        answer(guest->fd, WRONG_RANK);
        return false;
    }
    if (!settle(guest->fd)) {
        return false;
    }
    answer(guest->fd, WELCOME);
    at->fds[rank] = guest->fd;
    at->missing--;
    return true;
}

/* False: the guest is finished, as a rank or refused. */
static bool still_awaited(reception_t *at, guest_t *guest)
{
    const ssize_t count = recv(guest->fd, guest->hello + guest->got_bytes, HELLO_BYTES - guest->got_bytes, 0);
    if (count > 0) {
        guest->got_bytes += (size_t)count;
        if (guest->got_bytes < HELLO_BYTES) {
            return true;
        }
        if (judge(at, guest)) {
            return false;
        }
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        if (hk_now_ms() < guest->until_ms) {
            return true;
        }
        at->strangers++;
    } else {
        at->strangers++;
    }
    (void)close(guest->fd);
    return false;
}

static void read_hellos(reception_t *at)
{
    nfds_t kept = 0;
    for (nfds_t i = 0; i < at->count; i++) {
        if (still_awaited(at, &at->guests[i])) {
            at->guests[kept++] = at->guests[i];
        }
    }
    at->count = kept;
}

static hk_status_t let_in(reception_t *at, int listener)
{
    while (at->count < GUESTS_MAX) {
        const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            /* Other errors of accept concern one connection or are temporary. */
            if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EMFILE || errno == ENFILE) {
                hk_log(at->rank, "rendezvous: cannot accept connections: %s", strerror(errno));
                return HK_ERR_SYSTEM;
            }
            return HK_OK;
        }
        at->guests[at->count++] = (guest_t){.fd = fd, .until_ms = hk_now_ms() + GUEST_LIMIT_MS};
    }
    return HK_OK;
}

static hk_status_t receive_all(reception_t *at, int listener, int64_t until_ms)
{
    while (at->missing > 0) {
        if (hk_now_ms() >= until_ms) {
            int rank = at->first;
            while (at->fds[rank] >= 0) {
                rank++;
            }
            hk_log(at->rank, "rendezvous: %d of %d ranks did not join in time, including rank %d", at->missing,
                   at->size - at->first, rank);
            return HK_ERR_PEER;
        }
        struct pollfd ready[GUESTS_MAX + 1];
        int64_t wake_ms = until_ms;
        for (nfds_t i = 0; i < at->count; i++) {
            ready[i] = (struct pollfd){.fd = at->guests[i].fd, .events = POLLIN};
            wake_ms = at->guests[i].until_ms < wake_ms ? at->guests[i].until_ms : wake_ms;
        }
        const bool has_room = at->count < GUESTS_MAX;
        ready[at->count] = (struct pollfd){.fd = has_room ? listener : -1, .events = POLLIN};
        (void)wait_until(ready, at->count + 1, wake_ms);
        read_hellos(at);
        HK_TRY(at->missing > 0 ? let_in(at, listener) : HK_OK);
    }
    return HK_OK;
}

hk_status_t hk_rendezvous_accept(int listener, const hk_address_t *address, int rank, int first, int size, int limit_s,
                                 int *fds, unsigned *strangers_p)
{
    reception_t at = {.token = address->token, .rank = rank, .first = first, .size = size, .fds = fds};
    for (int peer = first; peer < size; peer++) {
        fds[peer] = -1;
        at.missing++;
    }
    const hk_status_t status = receive_all(&at, listener, hk_now_ms() + (int64_t)limit_s * 1000);
    for (nfds_t i = 0; i < at.count; i++) {
        (void)close(at.guests[i].fd);
    }
    *strangers_p += at.strangers;
    for (int peer = first; status != HK_OK && peer < size; peer++) {
        if (fds[peer] >= 0) {
            (void)close(fds[peer]);
            fds[peer] = -1;
        }
    }
    return status;
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

/* One attempt, from the address `from` if that has a length; -1 with errno. Nonblocking, because the kernel would try
 * an absent host for minutes. */
static int connect_once(const hk_place_t *place, const hk_place_t *from, int protocol, int64_t until_ms)
{
    const int fd = socket(place->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd < 0) {
        return -1;
    }
    int reason = 0;
    if ((from->len > 0 && bind(fd, (const struct sockaddr *)&from->at, from->len) != 0) ||
        connect(fd, (const struct sockaddr *)&place->at, place->len) != 0) {
        reason = errno;
    }
    if (reason == EINPROGRESS || reason == EINTR) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        socklen_t len = sizeof reason;
        while (wait_until(&ready, 1, until_ms) <= 0 && hk_now_ms() < until_ms) {
        }
        if (ready.revents == 0) {
            reason = ETIMEDOUT;
        } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &len) != 0) {
            reason = errno;
        }
    }
    if (reason != 0) {
        (void)close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

/* Sends the hello and waits for the reply; 0 if there is none. */
static unsigned char introduce(int fd, const unsigned char *hello, int64_t until_ms)
{
    if (send(fd, hello, HELLO_BYTES, MSG_NOSIGNAL) != HELLO_BYTES) {
        return 0;
    }
    while (hk_now_ms() < until_ms) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        (void)wait_until(&ready, 1, until_ms);
        unsigned char word = 0;
        const ssize_t count = recv(fd, &word, 1, 0);
        if (count == 1) {
            return word;
        }
        if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            return 0;
        }
    }
    errno = ETIMEDOUT;
    return 0;
}

static bool may_pass(int reason)
{
    return reason != EACCES && reason != EPERM && reason != EAFNOSUPPORT && reason != EMFILE && reason != ENFILE &&
           reason != EINVAL && reason != EPROTONOSUPPORT && reason != ENOPROTOOPT;
}

hk_status_t hk_rendezvous_connect(const hk_address_t *address, const char *from, int rank, int size, int limit_s,
                                  int *fd_p)
{
    hk_place_t place, mine;
    memset(&place, 0, sizeof place);
    memset(&mine, 0, sizeof mine);
    HK_TRY(hk_address_resolve(rank, address->host, address->port, &place));
    HK_TRY(from == NULL ? HK_OK : hk_address_resolve(rank, from, 0, &mine));
    unsigned char hello[HELLO_BYTES];
    put_word(hello, MAGIC);
    put_word(hello + WORD_BYTES, (uint32_t)rank);
    put_word(hello + 2 * WORD_BYTES, (uint32_t)size);
    memcpy(hello + 3 * WORD_BYTES, address->token, HK_TOKEN_BYTES);

    const int64_t until_ms = hk_now_ms() + (int64_t)limit_s * 1000;
    int reason;
    do {
        const int fd = connect_once(&place, &mine, address->protocol, until_ms);
        unsigned char word = 0;
        reason = errno;
        if (fd >= 0) {
            word = introduce(fd, hello, until_ms);
            reason = ECONNRESET;
            if (word == WELCOME && settle(fd)) {
                *fd_p = fd;
                return HK_OK;
            }
            (void)close(fd);
        }
        if (word == WRONG_TOKEN || word == WRONG_RANK) {
            hk_log(rank, "rendezvous: %s:%u refused rank %d of %d: %s", address->host, (unsigned)address->port, rank,
                   size, word == WRONG_TOKEN ? "wrong token" : "not of this job, or already joined");
            return HK_ERR_PEER;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    } while (may_pass(reason) && hk_now_ms() < until_ms);
    char here[256] = "";
    (void)gethostname(here, sizeof here - 1);
    hk_log(rank, "rendezvous: %s cannot reach %s:%u: %s (a firewall, or a route?)", here, address->host,
           (unsigned)address->port, strerror(reason));
    return HK_ERR_PEER;
}
