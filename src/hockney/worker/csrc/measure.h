/* The measuring core: one point, on one rank. */
#ifndef HK_MEASURE_H
#define HK_MEASURE_H

#include "command.h"
#include "floor.h"
#include "pattern.h"
#include "watch.h"

/* What a rank keeps from one point to the next: buffers only grow, so that pages are touched once. */
typedef struct hk_bench {
    hk_ctx_t *ctx;
    hk_control_t *control;
    hk_floor_t floor;
    hk_watch_t *watch;
    unsigned char *out, *in;
    size_t out_room, in_room;
    int ranks_here;      /* ranks that share this host's memory */
    bool oversubscribed; /* more ranks than CPUs: a pace would be a time slice */
} hk_bench_t;

/* A payload that did not arrive as sent. */
typedef struct hk_fault {
    int32_t rank, from; /* rank -1: no fault; from HK_FROM_ALL: a sum */
    uint64_t offset;    /* in the message */
    unsigned char expected, found;
} hk_fault_t;

/* One rank's account of one point. */
typedef struct hk_account {
    uint64_t cpu_user_ns, cpu_system_ns, wall_ns; /* over all samples */
    double counter[HK_COUNTERS_MAX];              /* growth over all samples */
    double pace_before_ns, pace_after_ns;         /* negative: none */
    hk_fault_t fault;
    int32_t verified; /* 1: payload was checked, all of it */
} hk_account_t;

typedef struct hk_result {
    hk_plan_t plan;
    hk_account_t account;
    double floor_before_ns, floor_after_ns;    /* negative: none */
    double solo_before_ns, solo_after_ns;      /* rank 0's pace while rank 1 rests; negative: none */
    uint64_t started_ns;                       /* when the wall time began, by CLOCK_MONOTONIC; 0: unknown */
    uint64_t warmup;                           /* repetitions that were made before the first sample */
    const char *floor_kind;                    /* "line", "transport", or NULL: none */
    const char *counter_name[HK_COUNTERS_MAX]; /* NULL: there are no more */
    uint64_t *elapsed_ns;                      /* [samples], one batch each; the caller frees it */
} hk_result_t;

/* Measure a point; all ranks call it with the same command. On success every rank has its result, and only then must
 * it free result_p->elapsed_ns. The status is the worst of all ranks; HK_ERR_CORRUPT comes with the accounts filled.
 * HK_ERR_PEER: this rank can't go on with the others, and must end. */
hk_status_t hk_measure(hk_bench_t *bench, const hk_command_t *command, hk_result_t *result_p);

/* Give the buffers back. */
void hk_bench_free(hk_bench_t *bench);

#endif
