/* cold */
/* A simulated job: all its ranks are in this process, which reads commands and answers them. */
#include <stdio.h>
#include <stdlib.h>

#include <unistd.h>

#include "../answer.h"
#include "../family.h"
#include "../hello.h"
#include "../lines.h"
#include "../registry.h"
#include "point.h"

typedef struct sim_job {
    hk_sim_t *sim;
    hk_watch_t *watch;
    const hk_args_t *args;
    uint64_t measured; /* points so far */
} sim_job_t;

/* ---- a point ----------------------------------------------------------------------------------------------------- */

/* The first rank with a fault; NULL: none. */
static const hk_fault_t *find_fault(const hk_sim_point_t *point)
{
    for (int i = 0; i < point->sim->size; i++) {
        const hk_fault_t *fault = &point->parts[i].result.account.fault;
        if (fault->rank >= 0) {
            return fault;
        }
    }
    return NULL;
}

static hk_status_t answer_point(sim_job_t *job, const hk_command_t *command)
{
    char why[HK_ERROR_MAX];
    char doing[96];
    hk_sim_point_t point = {.sim = job->sim, .command = command};
    const hk_ctx_t *ctx = &job->sim->ranks[0].base;
    (void)snprintf(doing, sizeof doing, "%s of %llu B", hk_sim_pattern_of(&point)->name,
                   (unsigned long long)command->bytes);
    hk_watch_arm(job->watch, (unsigned)command->timeout_s, doing);
    hk_status_t status = hk_sim_measure(&point, (uint64_t)job->args->seed << 32 | job->measured++, why);
    status = status == HK_OK && command->verify != 0 ? hk_sim_verify(&point, why) : status;
    hk_watch_disarm(job->watch);
    const hk_fault_t *fault = status == HK_ERR_CORRUPT ? find_fault(&point) : NULL;
    status = status == HK_OK ? hk_sim_answer(ctx, command, point.parts)
             : fault != NULL ? hk_answer_fault(command, fault)
                             : hk_answer_error(STDOUT_FILENO, command->id, status, why);
    hk_sim_point_free(&point);
    return status;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static hk_status_t answer_who(const sim_job_t *job, const hk_command_t *command)
{
    const int count = job->sim->size <= HK_SUMMARY_RANKS ? job->sim->size : 0;
    hk_identity_t *all = calloc((size_t)count + 1, sizeof *all);
    if (all == NULL) {
        return HK_ERR_MEMORY;
    }
    all[0] = hk_identify();
    all[0].cpu = -1; /* a simulated rank has no real CPU */
    all[0].cpus_usable = 0;
    all[0].bound[0] = '\0';
    for (int rank = 1; rank < count; rank++) {
        all[rank] = all[0];
    }
    const hk_status_t status =
        hk_answer_hello(command->id, &job->sim->ranks[0].base, "a model has no floor", all, count);
    free(all);
    return status;
}

static hk_status_t serve_commands(sim_job_t *job)
{
    hk_lines_t lines = {.len = 0};
    hk_command_t command;
    hk_answer_t answer;
    for (;;) {
        hk_next_command(&lines, &job->sim->ranks[0].base, 0, &command);
        switch (command.verb) {
        case HK_VERB_HELLO:
            HK_TRY(command.abort_on_eof != 0 ? hk_watch_end_of(job->watch, STDIN_FILENO) : HK_OK);
            HK_TRY(answer_who(job, &command));
            break;
        case HK_VERB_MEASURE:
            HK_TRY(answer_point(job, &command));
            break;
        case HK_VERB_FLOOR:
            HK_TRY(hk_answer_error(STDOUT_FILENO, command.id, HK_ERR_UNSUPPORTED, "a model has no floor"));
            break;
        case HK_VERB_QUIT:
            hk_answer_begin(&answer, "bye", command.id);
            return hk_answer_send(&answer, STDOUT_FILENO);
        }
    }
}

/* Adapt the transport to the model. */
static void fit_transport(hk_sim_t *sim, const hk_transport_t *tp)
{
    sim->tp = *tp;
    (void)snprintf(sim->library, sizeof sim->library, "model %s", sim->model->name);
    sim->tp.flops_per_s = sim->model->flops_per_s;
    if (!sim->model->has_barrier) {
        sim->tp.barrier = NULL;
    }
    if (!sim->model->has_stream) {
        sim->tp.caps &= ~(uint32_t)HK_CAP_STREAM;
    }
    if (!sim->model->has_alltoall) {
        sim->tp.variant = HK_SIM_NO_ALLTOALL;
    }
    if (!hk_model_has(sim->model, HK_PUT) && !hk_model_has(sim->model, HK_GET)) {
        sim->tp.caps &= ~(uint32_t)HK_CAP_ONE_SIDED;
    }
    for (size_t i = 0; i < sim->model->classes_count; i++) {
        const hk_class_t *class = &sim->model->classes[i];
        for (size_t k = 0; class->operation == HK_TWO_SIDED && k < class->segments_count; k++) {
            if (sim->model->segments[class->first_segment + k].protocol != HK_EAGER) {
                sim->tp.caps |= HK_CAP_SYNCHRONOUS;
            }
        }
    }
}

static int start_sim(const hk_args_t *args, int argc, char **argv)
{
    (void)argc, (void)argv;
    hk_model_t model;
    sim_job_t job = {.args = args};
    if (hk_model_read(args->model, &model) != HK_OK) {
        return HK_EXIT_USAGE;
    }
    hk_status_t status = hk_sim_open(&model, args->size > 0 ? args->size : 2, &job.sim);
    if (status != HK_OK) {
        hk_model_free(&model);
        return status == HK_ERR_ARGUMENT ? HK_EXIT_USAGE : HK_EXIT_FAILED;
    }
    fit_transport(job.sim, args->tp);
    status = hk_watch_open(0, &job.watch);
    if (status == HK_OK) {
        status = serve_commands(&job);
        hk_watch_close(job.watch);
    }
    hk_sim_close(job.sim);
    hk_model_free(&model);
    return status == HK_OK ? HK_EXIT_OK : HK_EXIT_FAILED;
}

const hk_family_t hk_family = {.name = "sim", .takes_model = true, .start = start_sim};
