/* cold */
/* One rank from open to close: rank 0 reads a command, all ranks execute it, rank 0 answers. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "answer.h"
#include "command.h"
#include "control.h"
#include "device.h"
#include "family.h"
#include "hello.h"
#include "lines.h"
#include "measured.h"
#include "registry.h"

typedef struct session {
    hk_bench_t bench;
    const hk_job_t *job;
    hk_lines_t lines; /* rank 0 */
} session_t;

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static hk_status_t answer_hello(session_t *session, const hk_command_t *command)
{
    hk_bench_t *bench = &session->bench;
    const int size = session->job->size;
    hk_identity_t mine = hk_identify();
    mine.strangers = bench->control->strangers;
    hk_identity_t *all = hk_control_calloc(bench->control, (size_t)size, sizeof *all);
    if (all == NULL) {
        return HK_ERR_MEMORY;
    }
    hk_status_t status = hk_control_gather(bench->control, &mine, sizeof mine, all);
    if (status == HK_OK && session->job->rank == 0) {
        status = hk_answer_hello(command->id, bench->ctx, bench->floor.why, all, size);
    }
    free(all);
    return status;
}

static hk_status_t send_floor(const hk_command_t *command, const double *half_ns)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "floor", command->id);
    hk_answer_unsigned(&answer, "batch", command->batch);
    hk_answer_open(&answer, "half_round_trip_ns", '[');
    for (uint64_t i = 0; i < command->samples; i++) {
        hk_answer_float(&answer, NULL, half_ns[i]);
    }
    hk_answer_close(&answer, ']');
    return hk_answer_send(&answer, STDOUT_FILENO);
}

static hk_status_t answer_floor(session_t *session, const hk_command_t *command)
{
    hk_bench_t *bench = &session->bench;
    if (bench->floor.why != NULL) {
        return session->job->rank != 0
                   ? HK_OK
                   : hk_answer_error(STDOUT_FILENO, command->id, HK_ERR_UNSUPPORTED, bench->floor.why);
    }
    /* Stored first and sent later, because work on rank 1 between two samples adds to rank 0's time. */
    double *half_ns = hk_control_calloc(bench->control, command->samples, sizeof *half_ns);
    if (half_ns == NULL) {
        return HK_ERR_MEMORY;
    }
    hk_watch_arm(bench->watch, (unsigned)command->timeout_s, "floor");
    hk_floor_quick(&bench->floor);
    for (uint64_t i = 0; i < command->samples; i++) {
        half_ns[i] = hk_floor_sample(&bench->floor, command->batch);
    }
    hk_watch_disarm(bench->watch);
    const hk_status_t sent = session->job->rank == 0 ? send_floor(command, half_ns) : HK_OK;
    free(half_ns);
    return sent;
}

static const char see_log[] = "the point failed; standard error has the reason";

static hk_status_t answer_fault(const hk_command_t *command, const hk_fault_t *fault)
{
    if (fault->rank < 0) { /* the pattern's verdict */
        return hk_answer_error(STDOUT_FILENO, command->id, HK_ERR_CORRUPT, see_log);
    }
    return hk_answer_fault(command, fault);
}

/* The first rank with a fault; there is at least one. */
static const hk_account_t *find_fault(const hk_account_t *accounts, size_t size)
{
    size_t rank = 0;
    while (rank + 1 < size && accounts[rank].fault.rank < 0) {
        rank++;
    }
    return &accounts[rank];
}

static hk_status_t gather_and_answer(session_t *session, const hk_command_t *command, hk_status_t measured,
                                     const hk_result_t *result, hk_account_t *accounts, uint64_t *elapsed_ns)
{
    hk_bench_t *bench = &session->bench;
    const int size = session->job->size;
    const size_t series_bytes = (size_t)command->samples * sizeof *elapsed_ns;
    HK_TRY(hk_control_gather(bench->control, &result->account, sizeof result->account, accounts));
    HK_TRY(hk_control_gather(bench->control, result->elapsed_ns, series_bytes, elapsed_ns));
    if (session->job->rank != 0) {
        return HK_OK;
    }
    if (measured != HK_OK) {
        return answer_fault(command, &find_fault(accounts, (size_t)size)->fault);
    }
    const hk_rows_t rows = {.count = size, .account = accounts, .elapsed_ns = elapsed_ns};
    return hk_answer_measured(bench->ctx, command, result, &rows);
}

static hk_status_t answer_measure(session_t *session, const hk_command_t *command)
{
    hk_bench_t *bench = &session->bench;
    const size_t size = (size_t)session->job->size;
    hk_result_t result;
    const hk_status_t measured = hk_measure(bench, command, &result);
    if (measured != HK_OK && measured != HK_ERR_CORRUPT) {
        if (session->job->rank == 0 && measured != HK_ERR_PEER) {
            hk_answer_error(STDOUT_FILENO, command->id, measured, see_log);
        }
        return measured == HK_ERR_PEER ? measured : HK_OK;
    }
    const size_t series_bytes = (size_t)command->samples * sizeof *result.elapsed_ns;
    hk_account_t *accounts = calloc(size, sizeof *accounts);
    uint64_t *elapsed_ns = session->job->rank == 0 ? calloc(size, series_bytes) : NULL;
    const bool poor = accounts == NULL || (session->job->rank == 0 && elapsed_ns == NULL);
    hk_status_t status = hk_control_agree(bench->control, poor ? HK_ERR_MEMORY : HK_OK);
    if (status == HK_ERR_MEMORY) {
        status = session->job->rank != 0 ? HK_OK
                                         : hk_answer_error(STDOUT_FILENO, command->id, HK_ERR_MEMORY,
                                                           "no memory for the samples of all ranks; take fewer");
    } else if (status == HK_OK) {
        status = gather_and_answer(session, command, measured, &result, accounts, elapsed_ns);
    }
    free(accounts);
    free(elapsed_ns);
    free(result.elapsed_ns);
    return status;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static hk_status_t carry_out(session_t *session, const hk_command_t *command)
{
    switch (command->verb) {
    case HK_VERB_HELLO:
        if (command->abort_on_eof != 0 && session->job->rank == 0) {
            HK_TRY(hk_watch_end_of(session->bench.watch, STDIN_FILENO));
        }
        return answer_hello(session, command);
    case HK_VERB_MEASURE:
        return answer_measure(session, command);
    case HK_VERB_FLOOR:
        return answer_floor(session, command);
    case HK_VERB_QUIT:
        break;
    }
    return HK_OK;
}

static hk_status_t serve(session_t *session)
{
    hk_command_t command;
    hk_control_t *control = session->bench.control;
    void (*const progress)(hk_ctx_t *) = control->progress;
    do {
        control->progress = NULL; /* all ranks have finished: this one sleeps until there is a command */
        if (session->job->rank == 0) {
            hk_next_command(&session->lines, session->bench.ctx, session->bench.ranks_here, &command);
            if (command.verb == HK_VERB_QUIT && command.id == 0) { /* its input has ended */
                hk_watch_give_way(session->bench.watch);
            }
        }
        HK_TRY(hk_control_broadcast(control, &command, sizeof command));
        control->progress = progress;
        HK_TRY(carry_out(session, &command));
    } while (command.verb != HK_VERB_QUIT);
    if (session->job->rank == 0) {
        hk_answer_t answer;
        hk_answer_begin(&answer, "bye", command.id);
        HK_TRY(hk_answer_send(&answer, STDOUT_FILENO));
    }
    return HK_OK;
}

/* When memory runs out, the kernel ends a rank, which hockney names, and not hockney, which holds the results. The
 * value is the highest, so it lowers no inherited one. A failure is ignored: it is as without this. */
static void be_ended_first(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        (void)close(fd);
    }
}

__attribute__((noinline)) static int run_rank(const hk_transport_t *tp, const hk_job_t *job)
{
    session_t session = {.job = job,
                         .bench = {.control = job->control,
                                   .ranks_here = job->remote ? 1 : job->size,
                                   .oversubscribed = job->oversubscribed != 0}};

    be_ended_first();
    hk_status_t status = tp->open(tp, job, &session.bench.ctx);
    if (hk_control_agree(job->control, status) != HK_OK) {
        return HK_EXIT_FAILED;
    }
    session.bench.ctx->startup = job->startup;
    status = hk_watch_open(job->rank, &session.bench.watch);
    if (status == HK_OK) {
        status = hk_floor_open(job->control, job->oversubscribed, &session.bench.floor);
    }
    if (status == HK_OK) {
        status = serve(&session);
    }
    hk_floor_close(&session.bench.floor);
    if (status == HK_OK) { /* otherwise other ranks do not free, and some libraries would wait for them */
        hk_bench_free(&session.bench);
        hk_devices_close(session.bench.ctx);
        tp->close(session.bench.ctx);
    }
    if (session.bench.watch != NULL) {
        hk_watch_close(session.bench.watch);
    }
    return status == HK_OK ? HK_EXIT_OK : HK_EXIT_FAILED;
}

enum { PAGE_BYTES = 4096, STACK_PLACE = 2048 };

/* Align the stack frames of a rank. The position of a stack in its page is random at each launch. In one launch of
 * forty a hot frame and a buffer or ring had the same low 12 address bits, which the CPU mistakes for a dependency.
 * 8 bytes by shm then took 61 ns instead of 47 for the whole job. */
int hk_rank_main(const hk_transport_t *tp, const hk_job_t *job)
{
    const volatile unsigned char here = 0;
    volatile unsigned char between[((uintptr_t)&here - STACK_PLACE) % PAGE_BYTES + 1];
    between[0] = here;
    return run_rank(tp, job) + between[0];
}
