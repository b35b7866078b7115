/* cold */
#include "hello.h"

#include <sched.h>
#include <unistd.h>

#include "answer.h"
#include "version.h"

enum { CLOCK_CALLS = 1000 };

hk_identity_t hk_identify(void)
{
    hk_identity_t mine = {.pid = getpid(), .cpu = -1};
    gethostname(mine.host, sizeof mine.host - 1);
    hk_machine_name(mine.machine);
#ifdef __linux__
    (void)!readlink("/proc/self/ns/net", mine.network, sizeof mine.network - 1);
    mine.cpu = sched_getcpu();
#endif
    mine.cpus_usable = hk_bound_cpus(mine.bound);
    return mine;
}

static double clock_cost_ns(hk_ctx_t *ctx)
{
    uint64_t last_ns = 0;
    const uint64_t start_ns = ctx->tp->now_ns(ctx);
    for (int i = 0; i < CLOCK_CALLS; i++) {
        last_ns = ctx->tp->now_ns(ctx);
    }
    return (double)(last_ns - start_ns) / CLOCK_CALLS;
}

hk_status_t hk_answer_hello(uint64_t id, hk_ctx_t *ctx, const char *floor_why, const hk_identity_t *all, int count)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "hello", id);
    hk_answer_string(&answer, "worker", HK_WORKER_VERSION);
    hk_answer_string(&answer, "family", hk_family.name);
    hk_answer_string(&answer, "transport", ctx->tp->name);
    hk_answer_string(&answer, "library", ctx->tp->library(ctx));
    hk_answer_signed(&answer, "size", ctx->size);
    hk_answer_float(&answer, "clock_ns", clock_cost_ns(ctx));
    hk_answer_string(&answer, "floor_why", floor_why);
    hk_answer_open(&answer, "ranks", '[');
    for (int rank = 0; rank < count; rank++) {
        hk_answer_open(&answer, NULL, '{');
        hk_answer_signed(&answer, "rank", rank);
        hk_answer_string(&answer, "host", all[rank].host);
        hk_answer_string(&answer, "machine", all[rank].machine);
        hk_answer_string(&answer, "network", all[rank].network);
        hk_answer_signed(&answer, "pid", all[rank].pid);
        hk_answer_signed(&answer, "cpu", all[rank].cpu);
        hk_answer_signed(&answer, "cpus_usable", all[rank].cpus_usable);
        hk_answer_string(&answer, "bound", all[rank].bound);
        hk_answer_unsigned(&answer, "strangers", all[rank].strangers);
        hk_answer_close(&answer, '}');
    }
    hk_answer_close(&answer, ']');
    return hk_answer_send(&answer, STDOUT_FILENO);
}
