/* What a rank does when another one fails: it allocates nothing alone, undoes its own part, and leaves no file. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "measure.h"
#include "registry.h"

static int agreements, failing, broadcasts, failing_broadcast, allocations, frees;
static bool write_modes[4];
static size_t modes;

/* The other rank has the same as this one, and its status in the agreement number `failing` is an error. */
static hk_status_t gather(int rank, const void *mine, size_t size_bytes, void *all)
{
    unsigned char *other = (unsigned char *)all + size_bytes;
    CHECK(rank == 0);
    memcpy(all, mine, size_bytes);
    memcpy(other, mine, size_bytes);
    if (size_bytes == 1 && ++agreements == failing) {
        *other = HK_ERR_MEMORY;
    }
    return HK_OK;
}

static hk_status_t broadcast(int rank, void *buf, size_t size_bytes)
{
    CHECK(rank == 0 && buf != NULL && size_bytes > 0);
    return ++broadcasts == failing_broadcast ? HK_ERR_PEER : HK_OK;
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
    CHECK(ctx->rank == 0 && peer == 1 && !read_now && modes < 4);
    write_modes[modes++] = write_now;
    return HK_OK;
}

static const hk_transport_t scripted = {.name = "scripted",
                                        .caps = HK_CAP_SEND | HK_CAP_STREAM,
                                        .alloc = count_alloc,
                                        .free = count_free,
                                        .stream_mode = note_mode,
                                        .now_ns = hk_real_now_ns};
static const hk_control_calls_t calls = {.gather = gather, .broadcast = broadcast};

static void fail_at(int agreement)
{
    hk_ctx_t ctx = {&scripted, 0, 2};
    hk_control_t control = {.size = 2, .calls = &calls};
    hk_bench_t bench = {.ctx = &ctx, .control = &control, .floor = {.why = "none"}};
    hk_command_t command;
    hk_result_t result;
    char error[HK_ERROR_MAX];
    static const char line[] = "measure pattern=stream bytes=100 write=nonblocking";
    agreements = allocations = frees = 0;
    modes = 0;
    failing = agreement;
    CHECK(hk_command_parse(line, sizeof line - 1, &command, error) == HK_OK);
    CHECK(hk_watch_open(0, &bench.watch) == HK_OK);
    CHECK(hk_measure(&bench, &command, &result) == HK_ERR_MEMORY);
    hk_watch_close(bench.watch);
    CHECK(agreements >= agreement && frees == allocations && bench.in == NULL && bench.out == NULL);
}

static void check_shared_page(void)
{
    char mine[64];
    hk_control_t control = {.size = 2, .calls = &calls};
    hk_floor_t floor;
    broadcasts = 0;
    failing_broadcast = 3; /* of the page's name, after the places */
    CHECK(hk_floor_open(&control, 0, &floor) == HK_OK && floor.line == NULL && floor.why != NULL);
    const int len = snprintf(mine, sizeof mine, "hockney-%ld-", (long)getpid());
    DIR *folder = opendir("/dev/shm");
    for (const struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
        CHECK(strncmp(entry->d_name, mine, (size_t)len) != 0);
    }
    CHECK(folder == NULL || closedir(folder) == 0);
}

int main(void)
{
    fail_at(1); /* room for the samples */
    fail_at(2); /* the other host has too little memory: an allocation here would wait for it */
    CHECK(allocations == 0 && modes == 0);
    fail_at(3); /* the other rank's prepare */
    CHECK(allocations == 2 && modes == 2 && write_modes[0] && !write_modes[1]);
    check_shared_page();
    return 0;
}
