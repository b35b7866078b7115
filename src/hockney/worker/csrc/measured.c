/* cold */
#include "measured.h"

#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "answer.h"
#include "registry.h"

/* For each row the number at this offset in its account. */
static void put_counts(hk_answer_t *answer, const char *key, const hk_rows_t *rows, size_t offset)
{
    hk_answer_open(answer, key, '[');
    for (int row = 0; row < rows->count; row++) {
        uint64_t value;
        memcpy(&value, (const char *)&rows->account[row] + offset, sizeof value);
        hk_answer_unsigned(answer, NULL, value);
    }
    hk_answer_close(answer, ']');
}

static void put_floats(hk_answer_t *answer, const char *key, const hk_rows_t *rows, size_t offset)
{
    hk_answer_open(answer, key, '[');
    for (int row = 0; row < rows->count; row++) {
        double value;
        memcpy(&value, (const char *)&rows->account[row] + offset, sizeof value);
        hk_answer_float(answer, NULL, value);
    }
    hk_answer_close(answer, ']');
}

/* Negative: null. */
static void put_before_and_after(hk_answer_t *answer, const char *key, double before_ns, double after_ns)
{
    if (before_ns < 0) {
        hk_answer_null(answer, key);
        return;
    }
    hk_answer_open(answer, key, '[');
    hk_answer_float(answer, NULL, before_ns);
    hk_answer_float(answer, NULL, after_ns);
    hk_answer_close(answer, ']');
}

static void put_pace(hk_answer_t *answer, const hk_rows_t *rows)
{
    if (rows->account[0].pace_before_ns < 0) {
        hk_answer_null(answer, "pace_ns");
        return;
    }
    hk_answer_open(answer, "pace_ns", '[');
    put_floats(answer, NULL, rows, offsetof(hk_account_t, pace_before_ns));
    put_floats(answer, NULL, rows, offsetof(hk_account_t, pace_after_ns));
    hk_answer_close(answer, ']');
}

static void put_point(hk_answer_t *answer, const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result)
{
    const hk_pattern_t *pattern = hk_patterns[command->pattern];
    const hk_plan_t *plan = &result->plan;
    char rank[24];
    snprintf(rank, sizeof rank, "rank %d", plan->root);
    const hk_timed_t timed = hk_timed_of(pattern, plan);
    const bool is_other_root = timed == HK_TIMED_ROOT && plan->root != 0;
    hk_answer_string(answer, "pattern", pattern->name);
    hk_answer_string(answer, "transport", ctx->tp->name);
    hk_answer_signed(answer, "size", ctx->size);
    hk_answer_unsigned(answer, "bytes", command->bytes);
    hk_answer_unsigned(answer, "batch", command->batch);
    hk_answer_unsigned(answer, "samples", command->samples);
    hk_answer_unsigned(answer, "warmup", result->warmup);
    hk_answer_string(answer, "timed", is_other_root ? rank : hk_timed_names[timed]);
    hk_answer_string(answer, "algorithm", plan->algorithm);
    hk_answer_unsigned(answer, "divisor", plan->divisor > 0 ? plan->divisor : 1);
    hk_answer_unsigned(answer, "bytes_per_rep", plan->bytes_per_rep);
    hk_answer_unsigned(answer, "messages_per_rep", plan->messages_per_rep);
}

static void put_counters(hk_answer_t *answer, const hk_result_t *result, const hk_rows_t *rows)
{
    hk_answer_open(answer, "counters", '{');
    for (size_t i = 0; i < HK_COUNTERS_MAX && result->counter_name[i] != NULL; i++) {
        put_floats(answer, result->counter_name[i], rows, offsetof(hk_account_t, counter) + i * sizeof(double));
    }
    hk_answer_close(answer, '}');
}

static bool is_verified(const hk_rows_t *rows)
{
    bool all = true;
    for (int row = 0; row < rows->count; row++) {
        all = all && rows->account[row].verified == 1;
    }
    return all;
}

static void put_samples(hk_answer_t *answer, const char *key, const uint64_t *elapsed_ns, uint64_t samples)
{
    hk_answer_open(answer, key, '[');
    for (uint64_t i = 0; i < samples; i++) {
        hk_answer_unsigned(answer, NULL, elapsed_ns[i]);
    }
    hk_answer_close(answer, ']');
}

hk_status_t hk_answer_measured(const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result,
                               const hk_rows_t *rows)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "measure", command->id);
    put_point(&answer, ctx, command, result);
    put_counts(&answer, "cpu_user_ns", rows, offsetof(hk_account_t, cpu_user_ns));
    put_counts(&answer, "cpu_system_ns", rows, offsetof(hk_account_t, cpu_system_ns));
    put_counts(&answer, "wall_ns", rows, offsetof(hk_account_t, wall_ns));
    if (result->started_ns > 0) {
        hk_answer_unsigned(&answer, "started_ns", result->started_ns);
    } else {
        hk_answer_null(&answer, "started_ns");
    }
    put_counters(&answer, result, rows);
    hk_answer_bool(&answer, "verified", is_verified(rows));
    hk_answer_string(&answer, "floor_kind", result->floor_kind);
    put_before_and_after(&answer, "floor_ns", result->before.floor_ns, result->after.floor_ns);
    put_before_and_after(&answer, "solo_ns", result->before.solo_ns, result->after.solo_ns);
    put_before_and_after(&answer, "wake_ns", result->before.wake_ns, result->after.wake_ns);
    put_pace(&answer, rows);
    hk_answer_open(&answer, "elapsed_ns", '[');
    for (int row = 0; row < rows->count; row++) {
        put_samples(&answer, NULL, rows->elapsed_ns + (uint64_t)row * command->samples, command->samples);
    }
    hk_answer_close(&answer, ']');
    if (rows->least_ns != NULL) {
        hk_answer_string(&answer, "ranks", "summary");
        put_samples(&answer, "least_ns", rows->least_ns, command->samples);
        put_samples(&answer, "most_ns", rows->most_ns, command->samples);
    }
    return hk_answer_send(&answer, STDOUT_FILENO);
}

hk_status_t hk_answer_fault(const hk_command_t *command, const hk_fault_t *fault)
{
    hk_answer_t answer;
    char what[80];
    char message[160];
    if (fault->from == HK_FROM_ALL && command->bytes == 0) {
        snprintf(what, sizeof what, "a wrong value of all ranks");
    } else if (fault->from == HK_FROM_ALL) {
        snprintf(what, sizeof what, "a wrong reduction of %llu B", (unsigned long long)command->bytes);
    } else if (command->bytes == 0) { /* atomic operations have no size */
        snprintf(what, sizeof what, "a wrong value from rank %d", (int)fault->from);
    } else {
        snprintf(what, sizeof what, "a corrupted message of %llu B from rank %d", (unsigned long long)command->bytes,
                 (int)fault->from);
    }
    snprintf(message, sizeof message, "rank %d got %s: byte %llu is 0x%02x, expected 0x%02x", (int)fault->rank, what,
             (unsigned long long)fault->offset, fault->found, fault->expected);
    hk_answer_begin(&answer, "error", command->id);
    hk_answer_string(&answer, "code", hk_status_name(HK_ERR_CORRUPT));
    hk_answer_string(&answer, "message", message);
    hk_answer_signed(&answer, "rank", fault->rank);
    hk_answer_signed(&answer, "from", fault->from);
    hk_answer_unsigned(&answer, "bytes", command->bytes);
    hk_answer_unsigned(&answer, "offset", fault->offset);
    return hk_answer_send(&answer, STDOUT_FILENO);
}
