/* cold */
#include "measured.h"

#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "answer.h"
#include "registry.h"

static void put_accounts(hk_answer_t *answer, const char *key, const hk_account_t *all, int size, size_t offset)
{
    hk_answer_key(answer, key);
    hk_answer_open(answer, '[');
    for (int rank = 0; rank < size; rank++) {
        uint64_t value;
        memcpy(&value, (const char *)&all[rank] + offset, sizeof value);
        hk_answer_unsigned(answer, value);
    }
    hk_answer_close(answer, ']');
}

/* Negative: there is none. */
static void put_before_and_after(hk_answer_t *answer, const char *key, double before_ns, double after_ns)
{
    hk_answer_key(answer, key);
    if (before_ns < 0) {
        hk_answer_null(answer);
        return;
    }
    hk_answer_open(answer, '[');
    hk_answer_float(answer, before_ns);
    hk_answer_float(answer, after_ns);
    hk_answer_close(answer, ']');
}

static void put_floor(hk_answer_t *answer, const hk_result_t *result)
{
    hk_answer_key(answer, "floor_kind");
    hk_answer_string(answer, result->floor_kind);
    put_before_and_after(answer, "floor_ns", result->floor_before_ns, result->floor_after_ns);
    put_before_and_after(answer, "solo_ns", result->solo_before_ns, result->solo_after_ns);
}

static void put_pace(hk_answer_t *answer, const hk_account_t *accounts, int size)
{
    hk_answer_key(answer, "pace_ns");
    if (accounts[0].pace_before_ns < 0) {
        hk_answer_null(answer);
        return;
    }
    hk_answer_open(answer, '[');
    for (int when = 0; when < 2; when++) {
        hk_answer_open(answer, '[');
        for (int rank = 0; rank < size; rank++) {
            hk_answer_float(answer, when == 0 ? accounts[rank].pace_before_ns : accounts[rank].pace_after_ns);
        }
        hk_answer_close(answer, ']');
    }
    hk_answer_close(answer, ']');
}

static void put_point(hk_answer_t *answer, const hk_ctx_t *ctx, const hk_command_t *command, uint64_t warmup)
{
    const hk_pattern_t *pattern = hk_patterns[command->pattern];
    hk_answer_key(answer, "pattern");
    hk_answer_string(answer, pattern->name);
    hk_answer_key(answer, "transport");
    hk_answer_string(answer, ctx->tp->name);
    hk_answer_key(answer, "size");
    hk_answer_signed(answer, ctx->size);
    hk_answer_key(answer, "bytes");
    hk_answer_unsigned(answer, command->bytes);
    hk_answer_key(answer, "batch");
    hk_answer_unsigned(answer, command->batch);
    hk_answer_key(answer, "samples");
    hk_answer_unsigned(answer, command->samples);
    hk_answer_key(answer, "warmup");
    hk_answer_unsigned(answer, warmup);
}

/* "rank 3" where the options put another rank in the place of rank 0. */
static void put_timed(hk_answer_t *answer, hk_timed_t timed, int root)
{
    static const char *const names[] = {"root", "sources", "slowest", "mean"};
    char rank[24];
    snprintf(rank, sizeof rank, "rank %d", root);
    hk_answer_key(answer, "timed");
    hk_answer_string(answer, timed == HK_TIMED_ROOT && root != 0 ? rank : names[timed]);
}

static void put_started(hk_answer_t *answer, uint64_t started_ns)
{
    hk_answer_key(answer, "started_ns");
    if (started_ns > 0) {
        hk_answer_unsigned(answer, started_ns);
    } else {
        hk_answer_null(answer);
    }
}

static void put_counters(hk_answer_t *answer, const hk_result_t *result, const hk_account_t *accounts, int size)
{
    hk_answer_key(answer, "counters");
    hk_answer_open(answer, '{');
    for (size_t i = 0; i < HK_COUNTERS_MAX && result->counter_name[i] != NULL; i++) {
        hk_answer_key(answer, result->counter_name[i]);
        hk_answer_open(answer, '[');
        for (int rank = 0; rank < size; rank++) {
            hk_answer_float(answer, accounts[rank].counter[i]);
        }
        hk_answer_close(answer, ']');
    }
    hk_answer_close(answer, '}');
}

static bool is_verified(const hk_account_t *accounts, int size)
{
    bool all = true;
    for (int rank = 0; rank < size; rank++) {
        all = all && accounts[rank].verified == 1;
    }
    return all;
}

static void put_samples(hk_answer_t *answer, const uint64_t *elapsed_ns, uint64_t samples)
{
    hk_answer_open(answer, '[');
    for (uint64_t i = 0; i < samples; i++) {
        hk_answer_unsigned(answer, elapsed_ns[i]);
    }
    hk_answer_close(answer, ']');
}

hk_status_t hk_answer_measured(const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result,
                               const hk_rows_t *rows)
{
    const hk_account_t *accounts = rows->account;
    const int size = rows->count;
    hk_answer_t answer;
    hk_answer_begin(&answer, "measure", command->id);
    put_point(&answer, ctx, command, result->warmup);
    put_timed(&answer, hk_patterns[command->pattern]->timed, result->plan.root);
    hk_answer_key(&answer, "algorithm");
    hk_answer_string(&answer, result->plan.algorithm);
    hk_answer_key(&answer, "divisor");
    hk_answer_unsigned(&answer, result->plan.divisor);
    hk_answer_key(&answer, "bytes_per_rep");
    hk_answer_unsigned(&answer, result->plan.bytes_per_rep);
    hk_answer_key(&answer, "messages_per_rep");
    hk_answer_unsigned(&answer, result->plan.messages_per_rep);
    put_accounts(&answer, "cpu_user_ns", accounts, size, offsetof(hk_account_t, cpu_user_ns));
    put_accounts(&answer, "cpu_system_ns", accounts, size, offsetof(hk_account_t, cpu_system_ns));
    put_accounts(&answer, "wall_ns", accounts, size, offsetof(hk_account_t, wall_ns));
    put_started(&answer, result->started_ns);
    put_counters(&answer, result, accounts, size);
    hk_answer_key(&answer, "verified");
    hk_answer_bool(&answer, is_verified(accounts, size));
    put_floor(&answer, result);
    put_pace(&answer, accounts, size);
    hk_answer_key(&answer, "elapsed_ns");
    hk_answer_open(&answer, '[');
    for (int row = 0; row < size; row++) {
        put_samples(&answer, rows->elapsed_ns + (uint64_t)row * command->samples, command->samples);
    }
    hk_answer_close(&answer, ']');
    if (rows->least_ns != NULL) {
        hk_answer_key(&answer, "ranks");
        hk_answer_string(&answer, "summary");
        hk_answer_key(&answer, "least_ns");
        put_samples(&answer, rows->least_ns, command->samples);
        hk_answer_key(&answer, "most_ns");
        put_samples(&answer, rows->most_ns, command->samples);
    }
    return hk_answer_send(&answer, STDOUT_FILENO);
}
