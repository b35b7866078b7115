/* What a rank does when another one fails: it allocates nothing alone, undoes its own part, and leaves no file. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "measure.h"
#include "registry.h"

extern const hk_transport_t hk_transport_null;

static int agreements, failing, broadcasts, failing_broadcast, allocations, frees;
static bool write_modes[4];
static size_t modes;
static int this_rank;

/* In place of libc's, between the two ranks: the other rank's status in the agreement number `failing` is an error, and
 * it is gone when it is to get the broadcast number `failing_broadcast`. */
ssize_t send(int fd, const void *buf, size_t size_bytes, int flags)
{
    static const unsigned char error = HK_ERR_MEMORY;
    (void)flags;
    if (this_rank == 0 && ++broadcasts == failing_broadcast) {
        errno = EPIPE;
        return -1;
    }
    return write(fd, this_rank == 1 && size_bytes == 1 && ++agreements == failing ? &error : buf, size_bytes);
}

/* The body as rank 1 in a child, and as rank 0 here. */
static void run(void (*body)(hk_control_t *control))
{
    int ends[2];
    agreements = broadcasts = allocations = frees = 0;
    modes = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t pid = check_fork();
    this_rank = pid == 0 ? 1 : 0;
    CHECK(close(ends[this_rank]) == 0);
    int fds[2] = {ends[0], ends[1]};
    fds[0] = this_rank == 0 ? -1 : ends[0];
    hk_control_t control = {.rank = this_rank, .size = 2, .fds = fds};
    body(&control);
    if (this_rank == 1) {
        exit(0);
    }
    check_end(pid);
    if (fds[1] >= 0) {
        CHECK(close(fds[1]) == 0);
    }
}

static void *count_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    allocations++;
    return hk_private_alloc(ctx, size_bytes);
}

static void count_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    frees++;
    hk_private_free(ctx, memory, size_bytes);
}

static hk_status_t note_mode(hk_ctx_t *ctx, int peer, bool write_now, bool read_now)
{
    CHECK(peer == 1 - ctx->rank && modes < 4 && (ctx->rank == 1 || !read_now));
    write_modes[modes++] = write_now;
    return HK_OK;
}

static const hk_transport_t scripted = {.name = "scripted",
                                        .caps = HK_CAP_SEND | HK_CAP_STREAM,
                                        .alloc = count_alloc,
                                        .free = count_free,
                                        .stream_mode = note_mode,
                                        .now_ns = hk_real_now_ns};

static hk_bench_t fail(hk_control_t *control, const hk_transport_t *tp, const char *line, hk_status_t status)
{
    static hk_ctx_t ctx; /* a thread may outlast the point */
    ctx = (hk_ctx_t){.tp = tp, .rank = control->rank, .size = 2};
    hk_bench_t bench = {.ctx = &ctx, .control = control, .floor = {.why = "none"}, .oversubscribed = true};
    hk_command_t command;
    hk_result_t result;
    char error[HK_ERROR_MAX];
    CHECK(hk_command_parse(line, strlen(line), &command, error) == HK_OK);
    CHECK(hk_watch_open(0, &bench.watch) == HK_OK);
    CHECK(hk_measure(&bench, &command, &result) == status);
    hk_watch_close(bench.watch);
    return bench;
}

static void measure(hk_control_t *control)
{
    const hk_bench_t bench =
        fail(control, &scripted, "measure pattern=stream bytes=100 write=nonblocking", HK_ERR_MEMORY);
    CHECK(this_rank == 0 || agreements >= failing);
    CHECK(frees == allocations && bench.in == NULL && bench.out == NULL);
}

static void fail_at(int agreement)
{
    failing = agreement;
    run(measure);
}

/* ---- a thread that is still in its loop when the point has failed ------------------------------------------------ */

static _Atomic bool is_inside, has_failed, went_on;

static hk_status_t do_nothing(hk_ctx_t *ctx, hk_parted_t *message)
{
    return (void)ctx, (void)message, HK_OK;
}

/* Of four parts thread 1 has 1 and 3. Part 0 fails while it is inside 1, and it leaves 1 after the end of the point. */
static hk_status_t pass_on(hk_ctx_t *ctx, hk_parted_t *message, int part)
{
    const _Atomic bool *awaited = part == 0 ? &is_inside : &has_failed;
    (void)ctx;
    if (part == 1) {
        atomic_store(&is_inside, true);
    }
    while (!atomic_load(awaited)) {
        (void)usleep(1000);
    }
    atomic_store(&went_on, part == 3);
    CHECK(message->count == 4);
    return part == 0 ? HK_ERR_SYSTEM : HK_OK;
}

static void check_thread_in_its_loop(void)
{
    static const hk_parts_hooks_t parts = {do_nothing, do_nothing, pass_on, NULL, do_nothing, NULL};
    hk_transport_t parted = hk_transport_null;
    hk_control_t alone = {.size = 1, .fds = (int[]){-1}};
    parted.parts = &parts;
    (void)alarm(CHECK_LIMIT_S);
    (void)fail(&alone, &parted, "measure pattern=partitioned bytes=8 partitions=4 threads=2", HK_ERR_PEER);
    unsigned char *other[64];
    for (size_t i = 0; i < 64; i++) { /* what was freed is now other memory */
        other[i] = malloc(16 * (i + 1));
        CHECK(other[i] != NULL && memset(other[i], 0x5a, 16 * (i + 1)) == other[i]);
    }
    atomic_store(&has_failed, true);
    while (!atomic_load(&went_on)) {
        (void)usleep(1000);
    }
    for (size_t i = 0; i < 64; i++) {
        free(other[i]);
    }
}

static void open_floor(hk_control_t *control)
{
    hk_floor_t floor;
    CHECK(hk_floor_open(control, 0, &floor) == HK_OK || control->rank == 1);
    CHECK(floor.line == NULL && (floor.why != NULL || control->rank == 1));
}

static void check_shared_page(void)
{
    char mine[64];
    failing = 0;
    failing_broadcast = 3; /* of the page's name, after the places */
    run(open_floor);
    const int len = snprintf(mine, sizeof mine, "hockney-%ld-", (long)getpid());
    DIR *folder = opendir("/dev/shm");
    for (const struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
        CHECK(strncmp(entry->d_name, mine, (size_t)len) != 0);
    }
    CHECK(folder == NULL || closedir(folder) == 0);
}

int main(void)
{
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    fail_at(1); /* room for the samples */
    fail_at(2); /* the other host has too little memory: an allocation here would wait for it */
    CHECK(allocations == 0 && modes == 0);
    fail_at(3); /* the other rank's first allocation: none goes on to the second */
    CHECK(allocations == 1 && modes == 0);
    fail_at(4); /* its second one: none prepares */
    CHECK(allocations == 2 && modes == 0);
    fail_at(5); /* the other rank's prepare */
    CHECK(allocations == 2 && modes == 2 && write_modes[0] && !write_modes[1]);
    check_shared_page();
    check_thread_in_its_loop();
    return 0;
}
