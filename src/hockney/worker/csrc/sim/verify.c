/* cold */
/* The repetition that is verified. Times need no data, so a model carries none while it is timed, and its ranks share
 * their buffers. This repetition is a run of its own afterwards: the machine begins anew, each rank has memory of its
 * own, and messages carry data. No time of it is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "../arrived.h"
#include "../sync.h"
#include "point.h"

/* Above these the repetition is left out. ELEMENTS_MAX: elements of ranks that are reduced again for a result of
 * floating-point numbers that others computed in another order: a few seconds. */
static const size_t DATA_MAX = (size_t)2 << 30; /* of buffers, and of messages under way: and a quarter of the memory */
static const uint64_t ELEMENTS_MAX = (uint64_t)1 << 26;

/* A reduction of some ranks in one order, to compare others with. */
typedef struct sim_known {
    hk_expected_t block; /* end_rank: the ranks so far */
    unsigned char *bytes, *next;
} sim_known_t;

typedef struct sim_check {
    hk_sim_point_t *point;
    uint64_t seed, latency_ns, elements;
    sim_known_t known;
    bool is_left_out;
} sim_check_t;

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void fill_known(const sim_check_t *check, unsigned char *out, int rank)
{
    const hk_expected_t *block = &check->known.block;
    hk_payload_fill_elements(out, block->size_bytes, block->type, block->reduction, rank, block->from_offset,
                             check->seed);
}

/* Whether the known reduction is one of the same elements, and of no rank beyond. */
static bool is_begun(const sim_known_t *known, const hk_expected_t *block)
{
    const hk_expected_t *old = &known->block;
    return known->bytes != NULL && old->from_offset == block->from_offset && old->size_bytes == block->size_bytes &&
           old->first_rank == block->first_rank && old->end_rank <= block->end_rank && old->type == block->type &&
           old->reduction == block->reduction;
}

static bool begin_known(sim_check_t *check, const hk_expected_t *block)
{
    sim_known_t *known = &check->known;
    free(known->bytes);
    free(known->next);
    *known =
        (sim_known_t){.block = *block, .bytes = malloc(block->size_bytes + 1), .next = malloc(block->size_bytes + 1)};
    known->block.end_rank = block->first_rank + 1;
    if (known->bytes == NULL || known->next == NULL) {
        free(known->bytes);
        known->bytes = NULL; /* nothing is known */
        return false;
    }
    fill_known(check, known->bytes, block->first_rank);
    return true;
}

/* The reduction of a block; NULL: without portable arithmetic, or without memory. Ranks expect the same, or one rank
 * more than the rank before them, so that each vector is computed once. */
static unsigned char *known_of(sim_check_t *check, const hk_expected_t *block)
{
    sim_known_t *known = &check->known;
    const hk_combine_t combine = hk_combine_of(block->type, block->reduction);
    if (combine == NULL || (!is_begun(known, block) && !begin_known(check, block))) {
        return NULL;
    }
    for (; known->block.end_rank < block->end_rank; known->block.end_rank++) {
        fill_known(check, known->next, known->block.end_rank);
        combine(known->bytes, known->bytes, known->next, block->size_bytes);
    }
    return known->bytes;
}

/* The result of another order is checked element by element, and then known. */
static bool is_reduced(sim_check_t *check, const hk_ctx_t *ctx, const unsigned char *in, hk_expected_t block,
                       size_t *wrong_p)
{
    block.end_rank = hk_reduced_of(ctx, &block).end;
    unsigned char *known = known_of(check, &block);
    if (known != NULL && memcmp(known, in, block.size_bytes) == 0) {
        return true;
    }
    check->elements += block.size_bytes / hk_type_bytes[block.type] * (uint64_t)(block.end_rank - block.first_rank);
    if (check->elements > ELEMENTS_MAX) {
        check->is_left_out = true;
        return true;
    }
    const bool is_right = hk_has_arrived(ctx, in, &block, check->seed, wrong_p);
    if (is_right && known != NULL) {
        memcpy(known, in, block.size_bytes);
    }
    return is_right;
}

/* ---- the repetition ---------------------------------------------------------------------------------------------- */

static void repeat_rank(hk_sim_rank_t *rank, void *arg)
{
    const hk_sim_point_t *point = arg;
    hk_sim_part_t *part = &point->parts[rank->base.rank];
    hk_run_t *run = &part->run;
    part->status = hk_sync(run->ctx);
    if (part->status == HK_OK && run->pattern->meet != NULL) {
        part->status = run->pattern->meet(run);
    }
    if (part->status == HK_OK) {
        part->status = run->pattern->repeat(run, 1);
    }
    if (part->status == HK_OK) {
        part->status = hk_sync(run->ctx);
    }
    hk_sim_step(rank); /* puts are written */
}

static size_t most_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    const size_t quarter = pages > 0 && page_bytes > 0 ? (size_t)pages / 4 * (size_t)page_bytes : DATA_MAX;
    return quarter < DATA_MAX ? quarter : DATA_MAX;
}

/* New memory, new data, and a state as before the first repetition. False: there is too little memory. */
static bool begin_anew(sim_check_t *check)
{
    hk_sim_point_t *point = check->point;
    hk_sim_t *sim = point->sim;
    const size_t most = most_bytes();
    if (hk_sim_give_memory(point, false) != HK_OK || point->memory_bytes > most) {
        return false;
    }
    hk_sim_reset(sim, 0);
    sim->carries = true;
    sim->data_most = most - point->memory_bytes;
    for (int i = 0; i < sim->size; i++) {
        hk_run_t *run = &point->parts[i].run;
        const hk_plan_t *plan = &point->parts[i].result.plan;
        memset(run->state, 0, plan->state_bytes);
        run->latency_ns = &check->latency_ns; /* separate from the samples */
        run->reps_to_come = 0;
        hk_payload_fill(run->out, plan->out_bytes, i, check->seed); /* new memory holds zeros */
        if (run->pattern->fill != NULL) {
            run->pattern->fill(run, check->seed);
        }
    }
    return true;
}

static hk_status_t check_rank(sim_check_t *check, hk_sim_part_t *part)
{
    const hk_run_t *run = &part->run;
    hk_expected_t block;
    for (size_t i = 0; !check->is_left_out && run->pattern->expected(run, i, &block); i++) {
        const unsigned char *in = run->in + block.in_offset;
        size_t wrong = 0;
        const bool is_right = block.from_rank == HK_FROM_ALL
                                  ? is_reduced(check, run->ctx, in, block, &wrong)
                                  : hk_has_arrived(run->ctx, in, &block, check->seed, &wrong);
        if (!is_right) {
            part->result.account.fault = hk_fault_at(run->ctx, in, &block, check->seed, wrong);
            return HK_ERR_CORRUPT;
        }
    }
    return HK_OK;
}

static hk_status_t repeat_and_check(sim_check_t *check, char why[HK_ERROR_MAX])
{
    hk_sim_point_t *point = check->point;
    const hk_pattern_t *pattern = hk_sim_pattern_of(point);
    if (pattern->prepare != NULL) {
        HK_TRY(hk_sim_run_parts(point, hk_sim_prepare_rank, point, why));
    }
    HK_TRY(hk_sim_run_parts(point, repeat_rank, point, why));
    if (point->sim->has_misfit) {
        (void)snprintf(why, HK_ERROR_MAX, "the point failed; standard error has the reason");
        return HK_ERR_CORRUPT;
    }
    hk_status_t status = HK_OK;
    for (int i = 0; i < point->sim->size && status == HK_OK; i++) {
        status = check_rank(check, &point->parts[i]);
    }
    if (pattern->finish != NULL) {
        const hk_status_t finished = hk_sim_run_parts(point, hk_sim_finish_rank, point, why);
        status = status == HK_OK ? finished : status;
    }
    return status;
}

hk_status_t hk_sim_verify(hk_sim_point_t *point, char why[HK_ERROR_MAX])
{
    hk_sim_t *sim = point->sim;
    sim_check_t check = {.point = point, .seed = point->command->id + 1};
    if (hk_sim_pattern_of(point)->expected == NULL || sim->size > HK_SUMMARY_RANKS || !begin_anew(&check)) {
        return HK_OK;
    }
    hk_status_t status = repeat_and_check(&check, why);
    if (sim->no_memory || sim->queue.failed) {
        status = HK_OK; /* for data only: the samples are there */
        check.is_left_out = true;
    }
    for (int i = 0; i < sim->size && status == HK_OK && !check.is_left_out; i++) {
        point->parts[i].result.account.verified = 1;
    }
    free(check.known.bytes);
    free(check.known.next);
    sim->carries = false;
    hk_sim_reset(sim, 0); /* drops data of messages that were never received */
    return status;
}
