/* The answer for very many ranks: one row for all. */
#ifndef HK_SIM_SUMMARY_H
#define HK_SIM_SUMMARY_H

#include "../measured.h"

enum { HK_SUMMARY_RANKS = 4096 }; /* only above this number */

/* One rank's part of a point. */
typedef struct hk_sim_part {
    hk_run_t run;
    hk_result_t result;
    hk_status_t status;
} hk_sim_part_t;

/* Sends the answer to `measure`: each rank's numbers, or a summary. */
hk_status_t hk_sim_answer(const hk_ctx_t *ctx, const hk_command_t *command, const hk_sim_part_t *parts);

#endif
