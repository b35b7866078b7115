/* The answer to `measure`. */
#ifndef HK_MEASURED_H
#define HK_MEASURED_H

#include "measure.h"

/* What ranks have measured: a row for each, or one row that stands for all of them. */
typedef struct hk_rows {
    int count;
    const hk_account_t *account;        /* of each row */
    const uint64_t *elapsed_ns;         /* row after row */
    const uint64_t *least_ns, *most_ns; /* NULL, or with one row for all: the extremes of each sample */
} hk_rows_t;

/* Sends it: result is that of rank 0. */
hk_status_t hk_answer_measured(const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result,
                               const hk_rows_t *rows);

#endif
