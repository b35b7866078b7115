#include "samples.h"

#include <string.h>

#include <sys/resource.h>
#include <time.h>

#include "pace.h"
#include "registry.h"
#include "sync.h"

enum { REFERENCE_TRIPS = 5 };

static uint64_t ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* This rank's CPU time so far; where the system supports it, of its thread only, to separate ranks that are threads. If
 * patterns have threads, of all of them. */
static void read_cpu(hk_ctx_t *ctx, uint64_t *user_ns_p, uint64_t *system_ns_p)
{
    struct rusage usage;
    struct timespec unused;
    if (ctx->tp->cpu_ns != NULL) {
        ctx->tp->cpu_ns(ctx, user_ns_p, system_ns_p);
        return;
    }
    /* Linux updates a running thread's time only at ticks and when this clock is read. Without this call a rank that
     * spins for less than a tick would show no CPU time. */
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &unused);
#ifdef RUSAGE_THREAD
    getrusage((ctx->tp->caps & HK_CAP_MULTIPLE) != 0 ? RUSAGE_SELF : RUSAGE_THREAD, &usage);
#else
    getrusage(RUSAGE_SELF, &usage);
#endif
    *user_ns_p = ns_of(usage.ru_utime);
    *system_ns_p = ns_of(usage.ru_stime);
}

/* CLOCK_MONOTONIC, which kernel ticks follow, for any clock of the samples; 0 if time is virtual. */
static uint64_t kernel_ns(const hk_ctx_t *ctx)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ctx->tp->now_ns == hk_real_now_ns ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec : 0;
}

/* The account covers the time from start to stop. */
static void start_account(hk_ctx_t *ctx, hk_account_t *account)
{
    uint64_t user_ns, system_ns;
    account->wall_ns -= ctx->tp->now_ns(ctx);
    read_cpu(ctx, &user_ns, &system_ns);
    account->cpu_user_ns -= user_ns;
    account->cpu_system_ns -= system_ns;
}

static void stop_account(hk_ctx_t *ctx, hk_account_t *account)
{
    uint64_t user_ns, system_ns;
    read_cpu(ctx, &user_ns, &system_ns);
    account->cpu_user_ns += user_ns;
    account->cpu_system_ns += system_ns;
    account->wall_ns += ctx->tp->now_ns(ctx);
}

/* Reads the pattern's counters, then the transport's; names only if name is not NULL. */
static void read_counters(const hk_run_t *run, double *value, const char **name)
{
    const hk_pattern_t *pattern = run->pattern;
    const hk_transport_t *tp = run->ctx->tp;
    hk_counter_t counter;
    size_t count = 0;
    for (size_t i = 0; count < HK_COUNTERS_MAX && pattern->counter != NULL && pattern->counter(run, i, &counter); i++) {
        value[count] = counter.value;
        name[count++] = counter.name;
    }
    for (size_t i = 0; count < HK_COUNTERS_MAX && tp->counter != NULL && tp->counter(run->ctx, i, &counter); i++) {
        value[count] = counter.value;
        name[count++] = counter.name;
    }
}

/* The most repetitions in one call of repeat: a warm-up, a batch, or all samples on schedule. */
static uint64_t most_repetitions(const hk_command_t *command)
{
    const uint64_t timed = command->samples > command->batch ? command->samples : command->batch;
    return timed > command->warmup ? timed : command->warmup;
}

hk_run_t hk_run_of(hk_ctx_t *ctx, const hk_command_t *command)
{
    hk_run_t run = {.ctx = ctx,
                    .pattern = hk_patterns[command->pattern],
                    .bytes = command->bytes,
                    .reps_max = most_repetitions(command)};
    memcpy(run.option, command->option, sizeof run.option);
    memcpy(run.list, command->list, sizeof run.list);
    return run;
}

/* A scheduled warm-up stores its times too, and may be a whole period. */
uint64_t hk_times_room(const hk_command_t *command, const hk_plan_t *plan)
{
    return plan->scheduled ? most_repetitions(command) + plan->period : command->samples;
}

/* At least the requested number. If the transport keeps resources, at least one period, so that all messages are
 * used once. This applies to every measurement, because a point with larger buffers frees the kept resources. */
static uint64_t warmup_of(const hk_command_t *command, const hk_run_t *run, const hk_plan_t *plan)
{
    const uint64_t all = plan->period > 0 ? plan->period : 1;
    const bool keeps = (run->ctx->tp->caps & HK_CAP_KEEPS) != 0;
    return keeps && command->warmup < all ? all : command->warmup;
}

/* Synchronise the ranks, untimed. This also completes one-sided operations. */
static hk_status_t synchronise(hk_run_t *run)
{
    const hk_status_t status = hk_sync(run->ctx);
    return status == HK_OK && run->pattern->meet != NULL ? run->pattern->meet(run) : status;
}

/* On a lossy transport senders could flood their receiver, so the ranks meet before each batch for every pattern. */
static bool is_streamed(const hk_run_t *run)
{
    return run->pattern->stream && (run->ctx->tp->caps & HK_CAP_LOSSY) == 0;
}

/* All timed batches. In a stream each begins when the previous one ends. */
static hk_status_t time_batches(const hk_command_t *command, hk_run_t *run, uint64_t *elapsed_ns)
{
    hk_status_t (*const repeat)(hk_run_t *, uint64_t) = run->pattern->repeat;
    uint64_t (*const now_ns)(hk_ctx_t *) = run->ctx->tp->now_ns;
    const bool streams = is_streamed(run);
    uint64_t start_ns = now_ns(run->ctx);
    for (uint64_t i = 0; i < command->samples; i++) {
        run->untimed_ns = 0;
        if (streams) {
            run->reps_to_come -= command->batch;
        } else {
            HK_TRY(synchronise(run));
            start_ns = now_ns(run->ctx);
        }
        HK_TRY(repeat(run, command->batch));
        const uint64_t end_ns = now_ns(run->ctx);
        elapsed_ns[i] = end_ns - start_ns - run->untimed_ns;
        start_ns = end_ns;
    }
    return HK_OK;
}

/* The ranks also meet before a warm-up, so that the resources for this meeting exist before the first sample.
 * Repetitions follow every meeting, because it may have started them. */
hk_status_t hk_take_own_samples(const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    hk_ctx_t *ctx = run->ctx;
    hk_account_t *account = &result->account;
    double counted[HK_COUNTERS_MAX] = {0};

    result->warmup = warmup_of(command, run, &result->plan);
    const bool streams = is_streamed(run);
    run->latency_ns = result->elapsed_ns;
    run->reps_to_come = streams ? command->samples * command->batch : 0;
    HK_TRY(streams || result->warmup > 0 ? synchronise(run) : HK_OK);
    if (result->warmup > 0) {
        HK_TRY(run->pattern->repeat(run, result->warmup));
    }
    read_counters(run, counted, result->counter_name);
    result->started_ns = kernel_ns(ctx);
    start_account(ctx, account);
    /* On schedule nothing may come between: repetitions that wait would be late. */
    HK_TRY(result->plan.scheduled ? run->pattern->repeat(run, command->samples)
                                  : time_batches(command, run, result->elapsed_ns));
    stop_account(ctx, account);
    read_counters(run, account->counter, result->counter_name);
    for (size_t i = 0; i < HK_COUNTERS_MAX; i++) {
        account->counter[i] -= counted[i];
    }
    return HK_OK;
}

hk_status_t hk_take_samples(const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    HK_TRY(hk_take_own_samples(command, run, result));
    return hk_sync(run->ctx);
}

hk_status_t hk_refer(hk_bench_t *bench, double *half_ns_p)
{
    hk_ctx_t *ctx = bench->ctx;
    const hk_transport_t *tp = ctx->tp;
    double sorted[REFERENCE_TRIPS];
    /* Memory of the host always: the floor of points on devices is that of all others. */
    const unsigned char *out = bench->device != NULL ? bench->out_view : bench->out;
    unsigned char *in = bench->device != NULL ? bench->in_view : bench->in;
    int taken = 0;
    for (int trip = -1; trip < REFERENCE_TRIPS && ctx->rank < 2; trip++) {
        const uint64_t start_ns = tp->now_ns(ctx);
        if (ctx->rank == 0) {
            HK_TRY(tp->send(ctx, 1, out, HK_REFERENCE_BYTES));
        }
        HK_TRY(tp->recv(ctx, 1 - ctx->rank, in, HK_REFERENCE_BYTES));
        if (ctx->rank == 1) {
            HK_TRY(tp->send(ctx, 0, out, HK_REFERENCE_BYTES));
        }
        const double half_ns = (double)(tp->now_ns(ctx) - start_ns) / 2.0;
        if (trip >= 0) { /* after a warm-up */
            hk_insert(sorted, taken++, half_ns);
        }
    }
    *half_ns_p = taken == REFERENCE_TRIPS ? sorted[REFERENCE_TRIPS / 2] : -1.0;
    return HK_OK;
}
