/* Fan-in and fan-out (osu_bw_fan_in, osu_bw_fan_out): the first `parents` ranks are parents. Rank r after them is a
 * child of parent r mod `parents`: with as many parents as a host has ranks, parents are on the first host, and each
 * has a child on every other one. Fan-in: every child sends a window of messages to its parent, all at once, and gets
 * an answer. Fan-out: a parent sends a window to each of its children, and gets an answer from each. The time per
 * message of a child is the mean of all ranks, which the answers keep together. */
#include <stdio.h>

#include "flow.h"

enum { FAN_WINDOW, FAN_PARENTS };
enum { FAN_ANSWER_BYTES = 1 };

typedef struct fan {
    int parents, children; /* children: of each parent */
    size_t window, places; /* places: receive buffers for the messages of one rank */
} fan_t;

static fan_t fan_shape_of(const hk_run_t *run)
{
    const int parents = (int)run->option[FAN_PARENTS];
    const size_t window = (size_t)run->option[FAN_WINDOW];
    return (fan_t){.parents = parents,
                   .children = run->ctx->size / parents - 1,
                   .window = window,
                   .places = hk_flow_places(run->bytes, window)};
}

/* Child number n of this parent. */
static inline int fan_child(const hk_run_t *run, const fan_t *fan, int n)
{
    return run->ctx->rank + (n + 1) * fan->parents;
}

static bool fan_is_parent(const hk_run_t *run)
{
    return run->ctx->rank < run->option[FAN_PARENTS];
}

static bool fan_fits(const hk_run_t *run, char *why, size_t len)
{
    const int size = run->ctx->size, parents = (int)run->option[FAN_PARENTS];
    snprintf(why, len, "%d ranks do not make %d parents with as many children each: parents= is a divisor, but not %d",
             size, parents, size);
    return parents < size && size % parents == 0;
}

/* A parent has requests and buffers for each of its children. */
static hk_plan_t fan_plan(const hk_run_t *run)
{
    const fan_t fan = fan_shape_of(run);
    const size_t peers = fan_is_parent(run) ? (size_t)fan.children : 1;
    const uint64_t messages = (uint64_t)fan.parents * (uint64_t)fan.children * fan.window;
    return (hk_plan_t){.out_bytes = run->bytes > 0 ? run->bytes : FAN_ANSWER_BYTES,
                       .in_bytes = peers * fan.places * run->bytes + FAN_ANSWER_BYTES,
                       .reqs_count = peers * fan.window,
                       HK_MOVES(run, messages),
                       .divisor = fan.window};
}

/* ---- a parent's part in a window --------------------------------------------------------------------------------- */

static hk_status_t fan_receive_from_children(hk_run_t *run, const fan_t *fan)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_req_t *req = run->reqs;
    for (size_t k = 0, place = 0; k < fan->window; k++) {
        for (int n = 0; n < fan->children; n++) {
            unsigned char *in = run->in + ((size_t)n * fan->places + place) * run->bytes;
            HK_TRY(tp->irecv(ctx, fan_child(run, fan, n), in, run->bytes, req++));
        }
        place = place + 1 < fan->places ? place + 1 : 0;
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    for (int n = 0; n < fan->children; n++) {
        HK_TRY(tp->send(ctx, fan_child(run, fan, n), run->out, FAN_ANSWER_BYTES));
    }
    return HK_OK;
}

static hk_status_t fan_send_to_children(hk_run_t *run, const fan_t *fan)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    hk_req_t *req = run->reqs;
    for (size_t k = 0; k < fan->window; k++) {
        for (int n = 0; n < fan->children; n++) {
            HK_TRY(tp->isend(ctx, fan_child(run, fan, n), run->out, run->bytes, req++));
        }
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, run->reqs_count));
    for (int n = 0; n < fan->children; n++) {
        unsigned char *answer = run->in + (size_t)fan->children * fan->places * run->bytes;
        HK_TRY(tp->recv(ctx, fan_child(run, fan, n), answer, FAN_ANSWER_BYTES));
    }
    return HK_OK;
}

/* ---- both ways --------------------------------------------------------------------------------------------------- */

static bool fan_is_inward(const hk_run_t *run)
{
    return *(const bool *)run->pattern->own;
}

/* `inward` is a constant in each call. */
static inline hk_status_t fan_serve_children(hk_run_t *run, const fan_t *fan, uint64_t reps, const bool inward)
{
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(inward ? fan_receive_from_children(run, fan) : fan_send_to_children(run, fan));
    }
    return HK_OK;
}

static hk_status_t fan_repeat(hk_run_t *run, uint64_t reps)
{
    const fan_t fan = fan_shape_of(run);
    const int parent = run->ctx->rank % fan.parents;
    if (fan_is_inward(run)) {
        return fan_is_parent(run) ? fan_serve_children(run, &fan, reps, true)
                                  : hk_flow_send_windows(run, parent, reps, true);
    }
    return fan_is_parent(run) ? fan_serve_children(run, &fan, reps, false)
                              : hk_flow_receive_windows(run, parent, reps, true);
}

static bool fan_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const fan_t fan = fan_shape_of(run);
    const bool inward = fan_is_inward(run);
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes,
                                  .size_bytes = run->bytes,
                                  .from_rank = inward ? fan_child(run, &fan, (int)(i / fan.places))
                                                      : run->ctx->rank % fan.parents};
    return fan_is_parent(run) == inward && i < (inward ? (size_t)fan.children : 1) * fan.places;
}

// clang-format off
#define FAN_SHARED                                                                                                     \
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 2, .timed = HK_TIMED_MEAN, .law = HK_LAW_MESSAGES,         \
    .stream = true,                                                                                                    \
    .option = {{"window", NULL, 64, 1, 1024, "messages to or from each child before an answer"},                       \
               {"parents", NULL, 1, 1, 4095, "the first ranks, each with as many children among the others"}},         \
    .fits = fan_fits, .plan = fan_plan, .repeat = fan_repeat, .expected = fan_expected
// clang-format on

const hk_pattern_t hk_pattern_fanin = {
    FAN_SHARED,
    .name = "fanin",
    .summary = "every child sends a window of messages to its parent, all at once, and gets an answer; mean time",
    .own = &(const bool){true},
};

const hk_pattern_t hk_pattern_fanout = {
    FAN_SHARED,
    .name = "fanout",
    .summary = "each parent sends a window of messages to all its children at once, and gets their answers; mean time",
    .own = &(const bool){false},
};
