/* MPI: one worker executable for each library found, started by that library's own mpiexec.
 *
 * The timed hooks are the plain calls of any MPI program on a communicator of our own; nothing else may stand in
 * them, because the worker promises to stay within 2 % of a bare ping-pong. */
#include "../transport.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../control.h"
#include "../family.h"

enum { TAG = 1, LIBRARY_MAX = 96, START_LIMIT_S = 60 };

typedef struct mpi_ctx {
    hk_ctx_t base;
    MPI_Comm comm; /* our own, so that nothing a library or tool sends on the world can match our messages */
    char library[LIBRARY_MAX];
} mpi_ctx_t;

_Static_assert(sizeof(MPI_Request) <= sizeof(hk_req_t), "mpi: a request does not fit hk_req_t");

/* Out of line and cold: the hooks above their calls stay a compare and a jump. */
__attribute__((cold, noinline)) static hk_status_t failed(int rank, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "no text";
    int len = 0;
    int class = MPI_ERR_OTHER;
    MPI_Error_string(code, text, &len);
    MPI_Error_class(code, &class);
    hk_log(rank, "%s failed: %s", call, text);
    switch (class) {
    case MPI_ERR_NO_MEM:
        return HK_ERR_MEMORY;
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_RANK:
    case MPI_ERR_TAG:
        return HK_ERR_ARGUMENT;
    default:
#if defined(MPIX_ERR_PROC_FAILED)
        return class == MPIX_ERR_PROC_FAILED ? HK_ERR_PEER : HK_ERR_SYSTEM;
#else
        return HK_ERR_SYSTEM;
#endif
    }
}

#define CHECKED(ctx, call, code) (__builtin_expect((code) == MPI_SUCCESS, 1) ? HK_OK : failed((ctx)->rank, call, code))

/* ---- the timed hooks -------------------------------------------------------------------------------------------- */

static MPI_Comm comm_of(const hk_ctx_t *ctx)
{
    return ((const mpi_ctx_t *)ctx)->comm;
}

static hk_status_t mpi_send(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes)
{
    const int code = MPI_Send(buf, (int)len_bytes, MPI_BYTE, peer, TAG, comm_of(ctx));
    return CHECKED(ctx, "MPI_Send", code);
}

static hk_status_t mpi_recv(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes)
{
    const int code = MPI_Recv(buf, (int)len_bytes, MPI_BYTE, peer, TAG, comm_of(ctx), MPI_STATUS_IGNORE);
    return CHECKED(ctx, "MPI_Recv", code);
}

static hk_status_t mpi_isend(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes, hk_req_t *req)
{
    MPI_Request *request = (MPI_Request *)(void *)req->room;
    const int code = MPI_Isend(buf, (int)len_bytes, MPI_BYTE, peer, TAG, comm_of(ctx), request);
    return CHECKED(ctx, "MPI_Isend", code);
}

static hk_status_t mpi_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes, hk_req_t *req)
{
    MPI_Request *request = (MPI_Request *)(void *)req->room;
    const int code = MPI_Irecv(buf, (int)len_bytes, MPI_BYTE, peer, TAG, comm_of(ctx), request);
    return CHECKED(ctx, "MPI_Irecv", code);
}

#if defined(__GNUC__) && !defined(__clang__)
/* MPICH declares MPI_STATUSES_IGNORE as an array of one, and gcc believes it. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

/* MPI_Waitall wants its requests side by side. They are moved together at the front of the caller's own array: place
 * i of the packed array never lies behind slot i, so the move destroys nothing that is still to be read. */
static hk_status_t mpi_wait_all(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)
{
    MPI_Request *packed = (MPI_Request *)(void *)reqs;
    for (size_t i = 1; i < count; i++) {
        memcpy(&packed[i], reqs[i].room, sizeof(MPI_Request));
    }
    const int code = MPI_Waitall((int)count, packed, MPI_STATUSES_IGNORE);
    return CHECKED(ctx, "MPI_Waitall", code);
}

static hk_status_t mpi_barrier(hk_ctx_t *ctx)
{
    const int code = MPI_Barrier(comm_of(ctx));
    return CHECKED(ctx, "MPI_Barrier", code);
}

static hk_status_t mpi_broadcast(hk_ctx_t *ctx, int root, void *buf, size_t len_bytes)
{
    const int code = MPI_Bcast(buf, (int)len_bytes, MPI_BYTE, root, comm_of(ctx));
    return CHECKED(ctx, "MPI_Bcast", code);
}

static hk_status_t mpi_alltoall(hk_ctx_t *ctx, const void *out, void *in, size_t len_bytes)
{
    const int len = (int)len_bytes;
    const int code = MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, comm_of(ctx));
    return CHECKED(ctx, "MPI_Alltoall", code);
}

extern const hk_transport_t hk_transport_mpi;

/* ---- open and close --------------------------------------------------------------------------------------------- */

/* The first version number in text ("v4.1.4, package: …" gives "4.1.4"); empty if there is none. */
static void copy_version(const char *text, char *version, size_t room)
{
    size_t len = 0;
    const char *at = text + strcspn(text, "0123456789\n");
    while (len + 1 < room && at[len] != '\0' && strchr(" ,\t\r\n", at[len]) == NULL) {
        version[len] = at[len];
        len++;
    }
    version[len] = '\0';
}

/* What a library says of itself, cut to name and version: its own text can be two thousand characters long. */
static void name_library(const char *said, char *name_p, size_t room)
{
    static const struct {
        const char *mark, *name;
    } known[] = {
        {"Open MPI v", "Open MPI"},     {"Intel(R) MPI Library", "Intel MPI"}, {"MVAPICH2 Version", "MVAPICH2"},
        {"MVAPICH Version", "MVAPICH"}, {"CRAY MPICH version", "Cray MPICH"},  {"MPICH Version", "MPICH"},
    };
    char version[32];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *at = strstr(said, known[i].mark);
        if (at != NULL) {
            copy_version(at + strlen(known[i].mark), version, sizeof version);
            snprintf(name_p, room, "%s %s", known[i].name, version);
            return;
        }
    }
    snprintf(name_p, room, "%.*s", (int)strcspn(said, "\r\n"), said);
}

static hk_status_t mpi_open(const hk_job_t *job, hk_ctx_t **ctx_p)
{
    char said[MPI_MAX_LIBRARY_VERSION_STRING] = "unknown MPI";
    int said_len = 0;
    mpi_ctx_t *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        hk_log(job->rank, "mpi: no memory for a context");
        return HK_ERR_MEMORY;
    }
    ctx->base = (hk_ctx_t){.tp = &hk_transport_mpi, .rank = job->rank, .size = job->size};
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &ctx->comm);
    if (code != MPI_SUCCESS) {
        free(ctx);
        return failed(job->rank, "MPI_Comm_dup", code);
    }
    MPI_Comm_set_errhandler(ctx->comm, MPI_ERRORS_RETURN);
    MPI_Get_library_version(said, &said_len);
    name_library(said, ctx->library, sizeof ctx->library);
    *ctx_p = &ctx->base;
    return HK_OK;
}

static void mpi_close(hk_ctx_t *base)
{
    mpi_ctx_t *ctx = (mpi_ctx_t *)base;
    MPI_Comm_free(&ctx->comm);
    free(ctx);
}

static const char *mpi_library(const hk_ctx_t *ctx)
{
    return ((const mpi_ctx_t *)ctx)->library;
}

const hk_transport_t hk_transport_mpi = {
    .abi = HK_TRANSPORT_ABI,
    .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SPINS,
    .name = "mpi",
    .summary = "the MPI library that this worker was built with",
    .max_bytes = INT_MAX,
    .open = mpi_open,
    .close = mpi_close,
    .library = mpi_library,
    .alloc = hk_private_alloc,
    .free = hk_private_free,
    .send = mpi_send,
    .recv = mpi_recv,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .wait_all = mpi_wait_all,
    .barrier = mpi_barrier,
    .broadcast = mpi_broadcast,
    .alltoall = mpi_alltoall,
    .now_ns = hk_real_now_ns,
    .compute = hk_real_compute,
};

/* ---- the family: how ranks come to life ------------------------------------------------------------------------- */

#if defined(HK_FAMILY_MPI)

/* This process's place among the ranks of its host, as its launcher says before MPI_Init; -1 if it says nothing.
 * Slurm's comes last but one: a batch shell hands its own 0 down to everything that an mpiexec starts in it. */
static int local_rank_of_launcher(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "PALS_LOCAL_RANKID",
        "SLURM_LOCALID",
        "PMIX_RANK",
        "PMI_RANK",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value >= '0' && *value <= '9') {
            return (int)strtol(value, NULL, 10);
        }
    }
    return -1;
}

typedef struct world {
    int rank, size;
    int local_rank, local_size;
    bool one_host;
} world_t;

/* Ranks are on one host if they share memory and its name: two network namespaces of one machine share memory, and
 * still can't meet on the loopback. */
static hk_status_t look_around(world_t *world_p)
{
    world_t world;
    MPI_Comm node;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    char first[MPI_MAX_PROCESSOR_NAME] = "";
    int len = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL, &node);
    if (code != MPI_SUCCESS) {
        return failed(world.rank, "MPI_Comm_split_type", code);
    }
    MPI_Comm_rank(node, &world.local_rank);
    MPI_Comm_size(node, &world.local_size);
    MPI_Comm_free(&node);
    MPI_Get_processor_name(name, &len);
    memcpy(first, name, sizeof first);
    code = MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    int here = world.local_size == world.size && strcmp(first, name) == 0;
    if (code == MPI_SUCCESS) {
        code = MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    if (code != MPI_SUCCESS) {
        return failed(world.rank, "MPI_Bcast or MPI_Allreduce", code);
    }
    world.one_host = here != 0;
    *world_p = world;
    return HK_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
    return address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* An IPv4 address of this host that others can reach: its name's, or where the name leads to the loopback (as
 * /etc/hosts often has it) that of the first interface that is up. */
static bool find_own_address(char *host_p, size_t room)
{
    char name[256] = "";
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    bool ok = false;
    if (gethostname(name, sizeof name - 1) == 0 && getaddrinfo(name, NULL, &hints, &found) == 0) {
        for (const struct addrinfo *at = found; at != NULL && !ok; at = at->ai_next) {
            ok = !is_loopback(at->ai_addr) &&
                 getnameinfo(at->ai_addr, at->ai_addrlen, host_p, (socklen_t)room, NULL, 0, NI_NUMERICHOST) == 0;
        }
        freeaddrinfo(found);
    }
    struct ifaddrs *interfaces = NULL;
    if (ok || getifaddrs(&interfaces) != 0) {
        return ok;
    }
    for (const struct ifaddrs *at = interfaces; at != NULL && !ok; at = at->ifa_next) {
        ok = at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) != 0 &&
             !is_loopback(at->ifa_addr) &&
             getnameinfo(at->ifa_addr, sizeof(struct sockaddr_in), host_p, (socklen_t)room, NULL, 0, NI_NUMERICHOST) ==
                 0;
    }
    freeifaddrs(interfaces);
    return ok;
}

/* The control star, bootstrapped by one broadcast of the library: a waiting rank then sleeps in a read, which no MPI
 * call lets it do. */
static hk_status_t join_star(const world_t *world, hk_control_t *control_p)
{
    hk_address_t address = {0};
    int listener = -1;
    hk_status_t status = HK_OK;
    if (world->rank == 0) {
        char host[NI_MAXHOST];
        const bool known = !world->one_host && find_own_address(host, sizeof host);
        if (!world->one_host && !known) {
            hk_log(0, "mpi: the ranks are on several hosts, and this one has no address but the loopback");
            status = HK_ERR_SYSTEM;
        } else {
            status = hk_control_listen(known ? host : NULL, &listener, &address);
        }
    }
    if (status != HK_OK) {
        return status; /* the caller aborts the job, so nobody waits for the broadcast */
    }
    const int code = MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) {
        return failed(world->rank, "MPI_Bcast", code);
    }
    return world->rank == 0 ? hk_control_accept(listener, &address, world->size, START_LIMIT_S, control_p)
                            : hk_control_connect(&address, world->rank, world->size, START_LIMIT_S, control_p);
}

/* From here on an error must end every rank, also those that wait in the library for this one. */
static int run_ranks(const hk_args_t *args, bool pinned)
{
    world_t world;
    hk_control_t control;
    if (look_around(&world) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    if (args->size != 0 && world.size != args->size) {
        hk_log(world.rank,
               "mpi: %d ranks were asked for, the library sees %d: is this the mpiexec of the MPI that the "
               "worker was built with?",
               args->size, world.size);
        return HK_EXIT_USAGE;
    }
    if (!pinned && hk_pin(args, world.local_rank) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    if (join_star(&world, &control) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    const hk_job_t job = {
        .rank = world.rank,
        .size = world.size,
        .control = &control,
        .oversubscribed = args->oversubscribed,
        .remote = !world.one_host,
    };
    const int code = hk_rank_main(args->tp, &job);
    hk_control_close(&control);
    return code;
}

static int mpi_start(const hk_args_t *args, int argc, char **argv)
{
    /* Pinned before MPI_Init, so that the library's shared memory is first touched where it will be used. */
    const int local_rank = local_rank_of_launcher();
    if (local_rank >= 0 && hk_pin(args, local_rank) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    hk_die_with_parent(getppid());
    const int code = MPI_Init(&argc, &argv);
    if (code != MPI_SUCCESS) {
        hk_log(local_rank, "MPI_Init failed with code %d", code);
        return HK_EXIT_FAILED;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int exit_code = run_ranks(args, local_rank >= 0);
    if (exit_code != HK_EXIT_OK) {
        MPI_Abort(MPI_COMM_WORLD, exit_code); /* MPI_Finalize would wait for ranks that are gone */
    }
    MPI_Finalize();
    return exit_code;
}

const hk_family_t hk_family = {.name = "mpi", .start = mpi_start};

#endif
