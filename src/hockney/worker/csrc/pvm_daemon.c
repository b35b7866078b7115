/* cold */
/* The PVM family: the first process of a job keeps the daemon. The ranks are started like those of the native family.
 *
 * Each job has a separate daemon in a separate folder, so parallel jobs do not affect each other and the daemon ends
 * with its job. If the user already runs a daemon, the job uses it and leaves it running. PVM derives all names from
 * PVM_TMP and finds its daemon through PVMSOCK; nothing else differs from other PVM programs.
 *
 * The end of the first process ends everything: on a signal, or when its parent dies, it ends ranks and daemon. If
 * it is killed, the kernel ends them. */
#include "pvm_daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pvm3.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "family.h"

enum { PATH_ROOM = 256, FOLDER_MAX = 80, START_LIMIT_MS = 10000, PROBE_LIMIT_S = 5, END_STEPS = 200, STEP_MS = 5 };

static const char folder_variable[] = "HOCKNEY_PVM_FOLDER";

/* The state of the first process. */
typedef struct keeper {
    pid_t job;       /* the parent of the ranks; -1: ended */
    pid_t daemon;    /* -1: not started here, or ended */
    sigset_t waited; /* the signals it waits for */
    sigset_t before; /* the signal mask for its children */
} keeper_t;

/* ---- the folder of sockets --------------------------------------------------------------------------------------- */

void hk_pvm_remove_folder(void)
{
    const char *folder = getenv(folder_variable);
    DIR *listing = folder == NULL ? NULL : opendir(folder);
    if (listing == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(listing), entry->d_name, 0);
        }
    }
    (void)closedir(listing);
    (void)rmdir(folder);
}

static const char *pvm_tmp(void)
{
    const char *folder = getenv("PVM_TMP");
    return folder == NULL || *folder == '\0' ? "/tmp" : folder;
}

/* Create a folder for this job's sockets and logs, and use it from now on. */
static hk_status_t make_folder(void)
{
    char folder[FOLDER_MAX];
    const int len = snprintf(folder, sizeof folder, "%s/hockney-pvm-XXXXXX", pvm_tmp());
    if (len < 0 || len >= (int)sizeof folder) {
        return hk_fail(HK_ERR_ARGUMENT, 0, "pvm: the name in PVM_TMP is too long for PVM's sockets: %s", pvm_tmp());
    }
    if (mkdtemp(folder) == NULL) {
        return hk_fail(HK_ERR_SYSTEM, 0, "pvm: cannot make a folder in %s: %s", pvm_tmp(), strerror(errno));
    }
    if (setenv(folder_variable, folder, 1) != 0 || setenv("PVM_TMP", folder, 1) != 0) {
        return hk_fail(HK_ERR_MEMORY, 0, "pvm: no memory");
    }
    return HK_OK;
}

/* ---- a daemon of the user ---------------------------------------------------------------------------------------- */

static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = '\0';
}

/* Open a file that this user has written; NULL for any other. The path is in a folder where all may write: a pipe there
 * would block, and somebody else's file lead to their daemon. */
static FILE *open_own(const char *path)
{
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    FILE *file = NULL;
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == getuid()) {
        file = fdopen(fd, "r");
    }
    if (fd >= 0 && file == NULL) {
        (void)close(fd);
    }
    return file;
}

/* The address that the user's daemon has published; false if there is none. */
static bool read_address(char *address, int room)
{
    char path[PATH_ROOM];
    const char *machine = getenv("PVM_VMID");
    const char *dot = machine == NULL || *machine == '\0' ? "" : ".";
    const int len =
        snprintf(path, sizeof path, "%s/pvmd.%u%s%s", pvm_tmp(), (unsigned)getuid(), dot, *dot == '\0' ? "" : machine);
    FILE *file = len < 0 || len >= (int)sizeof path ? NULL : open_own(path);
    if (file == NULL) {
        return false;
    }
    const bool is_read = fgets(address, room, file) != NULL;
    (void)fclose(file);
    cut_line(address);
    return is_read && *address != '\0';
}

/* Remove PVM's variables from the environment: a rank would take itself for another task, and a daemon start others. */
static void clear_environment(void)
{
    static const char *const names[] = {"PVMEPID",   "PVMSOCK",   "PVMCTX",   "PVMTASK",    "PVMTMASK",
                                        "PVMTRCBUF", "PVMTRCOPT", "PVM_VMID", "PVMHOSTFILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unsetenv(names[i]);
    }
}

/* Whether a daemon may listen there; false saves PVM a wait of seconds. Only a missing Unix socket gives false. */
static bool may_listen(const char *address)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const size_t len = strlen(address);
    if (*address != '/' || len >= sizeof name.sun_path) {
        return *address != '/';
    }
    memcpy(name.sun_path, address, len);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool listens = fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)&name, sizeof name) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return listens;
}

/* Whether a daemon answers. A killed daemon leaves its file behind. A child asks, because a process that has talked
 * to a daemon is its task. */
static bool answers(const char *address)
{
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)alarm(PROBE_LIMIT_S);
        if (nowhere >= 0) {
            (void)dup2(nowhere, STDOUT_FILENO);
            (void)dup2(nowhere, STDERR_FILENO);
        }
        _exit(setenv("PVMSOCK", address, 1) == 0 && pvm_mytid() >= 0 && pvm_exit() >= 0 ? 0 : 1);
    }
    int wait_status = 1;
    while (child > 0 && waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

/* ---- a daemon of this job ---------------------------------------------------------------------------------------- */

static void end_with_parent(pid_t parent, int number)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent) {
        _exit(HK_EXIT_RANK_DIED);
    }
#else
    (void)parent;
    (void)number;
#endif
}

/* In the child: become the daemon, with these options. */
static void become_daemon(char *options, pid_t parent, int end_signal, int output)
{
    enum { WORDS_MAX = 16 };
    char program[PATH_ROOM];
    char *words[WORDS_MAX + 2] = {program};
    char *rest = NULL;
    sigset_t none;
    const char *given = getenv("PVM_DPATH");
    const char *root = getenv("PVM_ROOT");
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (given != NULL) {
        (void)snprintf(program, sizeof program, "%s", given);
    } else {
        (void)snprintf(program, sizeof program, "%s/lib/pvmd", root == NULL ? "/usr/lib/pvm3" : root);
    }
    (void)dup2(nowhere, STDIN_FILENO);
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(output, STDERR_FILENO);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    end_with_parent(parent, end_signal);
    int count = 0;
    for (char *word = strtok_r(options, " ", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        words[++count] = word;
    }
    (void)execvp(program, words);
    (void)printf("cannot run %s: %s\n", program, strerror(errno));
    (void)fflush(stdout);
    _exit(HK_EXIT_FAILED);
}

/* The daemon's first line: its greeting, or an error. False: there is none. */
static bool read_first_line(int output, char *line, size_t room)
{
    size_t len = 0;
    struct pollfd ready = {.fd = output, .events = POLLIN};
    const uint64_t end_ns = hk_real_now_ns(NULL) + START_LIMIT_MS * (uint64_t)1000000;
    *line = '\0';
    while (len + 1 < room && hk_real_now_ns(NULL) < end_ns && poll(&ready, 1, START_LIMIT_MS) == 1 &&
           read(output, &line[len], 1) == 1) {
        line[++len] = '\0';
        if (line[len - 1] == '\n') {
            cut_line(line);
            return true;
        }
    }
    return false;
}

/* A master says the name of a socket or HOST:PORT with digits, a slave "ddpro<2316> …". Any other text is an error. */
static bool is_greeting(const char *line)
{
    const size_t len = strlen(line);
    const bool is_address =
        len > 0 && strpbrk(line, " \t") == NULL && strchr("0123456789abcdef", line[len - 1]) != NULL;
    return is_address || strncmp(line, "ddpro<", 6) == 0;
}

/* The pipe stays open, because a daemon that cannot write might end. */
hk_status_t hk_pvm_start_daemon(int rank, char *options, int end_signal, char *line, size_t room, pid_t *daemon_p)
{
    char host[PATH_ROOM] = "";
    int output[2];
    const pid_t me = getpid();
    if (pipe(output) != 0) {
        return hk_fail(HK_ERR_SYSTEM, rank, "pvm: no pipe: %s", strerror(errno));
    }
    (void)fcntl(output[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(output[1], F_SETFD, FD_CLOEXEC);
    *daemon_p = fork();
    if (*daemon_p == 0) {
        become_daemon(options, me, end_signal, output[1]);
    }
    (void)close(output[1]);
    if (*daemon_p < 0) {
        return hk_fail(HK_ERR_SYSTEM, rank, "pvm: cannot start a process for the daemon: %s", strerror(errno));
    }
    if (!read_first_line(output[0], line, room) || !is_greeting(line)) {
        (void)gethostname(host, sizeof host - 1);
        return hk_fail(HK_ERR_SYSTEM, rank, "pvm: on %s the daemon did not start: %s", host,
                       *line == '\0' ? "it printed nothing" : line);
    }
    return HK_OK;
}

/* SIGTERM, then SIGKILL if it does not end; about a second at most. */
static void end_daemon(keeper_t *keeper)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    if (keeper->daemon <= 0) {
        return;
    }
    (void)kill(keeper->daemon, SIGTERM);
    for (int i = 0; i < END_STEPS; i++) {
        if (waitpid(keeper->daemon, NULL, WNOHANG) != 0) {
            return;
        }
        (void)nanosleep(&step, NULL);
    }
    (void)kill(keeper->daemon, SIGKILL);
    (void)waitpid(keeper->daemon, NULL, 0);
}

/* ---- the first process ------------------------------------------------------------------------------------------- */

static int end_of_job(int wait_status)
{
    if (WIFEXITED(wait_status)) {
        return WEXITSTATUS(wait_status);
    }
    hk_log(0, "pvm: the parent of the ranks was killed by signal %d", WTERMSIG(wait_status));
    return HK_EXIT_RANK_DIED;
}

/* Sleeps until the ranks or the daemon end, or a signal arrives. Returns the exit code. */
static int keep(keeper_t *keeper)
{
    for (;;) {
        int number = 0;
        int wait_status = 0;
        if (sigwait(&keeper->waited, &number) != 0 || number != SIGCHLD) {
            return HK_EXIT_RANK_DIED;
        }
        if (waitpid(keeper->job, &wait_status, WNOHANG) == keeper->job) {
            keeper->job = -1;
            return end_of_job(wait_status);
        }
        if (keeper->daemon > 0 && waitpid(keeper->daemon, &wait_status, WNOHANG) == keeper->daemon) {
            keeper->daemon = -1;
            if (WIFSIGNALED(wait_status)) {
                hk_log(0, "pvm: the PVM daemon was killed by signal %d", WTERMSIG(wait_status));
            } else {
                hk_log(0, "pvm: the PVM daemon has ended with exit code %d", WEXITSTATUS(wait_status));
            }
            return HK_EXIT_RANK_DIED;
        }
    }
}

static hk_status_t find_daemon(keeper_t *keeper)
{
    char address[PATH_ROOM] = "";
    const bool runs = read_address(address, sizeof address) && may_listen(address) && answers(address);
    clear_environment();
    HK_TRY(make_folder());
    if (!runs) {
        char no_options[] = "";
        HK_TRY(hk_pvm_start_daemon(0, no_options, SIGTERM, address, sizeof address, &keeper->daemon));
    }
    if (setenv("PVMSOCK", address, 1) != 0) {
        return hk_fail(HK_ERR_MEMORY, 0, "pvm: no memory");
    }
    return HK_OK;
}

/* Between hosts the ranks start the daemons (pvm_hosts.c): the first rank of each host is told to. */
static hk_status_t leave_to_ranks(int first_rank)
{
    char number[16];
    clear_environment();
    (void)snprintf(number, sizeof number, "%d", first_rank);
    return setenv(HK_PVM_KEEPER, number, 1) != 0 ? hk_fail(HK_ERR_MEMORY, 0, "pvm: no memory") : make_folder();
}

static int keep_job(keeper_t *keeper, const hk_args_t *args)
{
    const pid_t me = getpid();
    keeper->job = fork();
    if (keeper->job == 0) {
        (void)sigprocmask(SIG_SETMASK, &keeper->before, NULL);
        hk_die_with_parent(me);
        exit(hk_local_start(args));
    }
    if (keeper->job < 0) {
        hk_log(0, "pvm: cannot start a process for the ranks: %s", strerror(errno));
        return HK_EXIT_FAILED;
    }
    (void)close(STDIN_FILENO); /* only rank 0 reads it */
    const int exit_code = keep(keeper);
    if (keeper->job > 0) {
        (void)kill(keeper->job, SIGKILL); /* the ranks end with it */
        (void)waitpid(keeper->job, NULL, 0);
    }
    return exit_code;
}

static int start(const hk_args_t *args, int argc, char **argv)
{
    keeper_t keeper = {.job = -1, .daemon = -1};
    (void)argc;
    (void)argv;
    sigemptyset(&keeper.waited);
    sigaddset(&keeper.waited, SIGCHLD);
    sigaddset(&keeper.waited, SIGTERM);
    sigaddset(&keeper.waited, SIGINT);
    sigaddset(&keeper.waited, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &keeper.waited, &keeper.before);
    end_with_parent(getppid(), SIGTERM);
    const hk_status_t status = args->rank < 0 ? find_daemon(&keeper) : leave_to_ranks(args->rank);
    const int exit_code = status == HK_OK ? keep_job(&keeper, args) : HK_EXIT_FAILED;
    end_daemon(&keeper);
    hk_pvm_remove_folder();
    return exit_code;
}

const hk_family_t hk_family = {.name = "pvm", .start = start};
