/* The reference for hockney's pipe, unix and tcp: a ping-pong of plain blocking calls between two
 * forked and pinned processes.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o stream_bare stream_bare.c
 *     stream_bare pipe|unix|tcp BYTES ROUNDS CPU0 CPU1
 *
 * It prints ns per half round trip: the median of BLOCKS equal parts of ROUNDS. */
#include "bare.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { BLOCKS = 20 };

int main(int argc, char **argv)
{
    check(argc == 6, "usage: stream_bare pipe|unix|tcp BYTES ROUNDS CPU0 CPU1");
    const size_t bytes = strtoul(argv[2], NULL, 10);
    const size_t rounds = strtoul(argv[3], NULL, 10) / BLOCKS + 1;
    int in[2], out[2], pair[2];
    if (strcmp(argv[1], "pipe") == 0) {
        check(pipe(pair) == 0, "pipe");
        in[1] = pair[0], out[0] = pair[1];
        check(pipe(pair) == 0, "pipe");
        in[0] = pair[0], out[1] = pair[1];
    } else {
        if (strcmp(argv[1], "unix") == 0) {
            check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        } else {
            connect_tcp(pair);
        }
        in[0] = out[0] = pair[0], in[1] = out[1] = pair[1];
    }
    const pid_t child = fork();
    const int rank = child == 0;
    pin(atoi(argv[4 + rank]));
    char *from = aligned_alloc(4096, (bytes / 4096 + 1) * 4096), *to = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    memset(from, 1, bytes);
    memset(to, 0, bytes);

    double block_ns[BLOCKS];
    for (int block = -1; block < BLOCKS; block++) { /* the first warms up */
        const double start_ns = now_ns();
        for (size_t i = 0; i < rounds; i++) {
            if (rank == 0) {
                send_all(out[0], from, bytes);
                recv_all(in[0], to, bytes);
            } else {
                recv_all(in[1], to, bytes);
                send_all(out[1], from, bytes);
            }
        }
        if (block >= 0) {
            block_ns[block] = (now_ns() - start_ns) / (double)rounds / 2;
        }
    }
    if (rank == 1) {
        _exit(0);
    }
    check(waitpid(child, NULL, 0) == child, "waitpid");
    printf("%.1f\n", median_of(block_ns, BLOCKS));
    return 0;
}
