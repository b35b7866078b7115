/* cold */
/* Whether a point can be measured: for a plan (`--fits`), and before each measurement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "answer.h"
#include "device.h"
#include "registry.h"
#include "samples.h"

enum { FITS_RANKS_MAX = 1 << 20 };

/* 0 is not allowed either: an empty message has no word to wait for, and a library's call may return at once. */
static bool is_grained(uint64_t size_bytes, size_t grain_bytes)
{
    return grain_bytes == 0 || (size_bytes != 0 && size_bytes % grain_bytes == 0);
}

bool hk_memory_fits(size_t out_bytes, size_t in_bytes, int ranks_here, char why[HK_ERROR_MAX])
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (ranks_here < 1 || pages <= 0 || page_bytes <= 0) {
        return true;
    }
    const size_t share = (size_t)pages / 4 * 3 / (size_t)ranks_here * (size_t)page_bytes;
    snprintf(why, HK_ERROR_MAX,
             "buffers of %zu MiB are above a rank's share of three quarters of the memory, %zu MiB; smaller ones fit",
             (out_bytes + in_bytes) >> 20, share >> 20);
    return out_bytes <= share && in_bytes <= share - out_bytes;
}

/* Buffers are symmetric, so the rank that needs most decides. */
static bool fits_memory(hk_run_t run, int ranks_here, char why[HK_ERROR_MAX])
{
    size_t out_bytes = 0, in_bytes = 0;
    hk_ctx_t ctx = *run.ctx;
    run.ctx = &ctx;
    for (ctx.rank = 0; ctx.rank < ctx.size && ranks_here > 0; ctx.rank++) {
        const hk_plan_t plan = run.pattern->plan(&run);
        out_bytes = plan.out_bytes > out_bytes ? plan.out_bytes : out_bytes;
        in_bytes = plan.in_bytes > in_bytes ? plan.in_bytes : in_bytes;
    }
    return hk_memory_fits(out_bytes, in_bytes, ranks_here, why);
}

static bool fits_schedule(const hk_run_t *run, const hk_command_t *command, char why[HK_ERROR_MAX])
{
    snprintf(why, HK_ERROR_MAX, "repetitions on schedule are samples of one: batch must be 1, not %llu",
             (unsigned long long)command->batch);
    return command->batch == 1 || !run->pattern->plan(run).scheduled;
}

bool hk_point_fits(hk_ctx_t *ctx, const hk_command_t *command, int ranks_here, char why[HK_ERROR_MAX])
{
    const hk_transport_t *tp = ctx->tp;
    const int size = ctx->size;
    const hk_pattern_t *pattern = hk_patterns[command->pattern];
    const hk_run_t asked = hk_run_of(ctx, command);
    const bool asks_memory = hk_asks_memory(&asked);
    const uint32_t needs = pattern->needs | (asks_memory ? HK_CAP_DEVICES : 0);
    const bool has_own = pattern->operation != HK_NO_OPERATION && hk_has_own(tp, pattern->operation);
    const bool native = pattern->native != NULL && pattern->native(&asked);
    const size_t grain_bytes = pattern->grain != NULL ? pattern->grain(&asked) : pattern->grain_bytes;
    const bool is_charged = (tp->caps & HK_CAP_VIRTUAL) != 0 && (pattern->needs & HK_CAP_PAYLOAD) != 0;
    const uint32_t spared =
        tp->flops_per_s > 0 ? HK_CAP_PAYLOAD : 0; /* a computing pattern with charged time needs no data */
    const char *missing = native ? NULL : hk_missing_cap(needs, tp->caps | spared);
    const bool is_for_variants = missing != NULL && !has_own && !is_charged;
    const hk_transport_t *other = is_for_variants ? hk_variant_with(tp, needs) : NULL;
    const int64_t senders = hk_option_value(pattern, command->option, pattern->senders, -1);
    char more[144] = "";
    const bool lacks = tp->lacks != NULL && tp->lacks(tp, native ? 0 : needs, more, sizeof more);
    if (tp->move != NULL && asks_memory) {
        snprintf(why, HK_ERROR_MAX, "%s has all buffers on devices: leave memory= out", tp->name);
    } else if (other != NULL) {
        snprintf(why, HK_ERROR_MAX, "%s needs %s, which %s does not offer; %s does", pattern->name, missing, tp->name,
                 other->name);
    } else if (missing != NULL) {
        snprintf(why, HK_ERROR_MAX, "%s needs %s, which %s does not offer%s%s", pattern->name, missing, tp->name,
                 has_own      ? "; algorithm=native does without"
                 : is_charged ? "; a model with cpu.flops_per_s needs none"
                 : lacks      ? ": "
                              : "",
                 more);
    } else if (tp->move != NULL && !pattern->untouched) {
        snprintf(why, HK_ERROR_MAX, "%s uses its buffers with the CPU, which cannot reach those of %s", pattern->name,
                 tp->name);
    } else if (lacks) {
        snprintf(why, HK_ERROR_MAX, "%s cannot run on %s: %s", pattern->name, tp->name, more);
    } else if (senders >= size - 1) {
        snprintf(why, HK_ERROR_MAX, "%s with %s=%lld on %d ranks has no receivers: it needs %lld ranks or more",
                 pattern->name, pattern->senders, (long long)senders, size, (long long)senders + 2);
    } else if (size < pattern->ranks_min || (pattern->ranks_max != 0 && size > pattern->ranks_max) ||
               (pattern->ranks_step != 0 && size % pattern->ranks_step != 0)) {
        char multiple[32] = "";
        if (pattern->ranks_step > 1) {
            snprintf(multiple, sizeof multiple, ", a multiple of %d", pattern->ranks_step);
        }
        snprintf(why, HK_ERROR_MAX, "%s runs on %d%s rank%s%s, not on %d", pattern->name, pattern->ranks_min,
                 pattern->ranks_max == pattern->ranks_min ? "" : " or more", pattern->ranks_max == 1 ? "" : "s",
                 multiple, size);
    } else if (!is_grained(command->bytes, grain_bytes)) {
        snprintf(why, HK_ERROR_MAX, "%s accepts multiples of %zu B, not %llu B", pattern->name, grain_bytes,
                 (unsigned long long)command->bytes);
    } else if (tp->max_bytes != 0 && command->bytes > tp->max_bytes) {
        snprintf(why, HK_ERROR_MAX, "%s sends at most %llu B in one message", tp->name,
                 (unsigned long long)tp->max_bytes);
    } else {
        return (pattern->fits == NULL || pattern->fits(&asked, why, HK_ERROR_MAX)) &&
               (!asks_memory || hk_device_fits(ctx, pattern->name, 0, why, HK_ERROR_MAX)) &&
               fits_memory(asked, ranks_here, why) && fits_schedule(&asked, command, why);
    }
    return false;
}

/* Parses "TRANSPORT RANKS RANKS_HERE measure ..." and returns why the point cannot be measured, or NULL. */
static const char *obstacle(const char *line, uint64_t *id_p, char why[HK_ERROR_MAX])
{
    char name[64] = "";
    hk_command_t command = {.id = 0};
    const size_t len = strcspn(line, " ");
    char *rest = NULL;
    const long size = strtol(line + len, &rest, 10);
    const long ranks_here = strtol(rest, &rest, 10);
    if (len >= sizeof name || size < 1 || size > FITS_RANKS_MAX || ranks_here < 0 || ranks_here > size ||
        *rest != ' ') {
        return "expected: TRANSPORT RANKS RANKS_HERE measure ...";
    }
    memcpy(name, line, len);
    rest++;
    const hk_transport_t *tp = hk_transport_find(name);
    hk_ctx_t ctx = {.tp = tp, .rank = 0, .size = (int)size};
    const hk_status_t status = hk_command_parse(rest, strlen(rest), &command, why);
    *id_p = command.id;
    if (tp == NULL) {
        return "this worker has no such transport";
    }
    if (status == HK_OK && command.verb != HK_VERB_MEASURE) {
        return "expected a measure command";
    }
    return status != HK_OK || !hk_point_fits(&ctx, &command, (int)ranks_here, why) ? why : NULL;
}

hk_status_t hk_fits(FILE *in, int fd)
{
    char *line = NULL;
    size_t room = 0;
    hk_status_t status = HK_OK;
    for (ssize_t len; status == HK_OK && (len = getline(&line, &room, in)) > 0;) {
        char why[HK_ERROR_MAX];
        uint64_t id = 0;
        line[len - (line[len - 1] == '\n')] = '\0';
        const char *reason = obstacle(line, &id, why);
        hk_answer_t answer;
        hk_answer_begin(&answer, "fits", id);
        hk_answer_string(&answer, "why", reason);
        status = hk_answer_send(&answer, fd);
    }
    free(line);
    return status;
}
