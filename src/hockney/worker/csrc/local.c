/* cold */
/* The native family: ranks are started here, as processes or threads of this host, or join over TCP one by one. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "control.h"
#include "family.h"
#include "io.h"

enum { RANKS_MAX = 4096 };

/* The star of control sockets before it is handed out: hub[r] is rank 0's end, rim[r] is rank r's. */
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

/* Take rank's ends out of the star; what remains in it is not this rank's. */
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
    const hk_job_t job = {me->rank, me->star->size, &control, me->shared, me->args->oversubscribed, 0};
    const bool pinned = hk_pin(me->args, me->rank) == HK_OK;
    const int exit_code = pinned ? hk_rank_main(me->args->tp, &job) : HK_EXIT_FAILED;
    if (exit_code != HK_EXIT_OK) {
        _exit(exit_code); /* other ranks may wait for this one in the transport, where nobody can tell them */
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
            exit(HK_EXIT_FAILED); /* those already started wait for this one for ever */
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

/* In the child: nothing of the other ranks stays open, so that the death of one is seen by all. */
static int run_child(const hk_args_t *args, star_t *star, void *shared, int rank, pid_t launcher)
{
    int single = -1;
    hk_control_t control;
    hk_die_with_parent(launcher);
    if (hk_pin(args, rank) != HK_OK) {
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
    const hk_job_t job = {rank, star->size, &control, shared, args->oversubscribed, 0};
    return hk_rank_main(args->tp, &job);
}

/* How serious an end is: of several, the most serious is the cause and the others its consequences. */
static int gravity(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return 3;
    }
    const int code = WEXITSTATUS(wait_status);
    return code == HK_EXIT_TIMEOUT ? 2 : code != HK_EXIT_OK ? 1 : 0;
}

static void report_loss(int rank, int wait_status)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "lost", 0);
    hk_answer_signed(&answer, "rank", rank);
    hk_answer_signed(&answer, "signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0);
    hk_answer_signed(&answer, "exit", WIFSIGNALED(wait_status) ? 0 : WEXITSTATUS(wait_status));
    hk_answer_send(&answer, STDOUT_FILENO);
}

static int find_rank(const pid_t *pids, int size, pid_t pid)
{
    int rank = 0;
    while (rank < size && pids[rank] != pid) {
        rank++;
    }
    return rank;
}

/* Sleeps until all ranks have ended; when one ends badly the others are ended too, and the cause is told. */
static int supervise(pid_t *pids, int size)
{
    int worst_rank = -1;
    int worst_status = 0;
    for (int left = size; left > 0;) {
        int wait_status = 0;
        const pid_t pid = waitpid(-1, &wait_status, worst_rank >= 0 ? WNOHANG : 0);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid > 0) {
            left--;
            const int rank = find_rank(pids, size, pid);
            if (rank < size) {
                pids[rank] = -1;
            }
            if (gravity(wait_status) > gravity(worst_status)) {
                worst_rank = rank;
                worst_status = wait_status;
            }
            continue;
        }
        /* Something ended badly and all that ended by themselves are counted: end the rest. */
        for (int rank = 0; rank < size; rank++) {
            if (pids[rank] > 0) {
                kill(pids[rank], SIGKILL);
                waitpid(pids[rank], NULL, 0);
            }
        }
        break;
    }
    if (worst_rank < 0) {
        return HK_EXIT_OK;
    }
    report_loss(worst_rank, worst_status);
    return gravity(worst_status) == 2 ? HK_EXIT_TIMEOUT : HK_EXIT_RANK_DIED;
}

static int run_processes(const hk_args_t *args, star_t *star, void *shared)
{
    const int size = star->size;
    const pid_t launcher = getpid();
    pid_t *pids = calloc((size_t)size, sizeof *pids);
    if (pids == NULL) {
        return HK_EXIT_FAILED;
    }
    for (int rank = 0; rank < size; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            free(pids);
            exit(run_child(args, star, shared, rank, launcher));
        }
        if (pids[rank] < 0) {
            hk_log(rank, "cannot start a process for this rank: %s", strerror(errno));
            for (int other = 0; other < rank; other++) {
                kill(pids[other], SIGKILL);
            }
            free(pids);
            return HK_EXIT_FAILED;
        }
    }
    close_star(star);
    release(args->tp, shared); /* each rank has its own copy: nothing here may keep a dead rank's connections open */
    close(STDIN_FILENO);       /* rank 0 alone reads */
    const int exit_code = supervise(pids, size);
    free(pids);
    return exit_code;
}

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
    const int exit_code = threads ? run_threads(args, &star, shared) : run_processes(args, &star, shared);
    close_star(&star);
    return exit_code;
}

/* ---- ranks that join from several hosts -------------------------------------------------------------------------- */

/* The first line of standard input: "token " and 32 hexadecimal digits. Read byte by byte, so that nothing behind it
 * is lost to the session. */
static hk_status_t read_token(unsigned char token[HK_TOKEN_BYTES])
{
    static const char word[] = "token ";
    char line[sizeof word + 2 * HK_TOKEN_BYTES];
    size_t len = 0;
    char byte = '\0';
    while (len < sizeof line && hk_read_some(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
        line[len++] = byte;
    }
    bool right = len == sizeof word - 1 + 2 * HK_TOKEN_BYTES && memcmp(line, word, sizeof word - 1) == 0;
    for (size_t i = 0; right && i < HK_TOKEN_BYTES; i++) {
        const char *at = line + sizeof word - 1 + 2 * i;
        char digits[3] = {at[0], at[1], '\0'};
        right = isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]);
        token[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    if (!right) {
        hk_log(0, "the first line of standard input must be: token and 32 hexadecimal digits");
        return HK_ERR_ARGUMENT;
    }
    return HK_OK;
}

static hk_status_t parse_address(const char *text, hk_address_t *address)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    const unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);
    const size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    if (port == 0 || port > UINT16_MAX || *end != '\0' || len == 0 || len >= sizeof address->host) {
        hk_log(0, "--join wants HOST:PORT, not '%s'", text);
        return HK_ERR_ARGUMENT;
    }
    memcpy(address->host, text, len);
    address->host[len] = '\0';
    address->port = (uint16_t)port;
    return HK_OK;
}

static void tell_address(const hk_address_t *address)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "listening", 0);
    hk_answer_string(&answer, "host", address->host);
    hk_answer_unsigned(&answer, "port", address->port);
    hk_answer_send(&answer, STDOUT_FILENO);
}

static int start_remote(const hk_args_t *args)
{
    hk_address_t address = {.port = 0};
    hk_control_t control;
    unsigned char token[HK_TOKEN_BYTES];
    int listener = -1;
    hk_status_t status = read_token(token);
    if (status == HK_OK && args->rank == 0) {
        status = hk_address_listen(args->listen, 0, &listener, &address);
        if (status == HK_OK) {
            memcpy(address.token, token, sizeof token);
            tell_address(&address);
            status = hk_control_accept(listener, &address, args->size, args->start_limit_s, &control);
        }
    } else if (status == HK_OK) {
        status = parse_address(args->join, &address);
        if (status == HK_OK) {
            memcpy(address.token, token, sizeof token);
            status = hk_control_connect(&address, args->rank, args->size, args->start_limit_s, &control);
        }
    }
    if (status != HK_OK) {
        return status == HK_ERR_ARGUMENT ? HK_EXIT_USAGE : HK_EXIT_FAILED;
    }
    const hk_job_t job = {args->rank, args->size, &control, NULL, args->oversubscribed, 1};
    const int exit_code = hk_pin_apart(args, &control, -1) == HK_OK ? hk_rank_main(args->tp, &job) : HK_EXIT_FAILED;
    hk_control_close(&control);
    return exit_code;
}

int hk_local_start(const hk_args_t *args)
{
    if (args->size > RANKS_MAX) {
        hk_log(0, "-n must be from 1 to %d", RANKS_MAX);
        return HK_EXIT_USAGE;
    }
    return args->rank < 0 ? start_local(args) : start_remote(args);
}

#if defined(HK_FAMILY_NATIVE)

static int start(const hk_args_t *args, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return hk_local_start(args);
}

const hk_family_t hk_family = {.name = "native", .start = start};

#endif
