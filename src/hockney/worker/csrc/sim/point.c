/* cold */
#include "point.h"

#include <stdio.h>
#include <stdlib.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../samples.h"

/* ---- parts of ranks ---------------------------------------------------------------------------------------------- */

static hk_sim_part_t *part_of(const hk_sim_rank_t *rank, void *arg)
{
    const hk_sim_point_t *point = arg;
    return &point->parts[rank->base.rank];
}

void hk_sim_prepare_rank(hk_sim_rank_t *rank, void *arg)
{
    hk_sim_part_t *part = part_of(rank, arg);
    part->status = part->run.pattern->prepare(&part->run);
}

static void measure_rank(hk_sim_rank_t *rank, void *arg)
{
    const hk_sim_point_t *point = arg;
    hk_sim_part_t *part = part_of(rank, arg);
    part->status = hk_take_samples(point->command, &part->run, &part->result);
}

void hk_sim_finish_rank(hk_sim_rank_t *rank, void *arg)
{
    hk_sim_part_t *part = part_of(rank, arg);
    part->status = part->run.pattern->finish(&part->run);
}

/* A failed rank leaves others waiting, so its error has priority over the deadlock. */
hk_status_t hk_sim_run_parts(hk_sim_point_t *point, hk_sim_body_t body, void *arg, char why[HK_ERROR_MAX])
{
    const bool has_ended = hk_sim_run(point->sim, body, arg, why, HK_ERROR_MAX);
    for (int i = 0; i < point->sim->size; i++) {
        if (point->parts[i].status != HK_OK) {
            (void)snprintf(why, HK_ERROR_MAX, "the point failed; standard error has the reason");
            return point->parts[i].status;
        }
    }
    return has_ended ? HK_OK : HK_ERR_UNSUPPORTED;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void drop_memory(hk_sim_point_t *point)
{
    if (point->memory != NULL) {
        (void)munmap(point->memory, point->memory_bytes);
    }
    point->memory = NULL;
}

hk_status_t hk_sim_give_memory(hk_sim_point_t *point, bool is_shared)
{
    enum { LINE_BYTES = 64 };
    const int size = point->sim->size;
    size_t out_bytes = 0, in_bytes = 0;
    for (int i = 0; i < size; i++) {
        const hk_plan_t *plan = &point->parts[i].result.plan;
        out_bytes = plan->out_bytes > out_bytes ? plan->out_bytes : out_bytes;
        in_bytes = plan->in_bytes > in_bytes ? plan->in_bytes : in_bytes;
    }
    const size_t first_bytes = (out_bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
    const size_t each_bytes = first_bytes + (in_bytes + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
    const size_t count = is_shared ? 1 : (size_t)size;
    if (each_bytes > SIZE_MAX / count) {
        return HK_ERR_MEMORY;
    }
    drop_memory(point);
    void *memory =
        mmap(NULL, count * each_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return HK_ERR_MEMORY;
    }
    point->memory = memory;
    point->memory_bytes = count * each_bytes;
    point->sim->stride_bytes = is_shared ? 0 : each_bytes;
    for (int i = 0; i < size; i++) {
        point->parts[i].run.out = point->memory + (size_t)i * point->sim->stride_bytes;
        point->parts[i].run.in = point->parts[i].run.out + first_bytes;
    }
    return HK_OK;
}

/* Systems promise more memory than they have and kill a process when it is touched, so check first. */
static bool exceeds_memory_here(const hk_sim_point_t *point, char why[HK_ERROR_MAX])
{
    enum { STACK_BYTES = 4096, REST_BYTES = 512 }; /* the used page of a stack; messages and channels */
    const double have_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) * 3 / 4;
    const hk_command_t *command = point->command;
    double need_bytes = 0;
    for (int i = 0; i < point->sim->size; i++) {
        const hk_run_t run = hk_run_of(&point->sim->ranks[i].base, command);
        const hk_plan_t plan = hk_sim_pattern_of(point)->plan(&run);
        need_bytes += sizeof(hk_sim_part_t) + sizeof(hk_sim_rank_t) + STACK_BYTES + REST_BYTES +
                      (double)plan.reqs_count * sizeof(hk_req_t) + (double)plan.state_bytes +
                      (double)hk_times_room(command, &plan) * sizeof(uint64_t);
    }
    if (have_bytes <= 0 || need_bytes <= have_bytes) {
        return false;
    }
    (void)snprintf(why, HK_ERROR_MAX,
                   "%d ranks with their requests need %.0f MiB, above three quarters of the memory (%.0f MiB); "
                   "use fewer ranks or samples",
                   point->sim->size, need_bytes / 1048576, have_bytes / 1048576);
    return true;
}

/* ---- the point --------------------------------------------------------------------------------------------------- */

static hk_status_t plan_ranks(hk_sim_point_t *point)
{
    const hk_pattern_t *pattern = hk_sim_pattern_of(point);
    const hk_command_t *command = point->command;
    for (int i = 0; i < point->sim->size; i++) {
        hk_sim_part_t *part = &point->parts[i];
        part->run = hk_run_of(&point->sim->ranks[i].base, command);
        part->result =
            (hk_result_t){.account = {.fault = {.rank = -1, .from = -1}, .pace_before_ns = -1, .pace_after_ns = -1},
                          .before = {.floor_ns = -1, .solo_ns = -1, .wake_ns = -1}};
        hk_plan_t *plan = &part->result.plan;
        *plan = pattern->plan(&part->run);
        part->run.reqs_count = plan->reqs_count;
        part->run.reqs = calloc(plan->reqs_count + 1, sizeof *part->run.reqs);
        part->run.state = calloc(1, plan->state_bytes + 1);
        part->result.elapsed_ns = calloc(hk_times_room(command, plan), sizeof *part->result.elapsed_ns);
        if (part->run.reqs == NULL || part->run.state == NULL || part->result.elapsed_ns == NULL) {
            return HK_ERR_MEMORY;
        }
    }
    return hk_sim_give_memory(point, (pattern->needs & HK_CAP_ONE_SIDED) == 0);
}

void hk_sim_point_free(hk_sim_point_t *point)
{
    for (int i = 0; point->parts != NULL && i < point->sim->size; i++) {
        free(point->parts[i].run.reqs);
        free(point->parts[i].run.state);
        free(point->parts[i].result.elapsed_ns);
    }
    free(point->parts);
    point->parts = NULL;
    drop_memory(point);
}

hk_status_t hk_sim_measure(hk_sim_point_t *point, uint64_t seed, char why[HK_ERROR_MAX])
{
    const hk_pattern_t *pattern = hk_sim_pattern_of(point);
    if (exceeds_memory_here(point, why)) {
        return HK_ERR_MEMORY;
    }
    (void)snprintf(why, HK_ERROR_MAX, "no memory for %d ranks", point->sim->size);
    point->parts = calloc((size_t)point->sim->size, sizeof *point->parts);
    HK_TRY(point->parts == NULL ? HK_ERR_MEMORY : plan_ranks(point));
    hk_sim_reset(point->sim, seed);
    if (pattern->prepare != NULL) {
        HK_TRY(hk_sim_run_parts(point, hk_sim_prepare_rank, point, why));
    }
    HK_TRY(hk_sim_run_parts(point, measure_rank, point, why));
    return pattern->finish != NULL ? hk_sim_run_parts(point, hk_sim_finish_rank, point, why) : HK_OK;
}
