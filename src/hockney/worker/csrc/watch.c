/* cold */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "io.h"

/* Between a rank's message and its end, which ends other ranks: all that answer can report by then. */
enum { REPORT_MS = 500 };
/* After the end of the watched descriptor, until its thread has ended the process. */
enum { GIVE_WAY_MS = 1000 };

struct hk_watch {
    int rank;
    int fd; /* the watched descriptor */
#ifdef __linux__
    timer_t timer;
#endif
    int64_t due_ms;    /* end of the limit, by CLOCK_MONOTONIC */
    char text[2][192]; /* messages at the time limit, formatted in advance because a signal handler cannot */
    size_t text_len[2];
    volatile sig_atomic_t is_done; /* chooses one */
    size_t (*volatile ask)(const void *of, char *text, size_t len);
    const void *of;
};

/* SIGALRM's handler gets the watch with the signal, so there is no global. Async-signal-safe calls only. */
static void end_process(int signal_number, siginfo_t *info, void *unused)
{
    (void)signal_number;
    (void)unused;
#ifdef __linux__
    const hk_watch_t *watch = info->si_value.sival_ptr;
    /* One that was stopped has not answered, even if its launcher wakes it up to end it. */
    if (info->si_code == SI_TIMER && watch != NULL && hk_now_ms() <= watch->due_ms + REPORT_MS) {
        char text[sizeof watch->text[0] + 128];
        size_t len = watch->text_len[watch->is_done];
        memcpy(text, watch->text[watch->is_done], len);
        if (watch->ask != NULL && !watch->is_done) {
            len += watch->ask(watch->of, text + len, sizeof text - len - 1);
        }
        text[len] = '\n';
        const ssize_t written = write(STDERR_FILENO, text, len + 1);
        (void)written;
        (void)poll(NULL, 0, REPORT_MS);
    }
#else
    (void)info;
#endif
    _exit(HK_EXIT_TIMEOUT);
}

hk_status_t hk_watch_open(int rank, hk_watch_t **watch_p)
{
    hk_watch_t *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        return hk_fail(HK_ERR_MEMORY, rank, "no memory");
    }
    watch->rank = rank;
    watch->fd = -1;
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = end_process;
    sigaction(SIGALRM, &action, NULL);
    /* A blocked SIGALRM is inherited from the parent process, and then no limit would ever fire. */
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
#ifdef __linux__
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    event.sigev_value.sival_ptr = watch;
    if (timer_create(CLOCK_MONOTONIC, &event, &watch->timer) != 0) {
        hk_log(rank, "no timer: %s", strerror(errno));
        free(watch);
        return HK_ERR_SYSTEM;
    }
#endif
    *watch_p = watch;
    return HK_OK;
}

void hk_watch_close(hk_watch_t *watch)
{
    hk_watch_disarm(watch);
#ifdef __linux__
    timer_delete(watch->timer);
#endif
    if (watch->fd < 0) {
        free(watch); /* otherwise its thread still uses it, and the process ends soon */
    }
}

static void set_timer(hk_watch_t *watch, unsigned limit_s)
{
#ifdef __linux__
    const struct itimerspec limit = {.it_value = {.tv_sec = (time_t)limit_s}};
    timer_settime(watch->timer, 0, &limit, NULL);
#else
    (void)watch;
    const struct itimerval limit = {.it_value = {.tv_sec = (time_t)limit_s}};
    setitimer(ITIMER_REAL, &limit, NULL);
#endif
}

void hk_watch_arm(hk_watch_t *watch, unsigned limit_s, const char *doing)
{
    static const char *const ends[2] = {"", ", waiting for others"};
    for (int i = 0; i < 2; i++) {
        const int len =
            snprintf(watch->text[i], sizeof watch->text[i], "hockney worker: rank %d: no end after %u s in %s%s",
                     watch->rank, limit_s, doing, ends[i]);
        watch->text_len[i] = len < (int)sizeof watch->text[i] ? (size_t)len : sizeof watch->text[i] - 1;
    }
    watch->is_done = 0;
    watch->due_ms = hk_now_ms() + (int64_t)limit_s * 1000;
    set_timer(watch, limit_s);
}

void hk_watch_disarm(hk_watch_t *watch)
{
    set_timer(watch, 0);
    watch->ask = NULL;
}

void hk_watch_ask(hk_watch_t *watch, size_t (*ask)(const void *of, char *text, size_t len), const void *of)
{
    watch->of = of;
    watch->ask = ask;
}

void hk_watch_done(hk_watch_t *watch, bool is_done)
{
    watch->is_done = is_done;
}

/* The name of a file of MPICH, or of libfabric: `12345:0:…`, with the number of a process. */
static bool is_of_library(const char *name)
{
    static const char start[] = "mpich_shm_";
    const size_t pid_len = strspn(name, "0123456789");
    const size_t number_len = pid_len > 0 && name[pid_len] == ':' ? strspn(name + pid_len + 1, "0123456789") : 0;
    return strncmp(name, start, sizeof start - 1) == 0 || (number_len > 0 && name[pid_len + 1 + number_len] == ':');
}

/* The file is this job's: this process maps it. */
void hk_remove_shared_memory(void)
{
    static const char folder[] = "/dev/shm/";
    const size_t folder_len = sizeof folder - 1;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        if (path != NULL && strncmp(path, folder, folder_len) == 0 && is_of_library(path + folder_len)) {
            path[strcspn(path, " \n")] = '\0'; /* " (deleted)" follows the name of one that is gone */
            (void)unlink(path);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
}

/* Uses of descriptors that two threads share are counted: some 50 ns of each write(2) to a pipe. So this thread takes a
 * table of its own, without those above fd: a socket that the rank closes must not stay open here. Linux 5.9 can. */
static void share_no_descriptors(int fd)
{
#ifdef SYS_close_range
    const unsigned unshare = 1U << 1; /* CLOSE_RANGE_UNSHARE, which older headers lack */
    (void)syscall(SYS_close_range, (unsigned)fd + 1, ~0U, unshare);
#else
    (void)fd;
#endif
}

void hk_watch_give_way(const hk_watch_t *watch)
{
    if (watch->fd >= 0) {
        (void)poll(NULL, 0, GIVE_WAY_MS);
    }
}

static void *wait_for_end(void *argument)
{
    const hk_watch_t *watch = argument;
    share_no_descriptors(watch->fd);
    struct pollfd entry = {.fd = watch->fd}; /* no events requested: POLLHUP and POLLERR are always reported */
    for (;;) {
        if (poll(&entry, 1, -1) > 0 && entry.revents != 0) {
            hk_remove_shared_memory();
            _exit(HK_EXIT_FAILED);
        }
    }
    return NULL;
}

hk_status_t hk_watch_end_of(hk_watch_t *watch, int fd)
{
    if (watch->fd >= 0) {
        return HK_OK;
    }
    watch->fd = fd;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Block all signals in this thread: they are for the ranks. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, &attributes, wait_for_end, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed != 0) {
        hk_log(watch->rank, "cannot start a thread: %s", strerror(failed));
        watch->fd = -1;
        return HK_ERR_SYSTEM;
    }
    return HK_OK;
}
