/* What is timed of a point. Separate from measure.c, which is compiled without optimisation. */
#ifndef HK_SAMPLES_H
#define HK_SAMPLES_H

#include "measure.h"

enum { HK_REFERENCE_BYTES = 8 };

/* A point on one rank, before it is planned. */
hk_run_t hk_run_of(hk_ctx_t *ctx, const hk_command_t *command);

/* How many times result's elapsed_ns has room for. */
uint64_t hk_times_room(const hk_command_t *command, const hk_plan_t *plan);

/* The warm-up and all samples of a prepared point, into result's samples and account. Of a stream: ranks come together
 * once, then the warm-up fills it, and all timed batches follow without a pause. Else ranks come together before each
 * timed batch. */
hk_status_t hk_take_samples(const hk_command_t *command, hk_run_t *run, hk_result_t *result);

/* Half a round trip of a short message between ranks 0 and 1, the median of a few: what a floor is for where there is
 * no shared line. All ranks call it, ranks 0 and 1 do it. It receives where no pattern has anything. */
hk_status_t hk_refer(hk_bench_t *bench, double *half_ns_p);

#endif
