/* cold */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrived.h"
#include "pace.h"
#include "payload.h"
#include "registry.h"
#include "samples.h"
#include "sync.h"

enum { TIMED_SEED = 0 };

/* Whether the CPU may not reach the buffers, so that it has copies of them. */
static bool is_far(const hk_bench_t *bench)
{
    return bench->ctx->tp->move != NULL || bench->device != NULL;
}

static hk_status_t move(const hk_bench_t *bench, void *to, const void *from, size_t size_bytes)
{
    return bench->device != NULL ? hk_device_move(bench->device, to, from, size_bytes)
                                 : bench->ctx->tp->move(bench->ctx, to, from, size_bytes);
}

static unsigned char *make_buffer(const hk_bench_t *bench, size_t size_bytes)
{
    void *memory = NULL;
    if (bench->device == NULL) {
        return bench->ctx->tp->alloc(bench->ctx, size_bytes);
    }
    (void)bench->device->driver->alloc(bench->device, bench->kind, size_bytes, &memory); /* NULL, if it fails */
    return memory;
}

static void free_buffer(const hk_bench_t *bench, unsigned char *memory, size_t size_bytes)
{
    if (memory != NULL && bench->device != NULL) {
        bench->device->driver->free(bench->device, bench->kind, memory);
    } else if (memory != NULL) {
        bench->ctx->tp->free(bench->ctx, memory, size_bytes);
    }
}

void hk_bench_free(hk_bench_t *bench)
{
    if (is_far(bench)) {
        free(bench->in_view);
        free(bench->out_view);
    }
    free_buffer(bench, bench->in, bench->in_room);
    free_buffer(bench, bench->out, bench->out_room);
    bench->out = bench->in = bench->out_view = bench->in_view = NULL;
    bench->out_room = bench->in_room = 0;
    bench->device = NULL;
}

/* Offset of the receive buffer in its first page; the send buffer begins with its page, as in most programs. With
 * equal offsets a send that reads its buffer right after a receive has written the other one stalls: the CPU
 * compares only the low 12 bits of addresses and sees a dependency. Half a round trip of 8 bytes by shm then took 67
 * ns instead of 50, and 250 instead of 190 between distant cores (Zen 4). */
enum { IN_PLACE_BYTES = 1088 }; /* room before the receive buffer for the message of hk_refer */

/* The device on which the option `memory` puts this rank's buffers, if on any. */
static hk_status_t find_device(hk_bench_t *bench, const hk_run_t *run)
{
    char why[HK_DEVICE_WHY_MAX] = "";
    const char *how = "";
    bench->kind = hk_memory_of(run);
    if (bench->kind == HK_MEM_HOST) {
        return HK_OK;
    }
    const int devices = hk_driver_cuda.count(why, sizeof why, &how);
    return hk_device_get(bench->ctx, devices > 0 ? bench->ctx->rank % devices : 0, &bench->device);
}

/* Buffers are symmetric, so every rank allocates the largest size needed; those on devices are of one point. `all` has
 * room for the needs of all ranks, which only rank 0 gets. */
static hk_status_t grow_buffers(hk_bench_t *bench, const hk_run_t *run, const hk_plan_t *plan, size_t *all)
{
    const size_t mine[2] = {plan->out_bytes, plan->in_bytes};
    size_t most[2] = {HK_REFERENCE_BYTES, 0};
    hk_status_t status = hk_control_gather(bench->control, mine, sizeof mine, all);
    for (int i = 0; status == HK_OK && bench->control->rank == 0 && i < 2 * bench->control->size; i++) {
        most[i % 2] = all[i] > most[i % 2] ? all[i] : most[i % 2];
    }
    if (status == HK_OK) {
        status = hk_control_broadcast(bench->control, most, sizeof most);
    }
    const size_t out_bytes = most[0], in_bytes = most[1] + IN_PLACE_BYTES;
    const bool is_kept = !bench->asks_memory && !hk_asks_memory(run);
    if (status != HK_OK || (is_kept && out_bytes <= bench->out_room && in_bytes <= bench->in_room)) {
        return status;
    }
    const size_t out_room = out_bytes > bench->out_room || !is_kept ? out_bytes : bench->out_room;
    const size_t in_room = in_bytes > bench->in_room || !is_kept ? in_bytes : bench->in_room;
    char why[HK_ERROR_MAX];
    const bool fits = hk_memory_fits(out_room, in_room, bench->ranks_here, why);
    /* Hosts differ, and an allocation may wait for all ranks. */
    HK_TRY(hk_control_agree(bench->control, fits ? HK_OK : hk_fail(HK_ERR_MEMORY, bench->ctx->rank, "%s", why)));
    hk_bench_free(bench);
    bench->asks_memory = hk_asks_memory(run);
    HK_TRY(bench->asks_memory ? hk_control_agree(bench->control, find_device(bench, run)) : HK_OK);
    bench->out = make_buffer(bench, out_room);
    bench->out_room = out_room;
    HK_TRY(hk_control_agree(bench->control, bench->out != NULL ? HK_OK : HK_ERR_MEMORY)); /* logged once */
    bench->in = make_buffer(bench, in_room);
    bench->in_room = in_room;
    bench->out_view = is_far(bench) ? malloc(out_room) : bench->out;
    bench->in_view = is_far(bench) ? malloc(in_room) : bench->in;
    const bool has_views = bench->out_view != NULL && bench->in_view != NULL;
    return bench->out == NULL || bench->in == NULL || !has_views ? HK_ERR_MEMORY : HK_OK;
}

/* New data of this rank for all its messages, and nothing received. */
static hk_status_t fill(const hk_bench_t *bench, hk_run_t *run, const hk_plan_t *plan, uint64_t seed)
{
    hk_payload_fill(bench->out_view, plan->out_bytes, run->ctx->rank, seed);
    memset(bench->in_view + IN_PLACE_BYTES, 0, plan->in_bytes);
    if (is_far(bench)) {
        HK_TRY(move(bench, run->out, bench->out_view, plan->out_bytes));
        HK_TRY(move(bench, run->in, bench->in_view + IN_PLACE_BYTES, plan->in_bytes));
    }
    if (run->pattern->fill != NULL) {
        run->pattern->fill(run, seed);
    }
    return HK_OK;
}

/* Ranks agree on every possible failure before the next exchange. */
static hk_status_t prepare(hk_bench_t *bench, const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    const hk_pattern_t *pattern = run->pattern;
    hk_status_t status = HK_OK;
    bool is_prepared = false;
    result->plan = pattern->plan(run);
    size_t *all = calloc((size_t)bench->control->size, 2 * sizeof *all);
    run->reqs_count = result->plan.reqs_count;
    run->reqs = calloc(run->reqs_count + 1, sizeof *run->reqs);
    result->elapsed_ns = calloc(hk_times_room(command, &result->plan), sizeof *result->elapsed_ns);
    run->state = calloc(1, result->plan.state_bytes + 1);
    if (all == NULL || run->reqs == NULL || run->state == NULL || result->elapsed_ns == NULL) {
        hk_log(bench->ctx->rank, "no memory for %llu samples", (unsigned long long)command->samples);
        status = HK_ERR_MEMORY;
    }
    status = hk_control_agree(bench->control, status);
    if (status == HK_OK && all != NULL) {
        status = hk_control_agree(bench->control, grow_buffers(bench, run, &result->plan, all));
        if (status == HK_OK && bench->in_view != NULL) {
            run->out = bench->out;
            run->in = bench->in + IN_PLACE_BYTES;
            /* Touch both buffers before timing: a first touch costs more than a 4 KiB message. */
            status = fill(bench, run, &result->plan, TIMED_SEED);
            status = status == HK_OK && pattern->prepare != NULL ? pattern->prepare(run) : status;
            is_prepared = status == HK_OK;
            status = status == HK_ERR_PEER ? status : hk_control_agree(bench->control, status);
        }
        const bool goes_on = status != HK_OK && status != HK_ERR_PEER; /* with another point; see run_point */
        if (goes_on && is_prepared && pattern->finish != NULL) {
            (void)pattern->finish(run); /* another rank has failed */
        }
        if (goes_on) {
            hk_bench_free(bench); /* on all ranks, to keep memory symmetric */
        }
    }
    free(all);
    return status;
}

/* Messages to this rank that the transport has lost since open. */
static double count_lost(hk_ctx_t *ctx)
{
    const hk_transport_t *tp = ctx->tp;
    hk_counter_t counter;
    for (size_t i = 0; (tp->caps & HK_CAP_LOSSY) != 0 && tp->counter(ctx, i, &counter); i++) {
        if (strcmp(counter.name, "lost") == 0) {
            return counter.value;
        }
    }
    return 0.0;
}

/* Whether any rank has lost more messages than `before`. A loss on one rank may affect the data of another. */
static hk_status_t has_lost(const hk_bench_t *bench, double before, bool *has_lost_p)
{
    const bool mine = count_lost(bench->ctx) > before;
    const hk_status_t worst = hk_control_agree(bench->control, mine ? HK_ERR_CORRUPT : HK_OK);
    *has_lost_p = worst == HK_ERR_CORRUPT;
    return *has_lost_p ? HK_OK : worst;
}

/* Whether a lost message explains this wrong block: it is all zeros, which a payload is not, or it is a sum. */
static bool is_missing(const unsigned char *in, const hk_expected_t *block)
{
    bool is_zero = true;
    for (size_t i = 0; is_zero && block->from_rank != HK_FROM_ALL && i < block->size_bytes; i++) {
        is_zero = in[i] == 0;
    }
    return is_zero;
}

/* See verify. */
static hk_status_t repeat_and_check(hk_bench_t *bench, const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    const hk_pattern_t *pattern = run->pattern;
    const uint64_t seed = command->id + 1;
    const double lost = count_lost(bench->ctx);
    bool some_lost = false;
    result->account.verified = 1;
    HK_TRY(fill(bench, run, &result->plan, seed));
    /* A barrier before the first send: a single-copy transport reads the peer's buffer directly. */
    HK_TRY(hk_control_barrier(bench->control));
    hk_watch_done(bench->watch, false);
    HK_TRY(pattern->repeat(run, 1));
    hk_watch_done(bench->watch, true);
    HK_TRY(hk_sync(run->ctx));
    if ((run->ctx->tp->caps & HK_CAP_LOSSY) != 0) {
        HK_TRY(has_lost(bench, lost, &some_lost));
    }
    if (pattern->collect != NULL) {
        HK_TRY(pattern->collect(run));
        HK_TRY(hk_sync(run->ctx));
    }
    if (is_far(bench)) {
        HK_TRY(move(bench, bench->in_view + IN_PLACE_BYTES, run->in, result->plan.in_bytes));
    }
    hk_expected_t block;
    for (size_t i = 0; pattern->expected != NULL && pattern->expected(run, i, &block); i++) {
        size_t wrong = 0;
        const unsigned char *in = bench->in_view + IN_PLACE_BYTES + block.in_offset;
        if (hk_has_arrived(run->ctx, in, &block, seed, &wrong)) {
            continue;
        }
        if (some_lost && is_missing(in, &block)) {
            result->account.verified = 0; /* a loss is no fault, but the data is not verified */
        } else {
            result->account.fault = hk_fault_at(run->ctx, in, &block, seed, wrong);
            return HK_ERR_CORRUPT;
        }
    }
    const bool is_right = pattern->check == NULL || pattern->check(run, seed, &result->account.fault);
    return is_right ? HK_OK : HK_ERR_CORRUPT;
}

/* One more repetition with new data, untimed, and a check of every byte that must have arrived. */
static hk_status_t verify(hk_bench_t *bench, const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    uint64_t latency_ns = 0;
    run->latency_ns = &latency_ns; /* separate from the samples */
    const hk_status_t status = repeat_and_check(bench, command, run, result);
    run->latency_ns = NULL;
    return status;
}

static const char *kind_of_floor(const hk_bench_t *bench)
{
    const uint32_t needs = HK_CAP_SEND | HK_CAP_PAYLOAD;
    if (bench->floor.why == NULL) {
        return "line";
    }
    return bench->floor.is_remote && (bench->ctx->tp->caps & needs) == needs ? "transport" : NULL;
}

/* Whether ranks sleep in the kernel while they wait, as model.py says, too. */
static bool is_sleeping(const hk_transport_t *tp)
{
    return (tp->caps & (HK_CAP_SYSCALLS | HK_CAP_SPINS)) == HK_CAP_SYSCALLS;
}

/* The state of the machine before or after the samples: the floor, a wake-up where ranks sleep, rank 0's pace while
 * rank 1 rests, and this rank's pace while both run. Two hardware threads of one core halve that pace. */
static hk_status_t probe_machine(hk_bench_t *bench, hk_probe_t *probe_p, double *pace_ns_p)
{
    const char *kind = kind_of_floor(bench);
    const bool has_pace = bench->ctx->tp->now_ns == hk_real_now_ns && !bench->oversubscribed;
    *probe_p = (hk_probe_t){.floor_ns = hk_floor_quick(&bench->floor), .solo_ns = -1.0, .wake_ns = -1.0};
    if (kind != NULL && bench->floor.is_remote) {
        HK_TRY(hk_refer(bench, &probe_p->floor_ns));
    }
    if (bench->floor.why == NULL && is_sleeping(bench->ctx->tp)) {
        probe_p->wake_ns = hk_floor_wake(&bench->floor);
    }
    if (bench->floor.why == NULL && has_pace) {
        probe_p->solo_ns = hk_floor_alone(&bench->floor, hk_pace_ns);
    }
    *pace_ns_p = has_pace ? hk_pace_ns() : -1.0;
    return HK_OK;
}

static size_t add_word(char *text, size_t at, size_t len, const char *word)
{
    for (; *word != '\0' && at < len; word++) {
        text[at++] = *word;
    }
    return at;
}

static size_t add_number(char *text, size_t at, size_t len, uint64_t number)
{
    char digits[24];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return add_word(text, at, len, digits + first);
}

/* ", waiting for the credit of event 12 from rank 3"; as a signal handler may, without printf. */
static size_t say_wait(const void *of, char *text, size_t len)
{
    const hk_run_t *run = of;
    hk_waited_t waited;
    if (!run->pattern->waits(run, &waited)) {
        return 0;
    }
    size_t at = add_word(text, 0, len, ", waiting for ");
    at = add_word(text, at, len, waited.what);
    at = add_number(text, add_word(text, at, len, " of event "), len, waited.event);
    return add_number(text, add_word(text, at, len, " from rank "), len, (uint64_t)waited.rank);
}

/* Measures a prepared point. After a failed message a rank does not know what its peers wait for. It ends with
 * HK_ERR_PEER without asking them, and its launcher ends the others at once. */
static hk_status_t run_point(hk_bench_t *bench, const hk_command_t *command, hk_run_t *run, hk_result_t *result)
{
    const hk_pattern_t *pattern = run->pattern;
    const bool is_checked = pattern->expected != NULL || pattern->check != NULL;
    const bool carries = is_checked && (bench->ctx->tp->caps & HK_CAP_PAYLOAD) != 0;
    result->floor_kind = kind_of_floor(bench);
    hk_status_t status = probe_machine(bench, &result->before, &result->account.pace_before_ns);
    if (status == HK_OK) {
        status = hk_take_own_samples(command, run, result);
    }
    if (status == HK_OK) {
        hk_watch_done(bench->watch, true);
        status = hk_sync(run->ctx);
    }
    if (status == HK_OK) {
        status = probe_machine(bench, &result->after, &result->account.pace_after_ns);
    }
    if (status == HK_OK && command->verify != 0 && carries) {
        status = verify(bench, command, run, result);
    }
    if (status != HK_OK && result->account.fault.rank < 0) {
        return HK_ERR_PEER;
    }
    if (status == HK_OK && pattern->verdict != NULL) {
        status = pattern->verdict(run);
        result->account.verified = status == HK_OK;
    }
    return hk_control_agree(bench->control, status);
}

hk_status_t hk_measure(hk_bench_t *bench, const hk_command_t *command, hk_result_t *result_p)
{
    hk_result_t result = {.account = {.fault = {.rank = -1, .from = -1}}};
    hk_run_t run = hk_run_of(bench->ctx, command);
    const hk_pattern_t *pattern = run.pattern;
    char doing[96];

    snprintf(doing, sizeof doing, "%s of %llu B", pattern->name, (unsigned long long)command->bytes);
    hk_watch_arm(bench->watch, (unsigned)command->timeout_s, doing);

    hk_status_t status = prepare(bench, command, &run, &result);
    if (status == HK_OK && pattern->waits != NULL) {
        hk_watch_ask(bench->watch, say_wait, &run);
    }
    if (status == HK_OK) {
        status = run_point(bench, command, &run, &result);
    }
    /* A broken job ends without cleaning up. */
    if ((status == HK_OK || status == HK_ERR_CORRUPT) && pattern->finish != NULL) {
        const hk_status_t mine = pattern->finish(&run); /* it may exchange messages, and verify them */
        const hk_status_t finished = mine == HK_ERR_PEER ? mine : hk_control_agree(bench->control, mine);
        status = finished == HK_OK ? status : finished;
    }
    hk_watch_disarm(bench->watch);
    free(run.reqs);
    bench->left = status == HK_ERR_PEER ? run.state : NULL;
    if (bench->left == NULL) {
        free(run.state);
    }
    if (status != HK_OK && status != HK_ERR_CORRUPT) {
        free(result.elapsed_ns);
        return status;
    }
    *result_p = result;
    return status;
}
