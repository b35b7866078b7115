/* The reference for the layers of PVM: a ping-pong of plain calls between two forked and pinned tasks of a new daemon.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o pvm_bare pvm_bare.c -lpvm3
 *     PVM_TMP=FOLDER pvm_bare psend|inplace|raw|default direct|daemon CPU,CPU SAMPLES BYTES:BATCH ...
 *
 * Prints a line for each size: half a round trip in ns, the fastest of SAMPLES batches after an untimed one. */
#include "bare.h"

#include <pvm3.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { TAG = 1, WORD_BYTES = 4, ROOM_BYTES = (4 << 20) + 1, PSEND = -1 };

static void send_to(int peer, int style, char *buf, int bytes)
{
    if (style == PSEND) {
        check(pvm_psend(peer, TAG, buf, bytes, PVM_BYTE) >= 0, "pvm_psend");
        return;
    }
    const int words = style == PvmDataDefault ? bytes / WORD_BYTES : 0; /* XDR encodes integers, but not bytes */
    check(pvm_initsend(style) >= 0, "pvm_initsend");
    check(words == 0 || pvm_pkint((int *)(void *)buf, words, 1) >= 0, "pvm_pkint");
    check(pvm_pkbyte(buf + words * WORD_BYTES, bytes - words * WORD_BYTES, 1) >= 0, "pvm_pkbyte");
    check(pvm_send(peer, TAG) >= 0, "pvm_send");
}

static void recv_from(int peer, int style, char *buf, int bytes)
{
    if (style == PSEND) {
        check(pvm_precv(peer, TAG, buf, bytes, PVM_BYTE, NULL, NULL, NULL) >= 0, "pvm_precv");
        return;
    }
    const int words = style == PvmDataDefault ? bytes / WORD_BYTES : 0;
    check(pvm_recv(peer, TAG) >= 0, "pvm_recv");
    check(words == 0 || pvm_upkint((int *)(void *)buf, words, 1) >= 0, "pvm_upkint");
    check(pvm_upkbyte(buf + words * WORD_BYTES, bytes - words * WORD_BYTES, 1) >= 0, "pvm_upkbyte");
}

static void pingpong(int rank, int peer, int style, char *out, char *in, int bytes, long reps)
{
    for (long i = 0; i < 2 * reps; i++) {
        (i + rank) % 2 == 0 ? send_to(peer, style, out, bytes) : recv_from(peer, style, in, bytes);
    }
}

/* One task: `ends` lead to the other one until both are known to PVM. */
static void play(int rank, const int ends[2], char **argv)
{
    static char out[ROOM_BYTES], in[ROOM_BYTES];
    const int samples = atoi(argv[4]), mine = pvm_mytid();
    const int style = argv[1][0] == 'p'   ? PSEND
                      : argv[1][0] == 'i' ? PvmDataInPlace
                      : argv[1][0] == 'r' ? PvmDataRaw
                                          : PvmDataDefault;
    int cpu[2], peer = 0;
    check(mine >= 0 && samples > 0, "pvm_mytid");
    check(sscanf(argv[3], "%d,%d", &cpu[0], &cpu[1]) == 2, "two CPUs");
    pin(cpu[rank]);
    check(pvm_setopt(PvmRoute, strcmp(argv[2], "direct") == 0 ? PvmRouteDirect : PvmDontRoute) >= 0, "pvm_setopt");
    send_all(ends[rank], (const char *)&mine, sizeof mine);
    recv_all(ends[rank], (char *)&peer, sizeof peer);
    memset(out, 1, sizeof out);
    memset(in, 0, sizeof in);
    for (char **size = argv + 5; *size != NULL; size++) {
        int bytes = 0;
        long batch = 0;
        check(sscanf(*size, "%d:%ld", &bytes, &batch) == 2 && bytes < ROOM_BYTES && batch > 0, "not BYTES:BATCH");
        double least_ns = 0;
        pingpong(rank, peer, style, out, in, bytes, batch);
        for (int i = 0; i < samples; i++) {
            const double start_ns = now_ns();
            pingpong(rank, peer, style, out, in, bytes, batch);
            const double half_ns = (now_ns() - start_ns) / (2.0 * (double)batch);
            least_ns = i == 0 || half_ns < least_ns ? half_ns : least_ns;
        }
        if (rank == 0) {
            printf("%.3f\n", least_ns);
        }
    }
    fflush(stdout);
    (void)pvm_exit();
    exit(0);
}

int main(int argc, char **argv)
{
    int ends[2], status = 0, worst = 0;
    check(argc > 5, "usage: pvm_bare WAY ROUTE CPU,CPU SAMPLES BYTES:BATCH ...");
    check(pvm_start_pvmd(0, NULL, 1) >= 0 && pvm_exit() >= 0, "pvm_start_pvmd");
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    for (int rank = 0; rank < 2; rank++) {
        if (fork() == 0) {
            play(rank, ends, argv);
        }
    }
    while (wait(&status) > 0) {
        worst = status != 0 ? 1 : worst;
    }
    (void)signal(SIGTERM, SIG_IGN); /* the daemon ends its tasks, too */
    (void)pvm_halt();
    return worst;
}
