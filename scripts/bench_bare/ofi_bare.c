/* The reference for the libfabric worker: a ping-pong of plain calls by tag between two forked and pinned processes,
 * with the worker's hints. fi_pingpong is none: it times the making of its connection, too.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o ofi_bare ofi_bare.c -lfabric
 *     ofi_bare PROVIDER CPU,CPU SAMPLES BYTES:BATCH ...
 *
 * Prints a line for each size: bytes, median half round trip in ns of SAMPLES batches after an untimed one. */
#include "bare.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NAME_BYTES = 256, SAMPLES_MAX = 1000, ROOM_BYTES = 1 << 24 };

typedef struct bare {
    struct fi_info *info;
    struct fid_ep *ep;
    struct fid_cq *cq;
    fi_addr_t peer;
} bare_t;

/* The first part is the provider's. */
typedef struct request {
    struct fi_context context;
    bool is_done;
} request_t;

static struct fi_info *find(const char *provider)
{
    const uint32_t version = FI_VERSION(1, 9);
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    check(hints != NULL, "fi_allocinfo");
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(provider);
    check(fi_getinfo(version, NULL, NULL, 0, hints, &info) == 0, "fi_getinfo");
    if (strcmp(provider, "shm") != 0) { /* the loopback, as the worker */
        check(fi_getinfo(version, "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &info) == 0, "fi_getinfo");
    }
    return info;
}

static void join(bare_t *bare, int fd)
{
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 2};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    struct fid_fabric *fabric = NULL;
    struct fid_domain *domain = NULL;
    struct fid_av *av = NULL;
    char own[NAME_BYTES] = {0}, other[NAME_BYTES];
    size_t own_bytes = sizeof own;
    check(fi_fabric(bare->info->fabric_attr, &fabric, NULL) == 0, "fi_fabric");
    check(fi_domain(fabric, bare->info, &domain, NULL) == 0, "fi_domain");
    check(fi_av_open(domain, &av_attr, &av, NULL) == 0, "fi_av_open");
    check(fi_cq_open(domain, &cq_attr, &bare->cq, NULL) == 0, "fi_cq_open");
    check(fi_endpoint(domain, bare->info, &bare->ep, NULL) == 0, "fi_endpoint");
    check(fi_ep_bind(bare->ep, &av->fid, 0) == 0, "fi_ep_bind");
    check(fi_ep_bind(bare->ep, &bare->cq->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
    check(fi_enable(bare->ep) == 0 && fi_getname(&bare->ep->fid, own, &own_bytes) == 0, "fi_enable");
    send_all(fd, own, sizeof own);
    recv_all(fd, other, sizeof other);
    check(fi_av_insert(av, other, 1, &bare->peer, 0, NULL) == 1, "fi_av_insert");
}

static void look(const bare_t *bare)
{
    struct fi_cq_entry done[8];
    const ssize_t count = fi_cq_read(bare->cq, done, 8);
    check(count > 0 || count == -FI_EAGAIN, "fi_cq_read");
    for (ssize_t i = 0; i < count; i++) {
        ((request_t *)done[i].op_context)->is_done = true;
    }
}

static void finish(const bare_t *bare, const request_t *request, ssize_t code)
{
    check(code == 0, "fi_tsend or fi_trecv");
    while (!request->is_done) {
        look(bare);
    }
}

#define REPEATED(bare, code, call)                                                                                     \
    while (((code) = (call)) == -FI_EAGAIN) {                                                                          \
        look(bare);                                                                                                    \
    }

static void pingpong(const bare_t *bare, int rank, char *out, char *in, size_t bytes, long reps)
{
    for (long i = 0; i < 2 * reps; i++) {
        const bool sends = (i + rank) % 2 == 0, is_short = bytes <= bare->info->tx_attr->inject_size;
        request_t request = {.is_done = sends && is_short};
        ssize_t code = 0;
        if (!sends) {
            REPEATED(bare, code, fi_trecv(bare->ep, in, bytes, NULL, FI_ADDR_UNSPEC, 1, 0, &request));
        } else if (is_short) {
            REPEATED(bare, code, fi_tinject(bare->ep, out, bytes, bare->peer, 1));
        } else {
            REPEATED(bare, code, fi_tsend(bare->ep, out, bytes, NULL, bare->peer, 1, &request));
        }
        finish(bare, &request, code);
    }
}

static void play(int rank, int fd, char **argv)
{
    static char out[ROOM_BYTES], in[ROOM_BYTES];
    static double half_ns[SAMPLES_MAX];
    const int samples = atoi(argv[3]);
    int cpu[2];
    char byte = 0;
    check(sscanf(argv[2], "%d,%d", &cpu[0], &cpu[1]) == 2 && samples > 0 && samples <= SAMPLES_MAX, "CPU,CPU SAMPLES");
    pin(cpu[rank]);
    (void)prctl(PR_SET_PDEATHSIG, 9);
    memset(out, 1, sizeof out);
    memset(in, 1, sizeof in);
    bare_t bare = {.info = find(argv[1])};
    join(&bare, fd);
    for (char **size = argv + 4; *size != NULL; size++) {
        long bytes = 0, batch = 0;
        check(sscanf(*size, "%ld:%ld", &bytes, &batch) == 2 && bytes < ROOM_BYTES && batch > 0, "not BYTES:BATCH");
        for (int i = -1; i < samples; i++) {
            const double start_ns = now_ns();
            pingpong(&bare, rank, out, in, (size_t)bytes, batch);
            half_ns[i < 0 ? 0 : i] = (now_ns() - start_ns) / (2.0 * (double)batch);
        }
        if (rank == 0) {
            printf("%ld %.2f\n", bytes, median_of(half_ns, (size_t)samples));
        }
    }
    fflush(stdout);
    if (rank == 1) { /* rank 0 has all messages; its last one may need it once more */
        check(write(fd, &byte, 1) == 1, "write");
    } else {
        while (recv(fd, &byte, 1, MSG_DONTWAIT) != 1) {
            look(&bare);
        }
    }
    check(fi_close(&bare.ep->fid) == 0, "fi_close"); /* shm removes its file */
    _exit(0);
}

int main(int argc, char **argv)
{
    int ends[2], status = 0, worst = 0;
    pid_t pids[2];
    check(argc > 4, "usage: ofi_bare PROVIDER CPU,CPU SAMPLES BYTES:BATCH ...");
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    for (int rank = 0; rank < 2; rank++) {
        pids[rank] = fork();
        check(pids[rank] >= 0, "fork");
        if (pids[rank] == 0) {
            play(rank, ends[rank], argv);
        }
    }
    for (int left = 2; left > 0; left--) {
        const pid_t ended = wait(&status);
        worst = status != 0 ? 1 : worst;
        if (status != 0 && left == 2) { /* the other rank would wait for its messages */
            (void)kill(pids[ended == pids[0]], SIGKILL);
        }
    }
    return worst;
}
