/* The measuring core: measures one point, on one rank. */
#ifndef HK_MEASURE_H
#define HK_MEASURE_H

#include "command.h"
#include "device.h"
#include "floor.h"
#include "pattern.h"
#include "watch.h"

/* State that a rank keeps between points. Buffers only grow, so that pages are touched once. */
typedef struct hk_bench {
    hk_ctx_t *ctx;
    hk_control_t *control;
    hk_floor_t floor;
    hk_watch_t *watch;
    unsigned char *out, *in;
    unsigned char *out_view, *in_view; /* the same for the CPU: copies of them where it cannot reach them (`move`) */
    size_t out_room, in_room;
    bool asks_memory;    /* for the point whose buffers these are (device.h), on this rank or on others */
    hk_memkind_t kind;   /* of the buffers, if they lie on a device */
    hk_device_t *device; /* NULL: they are the transport's own memory */
    void *left;          /* a pattern's state, which its threads may still use: this rank ends without the others */
    int ranks_here;      /* ranks that share the memory of this host */
    bool oversubscribed; /* more ranks than CPUs: no pace, as it would measure time slices */
} hk_bench_t;

/* One rank's data about one point. */
typedef struct hk_account {
    uint64_t cpu_user_ns, cpu_system_ns, wall_ns; /* over all samples */
    double counter[HK_COUNTERS_MAX];              /* growth over all samples */
    double pace_before_ns, pace_after_ns;         /* negative: not measured */
    hk_fault_t fault;
    int32_t verified; /* 1: the whole payload was checked */
} hk_account_t;

/* The state of the machine on one side of the samples; negative: not measured. */
typedef struct hk_probe {
    double floor_ns;
    double solo_ns; /* rank 0's pace while rank 1 rests */
    double wake_ns; /* a wake-up between ranks 0 and 1 */
} hk_probe_t;

typedef struct hk_result {
    hk_plan_t plan;
    hk_account_t account;
    hk_probe_t before, after;
    uint64_t started_ns;                       /* start of the wall time, by CLOCK_MONOTONIC; 0: unknown */
    uint64_t warmup;                           /* repetitions before the first sample */
    const char *floor_kind;                    /* "line", "transport", or NULL: no floor */
    const char *counter_name[HK_COUNTERS_MAX]; /* ends with NULL */
    uint64_t *elapsed_ns;                      /* [samples], one batch each; the caller frees it */
} hk_result_t;

/* Measure a point. All ranks call it with the same command. On success every rank gets a result and must free
 * result_p->elapsed_ns. Returns the most severe status of all ranks. With HK_ERR_CORRUPT the accounts are filled
 * too. HK_ERR_PEER: this rank cannot continue with the others and must end. */
hk_status_t hk_measure(hk_bench_t *bench, const hk_command_t *command, hk_result_t *result_p);

/* Free the buffers. */
void hk_bench_free(hk_bench_t *bench);

#endif
