/* Sweep (the wavefront of discrete-ordinates transport, K. R. Koch, R. S. Baker and R. E. Alcouffe 1992): on a 2-D
 * grid each rank receives from its upstream neighbours in x and y, computes, and sends downstream. A repetition is
 * one sweep from each of the four corners, in `blocks` parts, so that distant ranks begin before the first has
 * finished. The time is that of the slowest rank. */
#include "delay.h"
#include "grid.h"

enum { SWEEP_BLOCKS = HK_GRID_NY + 1, SWEEP_COMPUTE };
enum { SWEEP_CORNERS = 4, SWEEP_AXES = 2 };

/* A link upstream or downstream: the other rank, and the message's place in the buffer. */
typedef struct sweep_link {
    int peer;
    size_t offset;
} sweep_link_t;

typedef struct sweep_corner {
    size_t receives, sends;
    sweep_link_t from[SWEEP_AXES], to[SWEEP_AXES];
} sweep_corner_t;

typedef struct sweep_state {
    hk_delay_t delay;
    int64_t blocks;
    sweep_corner_t corner[SWEEP_CORNERS];
} sweep_state_t;

static hk_plan_t sweep_plan(const hk_run_t *run)
{
    const hk_grid_t grid = hk_grid_of(run);
    const uint64_t nx = (uint64_t)grid.ranks[0], ny = (uint64_t)grid.ranks[1];
    const uint64_t messages = SWEEP_CORNERS * (uint64_t)run->option[SWEEP_BLOCKS] * ((nx - 1) * ny + nx * (ny - 1));
    return (hk_plan_t){.out_bytes = (size_t)SWEEP_CORNERS * SWEEP_AXES * run->bytes,
                       .in_bytes = (size_t)SWEEP_CORNERS * SWEEP_AXES * run->bytes,
                       .state_bytes = sizeof(sweep_state_t),
                       HK_MOVES(run, messages)};
}

/* Each corner is a neighbour of the previous one, and every message has a separate place. */
static hk_status_t sweep_prepare(hk_run_t *run)
{
    static const int steps[SWEEP_CORNERS][SWEEP_AXES] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    sweep_state_t *state = run->state;
    const hk_grid_t grid = hk_grid_of(run);
    state->blocks = run->option[SWEEP_BLOCKS];
    for (int c = 0; c < SWEEP_CORNERS; c++) {
        sweep_corner_t *corner = &state->corner[c];
        for (int axis = 0; axis < SWEEP_AXES; axis++) {
            const size_t offset = (size_t)(SWEEP_AXES * c + axis) * run->bytes;
            const int from = hk_grid_neighbour(&grid, axis, -steps[c][axis]);
            const int to = hk_grid_neighbour(&grid, axis, steps[c][axis]);
            if (from >= 0) {
                corner->from[corner->receives++] = (sweep_link_t){from, offset};
            }
            if (to >= 0) {
                corner->to[corner->sends++] = (sweep_link_t){to, offset};
            }
        }
    }
    return hk_delay_prepare(run->ctx, HK_DELAY_CLOCK, (uint64_t)run->option[SWEEP_COMPUTE] * 1000, &state->delay);
}

static hk_status_t sweep_from(hk_run_t *run, const sweep_corner_t *corner)
{
    sweep_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (int64_t block = 0; block < state->blocks; block++) {
        for (size_t k = 0; k < corner->receives; k++) {
            HK_TRY(tp->recv(ctx, corner->from[k].peer, run->in + corner->from[k].offset, run->bytes));
        }
        state->delay.take(ctx, &state->delay);
        for (size_t k = 0; k < corner->sends; k++) {
            HK_TRY(tp->send(ctx, corner->to[k].peer, run->out + corner->to[k].offset, run->bytes));
        }
    }
    return HK_OK;
}

static hk_status_t sweep_repeat(hk_run_t *run, uint64_t reps)
{
    const sweep_state_t *state = run->state;
    for (uint64_t i = 0; i < reps; i++) {
        for (int c = 0; c < SWEEP_CORNERS; c++) {
            HK_TRY(sweep_from(run, &state->corner[c]));
        }
    }
    return HK_OK;
}

static bool sweep_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const sweep_state_t *state = run->state;
    for (int c = 0; c < SWEEP_CORNERS; c++) {
        const sweep_corner_t *corner = &state->corner[c];
        if (i < corner->receives) {
            *expected_p = (hk_expected_t){.in_offset = corner->from[i].offset,
                                          .from_offset = corner->from[i].offset,
                                          .size_bytes = run->bytes,
                                          .from_rank = corner->from[i].peer};
            return true;
        }
        i -= corner->receives;
    }
    return false;
}

const hk_pattern_t hk_pattern_sweep = {
    .name = "sweep",
    .kind = HK_KIND_APPLICATION,
    .summary = "a wavefront over a 2-D grid from each corner, block by block: receive, compute, send; slowest rank",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_SLOWEST,
    .stream = true,
    .dimensions = SWEEP_AXES,
    .option = {HK_GRID_OPTION("nx"),
               HK_GRID_OPTION("ny"),
               {"blocks", NULL, 8, 1, 10000, "parts of a sweep from one corner, each with separate messages"},
               {"delay_us", NULL, 0, 0, 1000000, "computation of each rank for each block, in us; 0: none"}},
    .fits = hk_grid_fits,
    .plan = sweep_plan,
    .prepare = sweep_prepare,
    .repeat = sweep_repeat,
    .expected = sweep_expected,
    .counter = hk_state_counter,
};
