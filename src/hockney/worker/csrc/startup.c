/* cold */
#include "startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>
#include <unistd.h>

uint64_t hk_startup_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Linux's sum over all mappings, since 4.14. */
bool hk_memory_now(hk_memory_t *memory_p)
{
    char line[256];
    int found = 0;
    FILE *sums = fopen("/proc/self/smaps_rollup", "re");
    while (sums != NULL && fgets(line, sizeof line, sums) != NULL) {
        double *field = strncmp(line, "Rss:", 4) == 0   ? &memory_p->resident_bytes
                        : strncmp(line, "Pss:", 4) == 0 ? &memory_p->proportional_bytes
                                                        : NULL;
        if (field != NULL) {
            *field = 1024.0 * strtod(line + 4, NULL);
            found++;
        }
    }
    if (sums != NULL) {
        (void)fclose(sums);
    }
    return found == 2;
}

/* The 22nd field of /proc/PID/stat: when the process began, in ticks since the machine did. The second is the name in
 * brackets, which may hold anything. */
uint64_t hk_since_parent_ns(void)
{
#ifdef CLOCK_BOOTTIME
    enum { AFTER_NAME = 20 }; /* fields from the state to it */
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    char path[32];
    char text[512];
    struct timespec now;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)getppid());
    FILE *stat = fopen(path, "re");
    const char *at = stat != NULL && fgets(text, sizeof text, stat) != NULL ? strrchr(text, ')') : NULL;
    if (stat != NULL) {
        (void)fclose(stat);
    }
    for (int field = 0; field < AFTER_NAME && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL || ticks_per_s <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
        return 0;
    }
    const double began_s = strtod(at, NULL) / (double)ticks_per_s;
    const double since_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - began_s;
    return since_s > 0 ? (uint64_t)(since_s * 1e9) : 0;
#else
    return 0;
#endif
}
