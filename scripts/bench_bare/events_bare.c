/* The reference for hockney's streams: blocking reads and writes on pairs of unix sockets between forked and pinned
 * processes, without a pause between events.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o events_bare events_bare.c
 *     events_bare robpull|pushfarm|pairs BYTES EVENTS DELAY_US BUFFERS CPU...
 *
 * It prints ns per event on rank 0 for EVENTS, after EVENTS / 4 untimed ones. Each CPU gets one rank.
 *   robpull   rank 0 sends a request of 16 B to rank 1, receives the fragment, and is busy for DELAY_US; with two
 *             BUFFERS it sends the next request before that
 *   pushfarm  rank 0 notifies rank 1, which sends to rank 2, which reports to rank 0
 *   pairs     each rank of the first half sends to its partner in the second half, which answers the last message */
#include "bare.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { RANKS_MAX = 8, REQUEST_BYTES = 16 };

static int fd_of[RANKS_MAX][RANKS_MAX]; /* [rank][peer] */
static char *from, *to;

static void put(int fd, size_t size_bytes)
{
    send_all(fd, from, size_bytes);
}

static void get(int fd, size_t size_bytes)
{
    recv_all(fd, to, size_bytes);
}

static void robpull(int rank, size_t bytes, long events, double delay_ns, int buffers)
{
    if (rank == 1) {
        for (long i = 0; i < events; i++) {
            get(fd_of[1][0], REQUEST_BYTES);
            put(fd_of[1][0], bytes);
        }
        return;
    }
    if (buffers == 2) {
        put(fd_of[0][1], REQUEST_BYTES);
    }
    for (long i = 0; i < events; i++) {
        if (buffers == 1) {
            put(fd_of[0][1], REQUEST_BYTES);
        }
        get(fd_of[0][1], bytes);
        if (buffers == 2 && i + 1 < events) {
            put(fd_of[0][1], REQUEST_BYTES);
        }
        for (const double start_ns = now_ns(); now_ns() - start_ns < delay_ns;) {
        }
    }
}

static void pushfarm(int rank, size_t bytes, long events)
{
    for (long i = 0; i < events; i++) {
        if (rank == 0) {
            put(fd_of[0][1], bytes);
            get(fd_of[0][2], bytes);
        } else {
            get(fd_of[rank][rank - 1], bytes);
            put(fd_of[rank][(rank + 1) % 3], bytes);
        }
    }
}

static void pairs(int rank, int ranks, size_t bytes, long events)
{
    const int fd = fd_of[rank][(rank + ranks / 2) % ranks];
    for (long i = 0; i < events; i++) {
        rank < ranks / 2 ? put(fd, bytes) : get(fd, bytes);
    }
    rank < ranks / 2 ? get(fd, 1) : put(fd, 1);
}

static void run(const char *pattern, int rank, int ranks, char **argv, long events)
{
    const size_t bytes = strtoul(argv[2], NULL, 10);
    if (strcmp(pattern, "robpull") == 0) {
        robpull(rank, bytes, events, strtod(argv[4], NULL) * 1e3, atoi(argv[5]));
    } else if (strcmp(pattern, "pushfarm") == 0) {
        pushfarm(rank, bytes, events);
    } else {
        pairs(rank, ranks, bytes, events);
    }
}

int main(int argc, char **argv)
{
    check(argc >= 8 && argc - 6 <= RANKS_MAX, "usage: events_bare PATTERN BYTES EVENTS DELAY_US BUFFERS CPU...");
    const size_t room = (strtoul(argv[2], NULL, 10) / 4096 + 1) * 4096;
    const long events = atol(argv[3]);
    const int ranks = argc - 6;
    int rank = 0;
    for (int a = 0; a < ranks; a++) {
        for (int b = 0; b < a; b++) {
            int ends[2];
            check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
            fd_of[a][b] = ends[0], fd_of[b][a] = ends[1];
        }
    }
    for (int other = 1; other < ranks && rank == 0; other++) {
        rank = fork() == 0 ? other : 0;
    }
    pin(atoi(argv[6 + rank]));
    from = aligned_alloc(4096, room), to = aligned_alloc(4096, room);
    memset(from, 1, room);
    memset(to, 0, room);
    run(argv[1], rank, ranks, argv, events / 4);
    const double start_ns = now_ns();
    run(argv[1], rank, ranks, argv, events);
    const double each_ns = (now_ns() - start_ns) / (double)events;
    if (rank > 0) {
        _exit(0);
    }
    while (wait(NULL) > 0) {
    }
    printf("%.1f\n", each_ns);
    return 0;
}
