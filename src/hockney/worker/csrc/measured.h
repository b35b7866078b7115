/* The answer to `measure`. */
#ifndef HK_MEASURED_H
#define HK_MEASURED_H

#include "measure.h"

/* Results of ranks: one row for each, or one row that summarises all. */
typedef struct hk_rows {
    int count;
    const hk_account_t *account;        /* [count] */
    const uint64_t *elapsed_ns;         /* [count * samples] */
    const uint64_t *least_ns, *most_ns; /* NULL, or the extremes of each sample if one row summarises all */
} hk_rows_t;

/* Sends the answer. result: rank 0's. */
hk_status_t hk_answer_measured(const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result,
                               const hk_rows_t *rows);

/* Sends the error of a rank's wrong data. */
hk_status_t hk_answer_fault(const hk_command_t *command, const hk_fault_t *fault);

#endif
