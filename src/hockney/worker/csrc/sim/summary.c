/* cold */
#include "summary.h"

#include <stdlib.h>
#include <string.h>

#include "../registry.h"

typedef struct sim_rows {
    uint64_t *elapsed_ns, *least_ns, *most_ns; /* of each sample */
} sim_rows_t;

/* The figure of a sample, by the pattern's rule. */
static uint64_t figure_of(const hk_sim_part_t *parts, int size, hk_timed_t timed, int root, uint64_t sample)
{
    const int count = timed == HK_TIMED_SOURCES && size > 1 ? size / 2 : size;
    double sum = 0;
    uint64_t most_ns = 0;
    if (timed == HK_TIMED_ROOT) {
        return parts[root].result.elapsed_ns[sample];
    }
    for (int rank = 0; rank < count; rank++) {
        const uint64_t elapsed_ns = parts[rank].result.elapsed_ns[sample];
        sum += (double)elapsed_ns;
        most_ns = elapsed_ns > most_ns ? elapsed_ns : most_ns;
    }
    return timed == HK_TIMED_SLOWEST ? most_ns : (uint64_t)(sum / count + 0.5);
}

static void fill_rows(sim_rows_t *rows, const hk_sim_part_t *parts, int size, const hk_command_t *command)
{
    const hk_timed_t timed = hk_timed_of(hk_patterns[command->pattern], &parts[0].result.plan);
    for (uint64_t i = 0; i < command->samples; i++) {
        rows->elapsed_ns[i] = figure_of(parts, size, timed, parts[0].result.plan.root, i);
        rows->least_ns[i] = UINT64_MAX;
        for (int rank = 0; rank < size; rank++) {
            const uint64_t elapsed_ns = parts[rank].result.elapsed_ns[i];
            rows->least_ns[i] = elapsed_ns < rows->least_ns[i] ? elapsed_ns : rows->least_ns[i];
            rows->most_ns[i] = elapsed_ns > rows->most_ns[i] ? elapsed_ns : rows->most_ns[i];
        }
    }
}

/* Times are means over all ranks, counters are sums. */
static hk_account_t account_of(const hk_sim_part_t *parts, int size)
{
    hk_account_t all = parts[0].result.account;
    double user_ns = 0, wall_ns = 0;
    memset(all.counter, 0, sizeof all.counter);
    for (int rank = 0; rank < size; rank++) {
        const hk_account_t *account = &parts[rank].result.account;
        user_ns += (double)account->cpu_user_ns;
        wall_ns += (double)account->wall_ns;
        for (size_t i = 0; i < HK_COUNTERS_MAX; i++) {
            all.counter[i] += account->counter[i];
        }
    }
    all.cpu_user_ns = (uint64_t)(user_ns / size + 0.5);
    all.wall_ns = (uint64_t)(wall_ns / size + 0.5);
    return all;
}

static hk_status_t answer_summary(const hk_ctx_t *ctx, const hk_command_t *command, const hk_sim_part_t *parts)
{
    const size_t samples = (size_t)command->samples;
    uint64_t *memory = calloc(3 * samples, sizeof *memory);
    if (memory == NULL) {
        return HK_ERR_MEMORY;
    }
    sim_rows_t rows = {.elapsed_ns = memory, .least_ns = memory + samples, .most_ns = memory + 2 * samples};
    fill_rows(&rows, parts, ctx->size, command);
    const hk_account_t account = account_of(parts, ctx->size);
    hk_result_t result = parts[0].result;
    result.plan.root = 0; /* the index of the only row */
    const hk_rows_t all = {.count = 1,
                           .account = &account,
                           .elapsed_ns = rows.elapsed_ns,
                           .least_ns = rows.least_ns,
                           .most_ns = rows.most_ns};
    const hk_status_t status = hk_answer_measured(ctx, command, &result, &all);
    free(memory);
    return status;
}

static hk_status_t answer_each(const hk_ctx_t *ctx, const hk_command_t *command, const hk_sim_part_t *parts)
{
    const size_t size = (size_t)ctx->size;
    const size_t samples = (size_t)command->samples;
    hk_account_t *accounts = calloc(size, sizeof *accounts);
    uint64_t *elapsed_ns = calloc(size * samples, sizeof *elapsed_ns);
    hk_status_t status = HK_ERR_MEMORY;
    if (accounts != NULL && elapsed_ns != NULL) {
        for (size_t i = 0; i < size; i++) {
            accounts[i] = parts[i].result.account;
            memcpy(elapsed_ns + i * samples, parts[i].result.elapsed_ns, samples * sizeof *elapsed_ns);
        }
        const hk_rows_t rows = {.count = ctx->size, .account = accounts, .elapsed_ns = elapsed_ns};
        status = hk_answer_measured(ctx, command, &parts[0].result, &rows);
    }
    free(accounts);
    free(elapsed_ns);
    return status;
}

hk_status_t hk_sim_answer(const hk_ctx_t *ctx, const hk_command_t *command, const hk_sim_part_t *parts)
{
    return ctx->size > HK_SUMMARY_RANKS ? answer_summary(ctx, command, parts) : answer_each(ctx, command, parts);
}
