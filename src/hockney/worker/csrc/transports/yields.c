/* A library's calls of sched_yield lead here: the loader prefers the program's own function to the C library's. CPU
 * times do not show them: Linux splits user from system time by ticks, in proportion over a thread's whole life. */
#include "yields.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_sched_yield
static atomic_ullong yields;

int sched_yield(void)
{
    atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
    return (int)syscall(SYS_sched_yield);
}

bool hk_yields_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    (void)ctx;
    *counter_p = (hk_counter_t){"yields", (double)atomic_load_explicit(&yields, memory_order_relaxed)};
    return i == 0;
}
#else
bool hk_yields_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p)
{
    (void)ctx;
    (void)i;
    (void)counter_p;
    return false;
}
#endif
