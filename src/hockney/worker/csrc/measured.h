/* The answer to `measure`. */
#ifndef HK_MEASURED_H
#define HK_MEASURED_H

#include "measure.h"

/* Sends it: result is that of rank 0; accounts and elapsed_ns are of all ranks, one after another. */
hk_status_t hk_answer_measured(const hk_ctx_t *ctx, const hk_command_t *command, const hk_result_t *result,
                               const hk_account_t *accounts, const uint64_t *elapsed_ns);

#endif
