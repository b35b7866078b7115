/* The control star and the rendezvous: collectives, unauthorised connections, ranks that die.
 *
 *     W=src/hockney/worker/csrc
 *     cc -std=c17 -D_GNU_SOURCE -g -fsanitize=address,undefined -I$W tests/worker/test_control.c \
 *        $W/{address,control,io,rendezvous,status}.c
 *
 * Ends with 0 and one line for each test, or with 1 and the check that failed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "check.h"
#include "control.h"
#include "io.h"

enum { SIZE = 4, LIMIT_S = 20, LARGE_BYTES = 1 << 20, LOG_MAX = 4096 };

static double now_s(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- stars ------------------------------------------------------------------------------------------------------- */

typedef void body_t(hk_control_t *control);

static pid_t start_rank(const hk_address_t *address, int listener, int rank, int size, body_t *body)
{
    const pid_t pid = check_fork();
    if (pid == 0) {
        hk_control_t control;
        (void)close(listener);
        CHECK(hk_control_connect(address, rank, size, LIMIT_S, &control) == HK_OK);
        CHECK(control.rank == rank && control.size == size);
        body(&control);
        hk_control_close(&control);
        exit(0);
    }
    return pid;
}

static void run(int size, body_t *body)
{
    int listener = -1;
    hk_address_t address;
    pid_t pids[SIZE];
    hk_control_t control;
    CHECK(hk_address_listen(NULL, 0, &listener, &address) == HK_OK);
    for (int rank = 1; rank < size; rank++) {
        pids[rank] = start_rank(&address, listener, rank, size, body);
    }
    CHECK(hk_control_accept(listener, &address, size, LIMIT_S, &control) == HK_OK);
    CHECK(fcntl(listener, F_GETFD) < 0 && errno == EBADF); /* no further rank can join */
    body(&control);
    hk_control_close(&control);
    for (int rank = 1; rank < size; rank++) {
        check_end(pids[rank]);
    }
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static void collectives(hk_control_t *control)
{
    const size_t size = (size_t)control->size;
    unsigned char *mine = malloc(LARGE_BYTES), *all = malloc(size * LARGE_BYTES);
    CHECK(mine != NULL && all != NULL);
    for (int turn = 0; turn < 3; turn++) {
        CHECK(hk_control_barrier(control) == HK_OK);
        memset(mine, 10 * turn + control->rank, LARGE_BYTES);
        memset(all, 255, size * LARGE_BYTES);
        CHECK(hk_control_gather(control, mine, LARGE_BYTES, all) == HK_OK);
        for (size_t i = 0; control->rank == 0 && i < size * LARGE_BYTES; i++) {
            CHECK(all[i] == 10 * turn + (int)(i / LARGE_BYTES));
        }
        memset(all, 255, size * LARGE_BYTES);
        CHECK(hk_control_allgather(control, mine, LARGE_BYTES, all) == HK_OK);
        for (size_t i = 0; i < size * LARGE_BYTES; i++) {
            CHECK(all[i] == 10 * turn + (int)(i / LARGE_BYTES));
        }
        memset(mine, 255, LARGE_BYTES);
        CHECK(hk_control_scatter(control, control->rank == 0 ? all : NULL, LARGE_BYTES, mine) == HK_OK);
        CHECK(mine[0] == 10 * turn + control->rank && mine[LARGE_BYTES - 1] == mine[0]);
        CHECK(hk_control_broadcast(control, mine, LARGE_BYTES) == HK_OK);
        CHECK(mine[0] == 10 * turn && mine[LARGE_BYTES - 1] == 10 * turn);
        CHECK(hk_control_gather(control, mine, 0, all) == HK_OK);
    }
    free(all);
    free(mine);
}

static void agreement(hk_control_t *control)
{
    const int last = control->size - 1;
    CHECK(hk_control_agree(control, HK_OK) == HK_OK);
    const hk_status_t mine = control->rank == last ? HK_ERR_UNSUPPORTED : HK_OK;
    CHECK(hk_control_agree(control, mine) == HK_ERR_UNSUPPORTED);
    CHECK(hk_control_agree(control, control->rank == 0 ? HK_ERR_CORRUPT : HK_OK) == HK_ERR_CORRUPT);
    CHECK(hk_control_agree(control, HK_OK) == HK_OK);
}

/* A late rank must neither lose nor mix up messages sent meanwhile. */
static void late_rank(hk_control_t *control)
{
    int all[SIZE];
    for (int turn = 0; turn < 20; turn++) {
        (void)usleep(control->rank == turn % control->size ? 2000 : 0);
        const int mine = 100 * turn + control->rank;
        CHECK(hk_control_gather(control, &mine, sizeof mine, all) == HK_OK);
        for (int peer = 0; control->rank == 0 && peer < control->size; peer++) {
            CHECK(all[peer] == 100 * turn + peer);
        }
    }
}

/* ---- unauthorised connections ------------------------------------------------------------------------------------ */

static int connect_raw(const hk_address_t *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    CHECK(inet_pton(AF_INET, address->host, &at.sin_addr) == 1);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

/* STRANGERS without the token: more silent connections than the rendezvous holds, then noise, one that is closed, half
 * a hello, and a wrong token. Then hellos with a wrong rank or size. */
enum { SILENT = 40, STRANGERS = SILENT + 4 };

static void connect_without_token(const hk_address_t *address)
{
    int silent[SILENT];
    for (int i = 0; i < SILENT; i++) {
        silent[i] = connect_raw(address);
    }
    const int noisy = connect_raw(address), hasty = connect_raw(address), half = connect_raw(address);
    static const char noise[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    CHECK(write(noisy, noise, sizeof noise) > 0);
    CHECK(write(half, "hk01\0\0\0", 7) == 7);
    (void)close(hasty);

    hk_address_t wrong = *address;
    hk_control_t control;
    wrong.token[HK_TOKEN_BYTES - 1] ^= 1;
    CHECK(hk_control_connect(&wrong, SIZE - 1, SIZE, LIMIT_S, &control) == HK_ERR_PEER);
    CHECK(hk_control_connect(address, 0, SIZE, LIMIT_S, &control) == HK_ERR_PEER);
    CHECK(hk_control_connect(address, -1, SIZE, LIMIT_S, &control) == HK_ERR_PEER);
    CHECK(hk_control_connect(address, SIZE, SIZE, LIMIT_S, &control) == HK_ERR_PEER);
    CHECK(hk_control_connect(address, SIZE - 1, SIZE + 1, LIMIT_S, &control) == HK_ERR_PEER);
    for (int i = 0; i < SILENT; i++) {
        (void)close(silent[i]);
    }
    (void)close(noisy);
    (void)close(half);
}

/* Joins after the unauthorised connections: until then the rendezvous must stay open. */
static void wrong_tokens_are_refused(void)
{
    int listener = -1;
    hk_address_t address;
    pid_t pids[SIZE];
    hk_control_t control;
    CHECK(hk_address_listen(NULL, 0, &listener, &address) == HK_OK);
    pids[0] = check_fork();
    if (pids[0] == 0) {
        (void)close(listener);
        connect_without_token(&address);
        pids[SIZE - 1] = start_rank(&address, -1, SIZE - 1, SIZE, collectives);
        check_end(pids[SIZE - 1]);
        exit(0);
    }
    (void)usleep(20000);
    for (int rank = 1; rank < SIZE - 1; rank++) {
        pids[rank] = start_rank(&address, listener, rank, SIZE, collectives);
    }
    CHECK(hk_control_accept(listener, &address, SIZE, LIMIT_S, &control) == HK_OK);
    CHECK(control.strangers >= STRANGERS);
    collectives(&control);
    hk_control_close(&control);
    for (int rank = 0; rank < SIZE - 1; rank++) {
        check_end(pids[rank]);
    }
}

static void try_to_join(const hk_address_t *address, int result_fd)
{
    hk_control_t control;
    const hk_status_t status = hk_control_connect(address, 1, 3, LIMIT_S, &control);
    const char result = status == HK_OK ? 'j' : status == HK_ERR_PEER ? 'r' : '?';
    CHECK(write(result_fd, &result, 1) == 1);
    if (status == HK_OK) {
        CHECK(hk_control_barrier(&control) == HK_OK);
        hk_control_close(&control);
    }
    exit(0);
}

static void second_of_a_rank_is_refused(void)
{
    int listener = -1, result[2];
    hk_address_t address;
    pid_t pids[4];
    hk_control_t control;
    CHECK(hk_address_listen("127.0.0.1", 0, &listener, &address) == HK_OK);
    CHECK(pipe(result) == 0);
    for (int i = 0; i < 2; i++) {
        pids[i] = check_fork();
        if (pids[i] == 0) {
            (void)close(listener);
            try_to_join(&address, result[1]);
        }
    }
    pids[2] = check_fork();
    if (pids[2] == 0) {
        char words[2];
        (void)close(listener);
        CHECK(hk_read_all(result[0], words, 2) == HK_OK);
        CHECK((words[0] == 'j' && words[1] == 'r') || (words[0] == 'r' && words[1] == 'j'));
        CHECK(hk_control_connect(&address, 2, 3, LIMIT_S, &control) == HK_OK);
        CHECK(hk_control_barrier(&control) == HK_OK);
        hk_control_close(&control);
        exit(0);
    }
    CHECK(hk_control_accept(listener, &address, 3, LIMIT_S, &control) == HK_OK);
    CHECK(hk_control_barrier(&control) == HK_OK);
    hk_control_close(&control);
    for (int i = 0; i < 3; i++) {
        check_end(pids[i]);
    }
    (void)close(result[0]);
    (void)close(result[1]);
}

/* ---- absent ranks ------------------------------------------------------------------------------------------------ */

static void limits_hold(void)
{
    int listener = -1;
    hk_address_t address;
    hk_control_t control = {.rank = 7};
    CHECK(hk_address_listen(NULL, 0, &listener, &address) == HK_OK);
    const double start_s = now_s();
    CHECK(hk_control_accept(listener, &address, 2, 1, &control) == HK_ERR_PEER);
    CHECK(hk_control_connect(&address, 1, 2, 1, &control) == HK_ERR_PEER); /* the listener is closed */
    CHECK(control.rank == 7);
    CHECK(now_s() - start_s >= 1.9);
}

/* A rank may be started before rank 0 listens. */
static void early_rank_waits(void)
{
    int listener = -1, again = -1;
    hk_address_t address, other;
    hk_control_t control;
    CHECK(hk_address_listen(NULL, 0, &listener, &address) == HK_OK);
    (void)close(listener);
    const pid_t pid = start_rank(&address, -1, 1, 2, agreement);
    (void)usleep(100000);
    CHECK(hk_address_listen(NULL, 0, &again, &other) == HK_OK); /* for a socket of the same family */
    (void)close(again);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(address.port)};
    const int yes = 1;
    CHECK(inet_pton(AF_INET, address.host, &at.sin_addr) == 1);
    again = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(setsockopt(again, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    CHECK(bind(again, (const struct sockaddr *)&at, sizeof at) == 0 && listen(again, 4) == 0);
    CHECK(hk_control_accept(again, &address, 2, LIMIT_S, &control) == HK_OK);
    agreement(&control);
    hk_control_close(&control);
    check_end(pid);
}

static void hosts(void)
{
    int listener = -1;
    hk_address_t address, second;
    CHECK(hk_address_listen(NULL, 0, &listener, &address) == HK_OK);
    CHECK(strcmp(address.host, "127.0.0.1") == 0 && address.port != 0);
    (void)close(listener);
    CHECK(hk_address_listen("lo", 0, &listener, &second) == HK_OK);
    CHECK(strcmp(second.host, "127.0.0.1") == 0);
    CHECK(memcmp(address.token, second.token, HK_TOKEN_BYTES) != 0);
    (void)close(listener);
    listener = -7;
    CHECK(hk_address_listen("0.0.0.0", 0, &listener, &second) == HK_ERR_ARGUMENT);
    CHECK(hk_address_listen("::", 0, &listener, &second) == HK_ERR_ARGUMENT);
    CHECK(hk_address_listen("999.999.999.999", 0, &listener, &second) == HK_ERR_ARGUMENT);
    CHECK(hk_address_listen("192.0.2.1", 0, &listener, &second) == HK_ERR_SYSTEM); /* an address of no host */
    CHECK(listener == -7);
}

/* ---- ranks that die ---------------------------------------------------------------------------------------------- */

/* Runs body with standard error redirected to *log. */
static void with_log(body_t *body, hk_control_t *control, char log[LOG_MAX])
{
    int ends[2];
    const int stderr_copy = dup(STDERR_FILENO);
    CHECK(stderr_copy >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    (void)close(ends[1]);
    body(control);
    CHECK(dup2(stderr_copy, STDERR_FILENO) >= 0);
    (void)close(stderr_copy);
    memset(log, 0, LOG_MAX);
    CHECK(read(ends[0], log, LOG_MAX - 1) >= 0);
    (void)close(ends[0]);
}

static void call_until_known(hk_control_t *control)
{
    int mine = 1, all[SIZE];
    if (control->rank == 0) {
        CHECK(hk_control_gather(control, &mine, sizeof mine, all) == HK_ERR_PEER);
    } else {
        CHECK(hk_control_gather(control, &mine, sizeof mine, NULL) == HK_OK);
        CHECK(hk_control_broadcast(control, &mine, sizeof mine) == HK_ERR_PEER);
    }
    CHECK(hk_control_barrier(control) == HK_ERR_PEER);
    CHECK(hk_control_agree(control, HK_OK) == HK_ERR_PEER);
    CHECK(hk_control_broadcast(control, &mine, sizeof mine) == HK_ERR_PEER);
}

/* Rank 2 dies during communication. All others notice, and each logs one line. */
static void all_learn_of_a_death(hk_control_t *control)
{
    char log[LOG_MAX];
    if (control->rank == 2) {
        (void)usleep(20000);
        _exit(0);
    }
    with_log(call_until_known, control, log);
    const char *gone = control->rank == 0 ? "rank 0: control: rank 2 is gone\n" : "control: rank 0 is gone\n";
    CHECK(strstr(log, gone) != NULL);
    CHECK(strchr(log, '\n') == strrchr(log, '\n'));
}

/* Rank 0 notices the death of rank 2 while it also waits for hung ranks. */
static void death_next_to_a_hung_rank(hk_control_t *control)
{
    int mine = 1, all[SIZE];
    char byte;
    if (control->rank == 2) {
        _exit(0);
    }
    if (control->rank != 0) {
        CHECK(read(control->fds[0], &byte, 1) == 0); /* until rank 0 closes */
    } else {
        CHECK(hk_control_gather(control, &mine, sizeof mine, all) == HK_ERR_PEER);
    }
}

/* A launcher's copy of a descriptor must not hide the end of a rank. */
static void leaving_is_noticed(hk_control_t *control)
{
    char byte;
    if (control->rank == 0) {
        CHECK(dup(control->fds[1]) >= 0); /* open until this process ends */
        hk_control_close(control);
    } else {
        CHECK(hk_control_broadcast(control, &byte, 1) == HK_ERR_PEER);
    }
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void streams_go_on(void)
{
    int ends[2];
    unsigned char *buf = calloc(1, LARGE_BYTES);
    CHECK(buf != NULL && pipe2(ends, O_NONBLOCK) == 0);
    const pid_t pid = check_fork();
    if (pid == 0) {
        (void)close(ends[1]);
        CHECK(hk_read_all(ends[0], buf, LARGE_BYTES) == HK_OK);
        CHECK(buf[0] == 9 && buf[LARGE_BYTES - 1] == 9);
        CHECK(hk_read_all(ends[0], buf, 1) == HK_ERR_PEER);
        free(buf);
        exit(0);
    }
    (void)close(ends[0]);
    memset(buf, 9, LARGE_BYTES);
    (void)usleep(5000);
    CHECK(hk_write_all(ends[1], buf, LARGE_BYTES) == HK_OK);
    (void)close(ends[1]);
    check_end(pid);

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    (void)close(ends[0]);
    CHECK(hk_write_all(ends[1], buf, 1) == HK_ERR_PEER); /* and no SIGPIPE */
    (void)close(ends[1]);
    CHECK(hk_write_all(ends[1], buf, 1) == HK_ERR_SYSTEM);
    free(buf);
}

static void prompt_sockets(hk_control_t *control)
{
    int yes = 0;
    socklen_t len = sizeof yes;
    const int fd = control->fds[control->rank == 0 ? 1 : 0];
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, &len) == 0 && yes != 0);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(hk_control_barrier(control) == HK_OK);
}

static void fine(const char *what)
{
    (void)printf("control: %s: fine\n", what);
}

int main(void)
{
    (void)alarm(CHECK_LIMIT_S);
    hosts();
    fine("hosts");
    streams_go_on();
    fine("streams");
    run(1, collectives);
    run(2, collectives);
    run(SIZE, collectives);
    run(SIZE, agreement);
    run(SIZE, late_rank);
    run(2, prompt_sockets);
    fine("collectives");
    wrong_tokens_are_refused();
    second_of_a_rank_is_refused();
    fine("strangers");
    limits_hold();
    early_rank_waits();
    fine("limits");
    run(SIZE, all_learn_of_a_death);
    run(SIZE, death_next_to_a_hung_rank);
    run(2, leaving_is_noticed);
    fine("deaths");
    return 0;
}
