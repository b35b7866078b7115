/* A point on a model: all its ranks at once, in this process. */
#ifndef HK_SIM_POINT_H
#define HK_SIM_POINT_H

#include "../registry.h"
#include "engine.h"
#include "summary.h"

typedef struct hk_sim_point {
    hk_sim_t *sim;
    const hk_command_t *command;
    hk_sim_part_t *parts;
    unsigned char *memory; /* of each rank, `out` first; all ranks share one where only times count */
    size_t memory_bytes;
} hk_sim_point_t;

static inline const hk_pattern_t *hk_sim_pattern_of(const hk_sim_point_t *point)
{
    return hk_patterns[point->command->pattern];
}

/* Measure the point, with this seed for the noise; fills in the parts. On error, why has the reason. */
hk_status_t hk_sim_measure(hk_sim_point_t *point, uint64_t seed, char why[HK_ERROR_MAX]);
void hk_sim_point_free(hk_sim_point_t *point);

/* Once more on a machine that begins anew, with data, and check them (verify.c). Leaves `verified` as it is where that
 * is not possible. HK_ERR_CORRUPT: the account of a rank has the fault, or why has the reason. */
hk_status_t hk_sim_verify(hk_sim_point_t *point, char why[HK_ERROR_MAX]);

/* Buffers of the ranks, instead of those before. Untouched memory costs nothing. */
hk_status_t hk_sim_give_memory(hk_sim_point_t *point, bool is_shared);

/* Run body on every rank; it sets the status of its part. */
typedef void (*hk_sim_body_t)(hk_sim_rank_t *rank, void *arg);
hk_status_t hk_sim_run_parts(hk_sim_point_t *point, hk_sim_body_t body, void *arg, char why[HK_ERROR_MAX]);

/* Bodies, with the point as their argument. */
void hk_sim_prepare_rank(hk_sim_rank_t *rank, void *arg);
void hk_sim_finish_rank(hk_sim_rank_t *rank, void *arg);

#endif
