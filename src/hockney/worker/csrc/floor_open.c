/* cold */
/* Whether there is a floor, and its line: everything that isn't timed. */
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

/* What each rank tells about itself, to see whether a floor makes sense. */
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

static const char *find_obstacle(hk_control_t *control, int oversubscribed, bool *apart_p)
{
    const floor_place_t mine = find_place();
    if (control->size < 2) {
        return "there is only one rank";
    }
    /* Only ranks 0 and 1 matter, but all take part: nobody may wait alone. */
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
        *apart_p = true;
        return "ranks 0 and 1 are on different hosts";
    }
    if (places[0].only_cpu >= 0 && places[0].only_cpu == places[1].only_cpu) {
        return "ranks 0 and 1 share a CPU";
    }
    return NULL;
}

/* Rank 0 makes a named mapping, all ranks map it, rank 0 takes the name away: this works for ranks that were started
 * by anything, on one host. */
static void *map_line(hk_control_t *control)
{
    char name[NAME_MAX_BYTES] = "";
    const int rank = control->rank;
    int fd = -1;
    if (rank == 0) {
        struct stat here;
        snprintf(name, sizeof name, "/hockney-%ld-%p", (long)getpid(), (void *)&here);
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
        if (fd < 0 || ftruncate(fd, LINE_BYTES) != 0) {
            hk_log(rank, "no shared page for the floor: %s", strerror(errno));
            if (fd >= 0) {
                close(fd);
                shm_unlink(name);
            }
            name[0] = '\0';
        }
    }
    if (hk_control_broadcast(control, name, sizeof name) != HK_OK || name[0] == '\0') {
        return NULL;
    }
    if (rank == 1) {
        fd = shm_open(name, O_RDWR, 0);
    }
    void *line = MAP_FAILED;
    if (fd >= 0) {
        line = mmap(NULL, LINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    const hk_status_t mine = rank < 2 && line == MAP_FAILED ? HK_ERR_SYSTEM : HK_OK;
    const hk_status_t all = hk_control_agree(control, mine);
    if (rank == 0) {
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
    floor_p->why = find_obstacle(control, oversubscribed, &floor_p->apart);
    if (floor_p->why == NULL) {
        floor_p->line = map_line(control);
        floor_p->apart = floor_p->line == NULL;
        floor_p->why = floor_p->apart ? "there is no shared memory between ranks 0 and 1" : NULL;
    }
    if (floor_p->line == MAP_FAILED) {
        floor_p->line = NULL; /* a rank above 1: it has no part in it */
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
