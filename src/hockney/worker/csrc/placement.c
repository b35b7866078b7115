/* cold */
#include "placement.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hk_map_find(const char *word, hk_map_t *map_p)
{
    static const char *const words[] = {[HK_MAP_CORE] = "core", [HK_MAP_SOCKET] = "socket", [HK_MAP_NODE] = "node"};
    for (int map = HK_MAP_CORE; map <= HK_MAP_NODE; map++) {
        if (strcmp(word, words[map]) == 0) {
            *map_p = (hk_map_t)map;
            return true;
        }
    }
    return false;
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

static int compare(const void *first, const void *second)
{
    const hk_map_cpu_t *a = first, *b = second;
    const int pairs[][2] = {
        {a->thread, b->thread}, {a->turn, b->turn}, {a->group, b->group}, {a->node, b->node}, {a->cpu, b->cpu}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
        }
    }
    return 0;
}

void hk_map_order(hk_map_t map, hk_map_cpu_t *cpus, int count)
{
    for (int i = 0; i < count; i++) {
        cpus[i].thread = cpus[i].turn = 0;
        cpus[i].group = cpus[i].socket;
        for (int other = 0; other < count; other++) {
            cpus[i].thread += cpus[other].core == cpus[i].core && cpus[other].cpu < cpus[i].cpu;
        }
    }
    qsort(cpus, (size_t)count, sizeof *cpus, compare);
    if (map == HK_MAP_CORE) {
        return;
    }
    for (int i = 0; i < count; i++) {
        cpus[i].group = map == HK_MAP_NODE ? cpus[i].node : cpus[i].socket;
        for (int before = 0; before < i; before++) {
            cpus[i].turn += cpus[before].thread == cpus[i].thread && cpus[before].group == cpus[i].group;
        }
    }
    qsort(cpus, (size_t)count, sizeof *cpus, compare);
}

/* ---- this host --------------------------------------------------------------------------------------------------- */

#ifdef __linux__

/* The first number in a file of a CPU, as of `0,4` or `0-1`. */
static int read_number(int cpu, const char *name, int otherwise)
{
    char path[96];
    int number = otherwise;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        char text[16];
        char *end = text;
        const long value = fgets(text, sizeof text, file) != NULL ? strtol(text, &end, 10) : 0;
        number = end != text ? (int)value : otherwise;
        (void)fclose(file);
    }
    return number;
}

/* Its folder has a link node0 where it is of that node. */
static int read_node(int cpu)
{
    char path[64];
    int node = -1;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && node < 0 && (entry = readdir(folder)) != NULL;) {
        const bool is_node = strncmp(entry->d_name, "node", 4) == 0 && isdigit((unsigned char)entry->d_name[4]) != 0;
        node = is_node ? (int)strtol(entry->d_name + 4, NULL, 10) : -1;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return node;
}

int hk_map_own(hk_map_t map, int *cpus, int most)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || sched_setaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    hk_map_cpu_t every[CPU_SETSIZE];
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((unsigned)cpu, &set)) {
            every[count++] = (hk_map_cpu_t){
                .cpu = cpu,
                .core = read_number(cpu, "thread_siblings_list", cpu),
                .socket = read_number(cpu, "physical_package_id", 0),
                .node = read_node(cpu),
            };
        }
    }
    hk_map_order(map, every, count);
    count = count < most ? count : most;
    for (int i = 0; i < count; i++) {
        cpus[i] = every[i].cpu;
    }
    return count;
}

int hk_bound_cpus(char text[HK_BOUND_BYTES])
{
    cpu_set_t set;
    size_t len = 0;
    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && len < HK_BOUND_BYTES; cpu++) {
        int last = cpu;
        if (!CPU_ISSET((unsigned)cpu, &set)) {
            continue;
        }
        while (last + 1 < CPU_SETSIZE && CPU_ISSET((unsigned)last + 1, &set)) {
            last++;
        }
        const char *comma = len > 0 ? "," : "";
        const int more = last > cpu ? snprintf(text + len, HK_BOUND_BYTES - len, "%s%d-%d", comma, cpu, last)
                                    : snprintf(text + len, HK_BOUND_BYTES - len, "%s%d", comma, cpu);
        len += (size_t)more;
        cpu = last;
    }
    if (len >= HK_BOUND_BYTES) {
        text[0] = '\0';
    }
    return CPU_COUNT(&set);
}

#else

int hk_map_own(hk_map_t map, int *cpus, int most)
{
    (void)map;
    (void)cpus;
    (void)most;
    return 0;
}

int hk_bound_cpus(char text[HK_BOUND_BYTES])
{
    text[0] = '\0';
    return 0;
}

#endif
