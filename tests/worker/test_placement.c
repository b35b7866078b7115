/* The order in which ranks take the CPUs of made-up hosts, and the CPUs of a thread as text. */
#include <sched.h>
#include <string.h>

static const cpu_set_t *made_up; /* NULL: this thread's CPUs, of which a small machine has few */

static int get_affinity(pid_t pid, size_t size_bytes, cpu_set_t *set)
{
    if (made_up == NULL) {
        return sched_getaffinity(pid, size_bytes, set);
    }
    *set = *made_up;
    return 0;
}

#define hk_map_find tested_map_find
#define hk_map_order tested_map_order
#define hk_map_own tested_map_own
#define hk_bound_cpus tested_bound_cpus
#define sched_getaffinity get_affinity
#include "placement.c" /* NOLINT(bugprone-suspicious-include): as other CPUs are made up */
#undef sched_getaffinity

#include "check.h"

enum { CPUS_MAX = 16 };

/* Two sockets, each of two nodes of two cores: consecutive cores are of one socket, or alternate between the two. The
 * second threads come as 8 further CPUs. */
static int host_of(int threads, bool alternate, hk_map_cpu_t *cpus)
{
    const int count = 8 * threads;
    for (int cpu = 0; cpu < count; cpu++) {
        const int core = cpu % 8, socket = alternate ? core % 2 : core / 4;
        const int in_socket = alternate ? core / 2 : core % 4;
        cpus[cpu] = (hk_map_cpu_t){.cpu = cpu, .core = core, .socket = socket, .node = 2 * socket + in_socket / 2};
    }
    return count;
}

static void check_order(hk_map_t map, hk_map_cpu_t *cpus, int count, const int *expected)
{
    hk_map_order(map, cpus, count);
    for (int i = 0; i < count; i++) {
        CHECK(cpus[i].cpu == expected[i]);
    }
}

static void check_maps(void)
{
    hk_map_cpu_t cpus[CPUS_MAX];
    check_order(HK_MAP_CORE, cpus, host_of(1, false, cpus), (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_order(HK_MAP_CORE, cpus, host_of(1, true, cpus), (const int[]){0, 2, 4, 6, 1, 3, 5, 7});
    check_order(HK_MAP_SOCKET, cpus, host_of(1, false, cpus), (const int[]){0, 4, 1, 5, 2, 6, 3, 7});
    check_order(HK_MAP_SOCKET, cpus, host_of(1, true, cpus), (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_order(HK_MAP_NODE, cpus, host_of(1, false, cpus), (const int[]){0, 2, 4, 6, 1, 3, 5, 7});
}

static void check_threads_last(void)
{
    hk_map_cpu_t cpus[CPUS_MAX];
    const int by_core[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int by_socket[] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
    check_order(HK_MAP_CORE, cpus, host_of(2, false, cpus), by_core);
    check_order(HK_MAP_SOCKET, cpus, host_of(2, false, cpus), by_socket);
}

/* A job may have only some CPUs: more of one socket, and second threads whose first ones belong to others. */
static void check_part_of_a_host(void)
{
    hk_map_cpu_t every[CPUS_MAX], some[CPUS_MAX];
    const int usable[] = {0, 1, 2, 4, 8, 13};
    (void)host_of(2, false, every);
    for (int i = 0; i < 6; i++) {
        some[i] = every[usable[i]];
    }
    check_order(HK_MAP_SOCKET, some, 6, (const int[]){0, 4, 1, 13, 2, 8});
}

/* The turns of second threads begin anew, also where one socket has more cores. */
static void check_sockets_of_unequal_size(void)
{
    hk_map_cpu_t every[CPUS_MAX], some[CPUS_MAX];
    const int usable[] = {0, 1, 2, 4, 8, 9, 10, 12};
    (void)host_of(2, false, every);
    for (int i = 0; i < 8; i++) {
        some[i] = every[usable[i]];
    }
    check_order(HK_MAP_SOCKET, some, 8, (const int[]){0, 4, 1, 2, 8, 12, 9, 10});
}

static void check_bound(void)
{
    char text[HK_BOUND_BYTES];
    cpu_set_t before, set;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(hk_bound_cpus(text) == CPU_COUNT(&before));
    CHECK(text[0] >= '0' && text[0] <= '9');
    int cpu = 0;
    while (!CPU_ISSET((unsigned)cpu, &before)) {
        cpu++;
    }
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    char expected[16];
    (void)snprintf(expected, sizeof expected, "%d", cpu);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
    CHECK(hk_bound_cpus(text) == 1 && strcmp(text, expected) == 0);
    int own[2];
    CHECK(hk_map_own(HK_MAP_NODE, own, 2) == 1 && own[0] == cpu);
}

static void check_text(int count, const int *cpus, const char *expected)
{
    char text[HK_BOUND_BYTES];
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++) {
        CPU_SET((unsigned)cpus[i], &set);
    }
    made_up = &set;
    CHECK(hk_bound_cpus(text) == count && strcmp(text, expected) == 0);
    made_up = NULL;
}

static void check_texts(void)
{
    int odd[100];
    for (int i = 0; i < 100; i++) {
        odd[i] = 2 * i + 1;
    }
    check_text(1, (const int[]){7}, "7");
    check_text(4, (const int[]){0, 1, 2, 4}, "0-2,4");
    check_text(4, (const int[]){2, 5, 1022, 1023}, "2,5,1022-1023");
    check_text(100, odd, ""); /* too long */
}

int main(void)
{
    hk_map_t map;
    CHECK(hk_map_find("node", &map) && map == HK_MAP_NODE);
    CHECK(!hk_map_find("0", &map));
    check_maps();
    check_threads_last();
    check_part_of_a_host();
    check_sockets_of_unequal_size();
    check_bound();
    check_texts();
    return 0;
}
