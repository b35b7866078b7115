/* cold */
/* The families without a launcher: ranks are processes or threads of this host, or join over TCP from several hosts
 * (remote.c). */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <unistd.h>

#include "children.h"
#include "control.h"
#include "family.h"
#include "io.h"

enum { RANKS_MAX = 4096 };

/* The control sockets before their distribution: hub[r] is rank 0's end, rim[r] is rank r's. */
typedef struct star {
    int size;
    int *hub, *rim;
} star_t;

static void close_star(star_t *star)
{
    for (int rank = 1; star->hub != NULL && star->rim != NULL && rank < star->size; rank++) {
        if (star->hub[rank] >= 0) {
            close(star->hub[rank]);
        }
        if (star->rim[rank] >= 0) {
            close(star->rim[rank]);
        }
    }
    free(star->hub);
    free(star->rim);
    *star = (star_t){0};
}

static hk_status_t open_star(int size, star_t *star_p)
{
    star_t star = {size, calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
    hk_status_t status = star.hub == NULL || star.rim == NULL ? HK_ERR_MEMORY : HK_OK;
    for (int rank = 1; status == HK_OK && rank < size; rank++) {
        star.hub[rank] = star.rim[rank] = -1;
    }
    for (int rank = 1; status == HK_OK && rank < size; rank++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
            hk_log(0, "cannot make control sockets for %d ranks: %s", size, strerror(errno));
            status = HK_ERR_SYSTEM;
        } else {
            star.hub[rank] = pair[0];
            star.rim[rank] = pair[1];
        }
    }
    if (status != HK_OK) {
        close_star(&star);
        return status;
    }
    *star_p = star;
    return HK_OK;
}

/* Move rank's ends out of the star. The remaining ones belong to other ranks. */
static void take_ends(star_t *star, int rank, hk_control_t *control_p, int *single)
{
    if (rank == 0) {
        *control_p = (hk_control_t){.rank = 0, .size = star->size, .fds = star->hub};
    } else {
        *single = star->rim[rank];
        star->rim[rank] = -1;
        *control_p = (hk_control_t){.rank = rank, .size = star->size, .fds = single};
    }
}

static void release(const hk_transport_t *tp, void *shared)
{
    if (shared != NULL) {
        tp->release(shared);
    }
}

/* ---- ranks as threads -------------------------------------------------------------------------------------------- */

typedef struct thread_rank {
    const hk_args_t *args;
    star_t *star;
    void *shared;
    int rank;
    pthread_t thread;
} thread_rank_t;

static void *run_thread(void *argument)
{
    thread_rank_t *me = argument;
    int single = -1;
    hk_control_t control;
    take_ends(me->star, me->rank, &control, &single);
    const hk_job_t job = {me->rank, me->star->size, &control, me->shared, me->args->oversubscribed, 0, NULL, NULL};
    const bool pinned = hk_pin(me->args, me->rank) == HK_OK;
    const int exit_code = pinned ? hk_rank_main(me->args->tp, &job) : HK_EXIT_FAILED;
    if (exit_code != HK_EXIT_OK) {
        _exit(exit_code); /* other ranks may wait for this one in the transport, where no message reaches them */
    }
    if (single >= 0) {
        close(single);
    }
    return NULL;
}

static int run_threads(const hk_args_t *args, star_t *star, void *shared)
{
    thread_rank_t *ranks = calloc((size_t)star->size, sizeof *ranks);
    if (ranks == NULL) {
        return HK_EXIT_FAILED;
    }
    ranks[0] = (thread_rank_t){.args = args, .star = star, .shared = shared};
    for (int rank = 1; rank < star->size; rank++) {
        ranks[rank] = (thread_rank_t){.args = args, .star = star, .shared = shared, .rank = rank};
        if (pthread_create(&ranks[rank].thread, NULL, run_thread, &ranks[rank]) != 0) {
            hk_log(rank, "cannot start a thread for this rank");
            exit(HK_EXIT_FAILED); /* ranks that have started wait for this one for ever */
        }
    }
    run_thread(&ranks[0]);
    for (int rank = 1; rank < star->size; rank++) {
        pthread_join(ranks[rank].thread, NULL);
    }
    free(ranks);
    release(args->tp, shared);
    return HK_EXIT_OK;
}

/* ---- ranks as processes ------------------------------------------------------------------------------------------ */

typedef struct local_start {
    const hk_args_t *args;
    star_t *star;
    void *shared;
} local_start_t;

/* Closes the descriptors of all other ranks, so that each rank notices the death of any other. */
static int run_local(void *start, int rank)
{
    const local_start_t *local = start;
    star_t *star = local->star;
    int single = -1;
    hk_control_t control;
    if (hk_pin(local->args, rank) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    take_ends(star, rank, &control, &single);
    for (int other = 1; other < star->size; other++) {
        if (rank != 0) {
            close(star->hub[other]);
        }
        if (star->rim[other] >= 0) {
            close(star->rim[other]);
        }
    }
    const hk_job_t job = {rank, star->size, &control, local->shared, local->args->oversubscribed, 0, NULL, NULL};
    return hk_rank_main(local->args->tp, &job);
}

static void leave_local(void *start)
{
    const local_start_t *local = start;
    close_star(local->star);
    release(local->args->tp, local->shared);
}

static const hk_children_t local_children = {.run = run_local, .release = leave_local};

static int start_local(const hk_args_t *args)
{
    const int size = args->size == 0 ? 2 : args->size;
    star_t star = {0};
    void *shared = NULL;
    hk_die_with_parent(getppid());
    if (args->tp->prepare != NULL && args->tp->prepare(args->tp, size, &shared) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    if (open_star(size, &star) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    const bool threads = (args->tp->caps & HK_CAP_THREADS) != 0;
    local_start_t start = {args, &star, shared};
    const int exit_code =
        threads ? run_threads(args, &star, shared) : hk_run_children(0, size, &local_children, &start);
    close_star(&star);
    return exit_code;
}

int hk_local_start(const hk_args_t *args)
{
    if (args->size > RANKS_MAX) {
        hk_log(0, "-n must be from 1 to %d", RANKS_MAX);
        return HK_EXIT_USAGE;
    }
    if (hk_allow_files(args->tp->name, args->size, HK_FILES_OF_JOB(args->size)) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    return args->rank < 0 ? start_local(args) : hk_remote_start(args);
}

#if defined(HK_FAMILY_NATIVE)
#define FAMILY "native"
#elif defined(HK_FAMILY_UCX)
#define FAMILY "ucx"
#elif defined(HK_FAMILY_OFI)
#define FAMILY "ofi"
#endif

#if defined(FAMILY)

static int start(const hk_args_t *args, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return hk_local_start(args);
}

const hk_family_t hk_family = {.name = FAMILY, .start = start};

#endif
