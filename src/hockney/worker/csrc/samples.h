/* The timed part of a point. Separate from measure.c, which is compiled without optimisation. */
#ifndef HK_SAMPLES_H
#define HK_SAMPLES_H

#include "measure.h"

enum { HK_REFERENCE_BYTES = 8 };

/* A run for a point on one rank, before its plan. */
hk_run_t hk_run_of(hk_ctx_t *ctx, const hk_command_t *command);

/* Required size of result's elapsed_ns, in times. */
uint64_t hk_times_room(const hk_command_t *command, const hk_plan_t *plan);

/* Takes the warm-up and all samples of a prepared point, and fills result's samples and account. In a stream the
 * ranks meet once, and all timed batches follow the warm-up without a pause. Otherwise they meet before each batch.
 * `own`: without waiting for the other ranks at the end. */
hk_status_t hk_take_own_samples(const hk_command_t *command, hk_run_t *run, hk_result_t *result);
hk_status_t hk_take_samples(const hk_command_t *command, hk_run_t *run, hk_result_t *result);

/* Half a round trip of a short message between ranks 0 and 1, the median of a few. It replaces the floor without a
 * shared line. All ranks call it; ranks 0 and 1 exchange. It uses memory before the receive buffer. */
hk_status_t hk_refer(hk_bench_t *bench, double *half_ns_p);

#endif
