/* cold */
/* A simulated job: all its ranks are in this process, which reads commands and answers them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../answer.h"
#include "../family.h"
#include "../hello.h"
#include "../lines.h"
#include "../registry.h"
#include "../samples.h"
#include "engine.h"
#include "summary.h"

typedef struct sim_job {
    hk_sim_t *sim;
    hk_watch_t *watch;
    const hk_args_t *args;
    uint64_t measured; /* points so far */
    const hk_command_t *command;
    hk_sim_part_t *parts;
    unsigned char *memory; /* of each rank, `out` first; without one-sided access all ranks share one */
    size_t memory_bytes;
} sim_job_t;

/* ---- a point ----------------------------------------------------------------------------------------------------- */

static const hk_pattern_t *pattern_of(const sim_job_t *job)
{
    return hk_patterns[job->command->pattern];
}

static void prepare_rank(hk_sim_rank_t *rank, void *arg)
{
    sim_job_t *job = arg;
    hk_sim_part_t *part = &job->parts[rank->base.rank];
    part->status = pattern_of(job)->prepare(&part->run);
}

static void measure_rank(hk_sim_rank_t *rank, void *arg)
{
    sim_job_t *job = arg;
    hk_sim_part_t *part = &job->parts[rank->base.rank];
    part->status = hk_take_samples(job->command, &part->run, &part->result);
}

static void finish_rank(hk_sim_rank_t *rank, void *arg)
{
    sim_job_t *job = arg;
    hk_sim_part_t *part = &job->parts[rank->base.rank];
    part->status = pattern_of(job)->finish(&part->run);
}

/* Allocate memory for the ranks. Untouched memory costs nothing. */
static hk_status_t share_memory(sim_job_t *job, size_t out_bytes, size_t in_bytes)
{
    enum { LINE_BYTES = 64 };
    const bool is_one_sided = (pattern_of(job)->needs & HK_CAP_ONE_SIDED) != 0;
    const size_t first_bytes = (out_bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
    const size_t each_bytes = first_bytes + (in_bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
    const size_t count = is_one_sided ? (size_t)job->sim->size : 1;
    if (each_bytes > SIZE_MAX / count) {
        return HK_ERR_MEMORY;
    }
    void *memory =
        mmap(NULL, count * each_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return HK_ERR_MEMORY;
    }
    job->memory = memory;
    job->memory_bytes = count * each_bytes;
    job->sim->stride_bytes = is_one_sided ? each_bytes : 0;
    for (int i = 0; i < job->sim->size; i++) {
        job->parts[i].run.out = job->memory + (size_t)i * job->sim->stride_bytes;
        job->parts[i].run.in = job->parts[i].run.out + first_bytes;
    }
    return HK_OK;
}

/* Systems promise more memory than they have and kill a process when it is touched, so check first. */
static bool exceeds_memory_here(const sim_job_t *job, char why[HK_ERROR_MAX])
{
    enum { STACK_BYTES = 4096, REST_BYTES = 512 }; /* the used page of a stack; messages and channels */
    const double have_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) * 3 / 4;
    double need_bytes = 0;
    for (int i = 0; i < job->sim->size; i++) {
        const hk_run_t run = hk_run_of(&job->sim->ranks[i].base, job->command);
        const hk_plan_t plan = pattern_of(job)->plan(&run);
        need_bytes += sizeof(hk_sim_part_t) + sizeof(hk_sim_rank_t) + STACK_BYTES + REST_BYTES +
                      (double)plan.reqs_count * sizeof(hk_req_t) + (double)plan.state_bytes +
                      (double)hk_times_room(job->command, &plan) * sizeof(uint64_t);
    }
    if (have_bytes <= 0 || need_bytes <= have_bytes) {
        return false;
    }
    (void)snprintf(why, HK_ERROR_MAX,
                   "%d ranks with their requests need %.0f MiB, above three quarters of the memory (%.0f MiB); "
                   "use fewer ranks or samples",
                   job->sim->size, need_bytes / 1048576, have_bytes / 1048576);
    return true;
}

static hk_status_t plan_ranks(sim_job_t *job)
{
    const hk_pattern_t *pattern = pattern_of(job);
    const hk_command_t *command = job->command;
    size_t out_bytes = 0, in_bytes = 0;
    for (int i = 0; i < job->sim->size; i++) {
        hk_sim_part_t *part = &job->parts[i];
        part->run = hk_run_of(&job->sim->ranks[i].base, command);
        part->result =
            (hk_result_t){.account = {.fault = {.rank = -1, .from = -1}, .pace_before_ns = -1, .pace_after_ns = -1},
                          .before = {.floor_ns = -1, .solo_ns = -1, .wake_ns = -1}};
        hk_plan_t *plan = &part->result.plan;
        *plan = pattern->plan(&part->run);
        out_bytes = plan->out_bytes > out_bytes ? plan->out_bytes : out_bytes;
        in_bytes = plan->in_bytes > in_bytes ? plan->in_bytes : in_bytes;
        part->run.reqs_count = plan->reqs_count;
        part->run.reqs = calloc(plan->reqs_count + 1, sizeof *part->run.reqs);
        part->run.state = calloc(1, plan->state_bytes + 1);
        part->result.elapsed_ns = calloc(hk_times_room(command, plan), sizeof *part->result.elapsed_ns);
        if (part->run.reqs == NULL || part->run.state == NULL || part->result.elapsed_ns == NULL) {
            return HK_ERR_MEMORY;
        }
    }
    return share_memory(job, out_bytes, in_bytes);
}

static void free_parts(sim_job_t *job)
{
    for (int i = 0; job->parts != NULL && i < job->sim->size; i++) {
        free(job->parts[i].run.reqs);
        free(job->parts[i].run.state);
        free(job->parts[i].result.elapsed_ns);
    }
    free(job->parts);
    job->parts = NULL;
    if (job->memory != NULL) {
        (void)munmap(job->memory, job->memory_bytes);
    }
    job->memory = NULL;
}

/* A failed rank leaves others waiting, so its error has priority over the deadlock. */
static hk_status_t run_part(sim_job_t *job, void (*body)(hk_sim_rank_t *, void *), char why[HK_ERROR_MAX])
{
    const bool has_ended = hk_sim_run(job->sim, body, job, why, HK_ERROR_MAX);
    for (int i = 0; i < job->sim->size; i++) {
        if (job->parts[i].status != HK_OK) {
            (void)snprintf(why, HK_ERROR_MAX, "the point failed; standard error has the reason");
            return job->parts[i].status;
        }
    }
    return has_ended ? HK_OK : HK_ERR_UNSUPPORTED;
}

static hk_status_t run_simulated(sim_job_t *job, char why[HK_ERROR_MAX])
{
    const hk_pattern_t *pattern = pattern_of(job);
    if (exceeds_memory_here(job, why)) {
        return HK_ERR_MEMORY;
    }
    (void)snprintf(why, HK_ERROR_MAX, "no memory for %d ranks", job->sim->size);
    job->parts = calloc((size_t)job->sim->size, sizeof *job->parts);
    HK_TRY(job->parts == NULL ? HK_ERR_MEMORY : plan_ranks(job));
    hk_sim_reset(job->sim, (uint64_t)job->args->seed << 32 | job->measured++);
    if (pattern->prepare != NULL) {
        HK_TRY(run_part(job, prepare_rank, why));
    }
    HK_TRY(run_part(job, measure_rank, why));
    if (pattern->finish != NULL) {
        HK_TRY(run_part(job, finish_rank, why));
    }
    return HK_OK;
}

static hk_status_t answer_point(sim_job_t *job, const hk_command_t *command)
{
    char why[HK_ERROR_MAX];
    char doing[96];
    job->command = command;
    (void)snprintf(doing, sizeof doing, "%s of %llu B", pattern_of(job)->name, (unsigned long long)command->bytes);
    hk_watch_arm(job->watch, (unsigned)command->timeout_s, doing);
    hk_status_t status = run_simulated(job, why);
    hk_watch_disarm(job->watch);
    if (status == HK_OK) {
        status = hk_sim_answer(&job->sim->ranks[0].base, command, job->parts);
    } else {
        status = hk_answer_error(STDOUT_FILENO, command->id, status, why);
    }
    free_parts(job);
    job->command = NULL;
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
