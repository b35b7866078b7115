/* cold */
/* Whether there is a floor, and its cache line. Untimed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "floor.h"
#include "transport.h"

enum { NAME_MAX_BYTES = 64, LINE_BYTES = 4096 };

/* The location of a rank, to decide whether there is a floor. */
typedef struct floor_place {
    char host[64];
    int only_cpu; /* the one CPU this rank may use, or -1 */
} floor_place_t;

static floor_place_t find_place(void)
{
    floor_place_t place = {.only_cpu = -1};
    gethostname(place.host, sizeof place.host - 1);
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET((unsigned)cpu, &set)) {
                place.only_cpu = cpu;
            }
        }
    }
#endif
    return place;
}

static const char *find_obstacle(hk_control_t *control, int oversubscribed, bool *is_remote_p)
{
    const floor_place_t mine = find_place();
    if (control->size < 2) {
        return "there is only one rank";
    }
    /* Only ranks 0 and 1 matter, but the gather needs all ranks. */
    floor_place_t *all = calloc((size_t)control->size, sizeof mine);
    const hk_status_t status = hk_control_agree(control, all == NULL ? HK_ERR_MEMORY : HK_OK);
    if (all == NULL || status != HK_OK || hk_control_allgather(control, &mine, sizeof mine, all) != HK_OK) {
        free(all);
        return "a rank is gone or has no memory";
    }
    floor_place_t places[2];
    memcpy(places, all, sizeof places);
    free(all);
    if (oversubscribed) {
        return "there are more ranks than CPUs";
    }
    if (strcmp(places[0].host, places[1].host) != 0) {
        *is_remote_p = true;
        return "ranks 0 and 1 are on different hosts";
    }
    if (places[0].only_cpu >= 0 && places[0].only_cpu == places[1].only_cpu) {
        return "ranks 0 and 1 share a CPU";
    }
    return NULL;
}

/* Gives a file its memory now; 0 or an error number. In a full /dev/shm its first use would be a SIGBUS. */
static int reserve(int fd)
{
#ifdef __linux__
    return posix_fallocate(fd, 0, LINE_BYTES);
#else
    return ftruncate(fd, LINE_BYTES) == 0 ? 0 : errno;
#endif
}

/* Rank 0 creates a named mapping, all ranks map it, and rank 0 removes the name. This works for ranks of one host,
 * however they were started. */
static void *map_line(hk_control_t *control)
{
    char name[NAME_MAX_BYTES] = "";
    const int rank = control->rank;
    int fd = -1;
    if (rank == 0) {
        struct stat here;
        snprintf(name, sizeof name, "/hockney-%ld-%p", (long)getpid(), (void *)&here);
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
        const int reason = fd < 0 ? errno : reserve(fd);
        if (reason != 0) {
            hk_log(rank, "no shared page for the floor: %s", strerror(reason));
            if (fd >= 0) {
                close(fd);
                fd = -1;
                shm_unlink(name);
            }
            name[0] = '\0';
        }
    }
    hk_status_t all = hk_control_broadcast(control, name, sizeof name);
    if (all == HK_OK && name[0] == '\0') {
        return NULL;
    }
    if (all == HK_OK && rank == 1) {
        fd = shm_open(name, O_RDWR, 0);
    }
    void *line = MAP_FAILED;
    if (fd >= 0) {
        line = mmap(NULL, LINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (all == HK_OK) {
        all = hk_control_agree(control, rank < 2 && line == MAP_FAILED ? HK_ERR_SYSTEM : HK_OK);
    }
    if (rank == 0 && name[0] != '\0') {
        shm_unlink(name);
    }
    if (all != HK_OK && line != MAP_FAILED) {
        munmap(line, LINE_BYTES);
    }
    return all == HK_OK ? line : NULL;
}

hk_status_t hk_floor_open(hk_control_t *control, int oversubscribed, hk_floor_t *floor_p)
{
    *floor_p = (hk_floor_t){.rank = control->rank};
    floor_p->why = find_obstacle(control, oversubscribed, &floor_p->is_remote);
    if (floor_p->why == NULL) {
        floor_p->line = map_line(control);
        floor_p->is_remote = floor_p->line == NULL;
        floor_p->why = floor_p->is_remote ? "there is no shared memory between ranks 0 and 1" : NULL;
    }
    if (floor_p->line == MAP_FAILED) {
        floor_p->line = NULL; /* ranks above 1 do not use it */
    }
    return HK_OK;
}

void hk_floor_close(hk_floor_t *floor)
{
    if (floor->line != NULL) {
        munmap(floor->line, LINE_BYTES);
        floor->line = NULL;
    }
}
