/* The real machine: clock, memory, CPUs. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "family.h"
#include "transport.h"

uint64_t hk_real_now_ns(hk_ctx_t *ctx)
{
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t hk_time_of_day_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void hk_real_compute(hk_ctx_t *ctx, uint64_t duration_ns)
{
    const uint64_t end_ns = hk_real_now_ns(ctx) + duration_ns;
    while (hk_real_now_ns(ctx) < end_ns) {
    }
}

void hk_real_spin(hk_ctx_t *ctx, uint64_t turns)
{
    (void)ctx;
    while (turns-- > 0) {
        __asm__ volatile(""); /* stops the compiler from removing the loop */
    }
}

void hk_real_sleep(hk_ctx_t *ctx, uint64_t duration_ns)
{
    (void)ctx;
    struct timespec left = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                            .tv_nsec = (long)(duration_ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

void *hk_private_alloc(hk_ctx_t *ctx, size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
            hk_log(ctx->rank, "no memory for a buffer of %zu bytes: a process may have %llu KiB (ulimit -v)",
                   size_bytes, (unsigned long long)limit.rlim_cur / 1024);
        } else {
            hk_log(ctx->rank, "no memory for a buffer of %zu bytes", size_bytes);
        }
        return NULL;
    }
    return memory;
}

void hk_private_free(hk_ctx_t *ctx, void *memory, size_t size_bytes)
{
    (void)ctx;
    (void)munmap(memory, size_bytes);
}

hk_status_t hk_pin(const hk_args_t *args, int local_rank)
{
    if (args->cpus_count == 0) {
        return HK_OK;
    }
#ifdef __linux__
    const int cpu = args->cpus[local_rank % args->cpus_count];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        return hk_fail(HK_ERR_SYSTEM, local_rank, "cannot pin to CPU %d: %s", cpu, strerror(errno));
    }
#else
    (void)local_rank; /* no portable way; `doctor` reports that ranks are not pinned */
#endif
    return HK_OK;
}

void hk_machine_name(char name[HK_MACHINE_BYTES])
{
    memset(name, 0, HK_MACHINE_BYTES);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL || fscanf(file, "%63s", name) != 1) {
        gethostname(name, HK_MACHINE_BYTES - 1);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void hk_die_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(HK_EXIT_RANK_DIED); /* the parent ended before the call, so the signal will never come */
    }
#else
    (void)parent;
#endif
}
