/* Halo exchange on a periodic grid, near a square or a cube (Stencil2D and Stencil3D of IMB-P2P, IMB-HALO): each rank
 * exchanges one message with each neighbour, all at once, and then computes. The time is that of the slowest rank, the
 * mean of all ranks, or this mean per message that a rank sends. */
#include "delay.h"
#include "grid.h"

enum { HALO_FACES_MAX = 2 * HK_GRID_DIMENSIONS_MAX };

// clang-format off
#define HALO_OPTION_COMPUTE \
    {"delay_us", NULL, 0, 0, 1000000, "computation of each rank after each exchange, in us; 0: none"}
#define HALO_OPTION_TIME \
    {"time", "slowest|mean|message", HALO_SLOWEST, 0, 0, "whose time counts; message: the mean per message of a rank"}
// clang-format on

/* After the grid. */
enum { HALO_COMPUTE, HALO_TIME };
enum { HALO_SLOWEST, HALO_MEAN, HALO_MESSAGE };

/* The pattern's state. Face k goes to rank to[k]; the received face k comes from rank from[k]. */
typedef struct halo_state {
    hk_delay_t delay;
    size_t faces;
    int to[HALO_FACES_MAX], from[HALO_FACES_MAX];
} halo_state_t;

/* A dimension with one rank has no neighbours. */
static size_t halo_faces(const hk_grid_t *grid)
{
    size_t faces = 0;
    for (int d = 0; d < HK_GRID_DIMENSIONS_MAX; d++) {
        faces += grid->ranks[d] > 1 ? 2 : 0;
    }
    return faces;
}

static hk_plan_t halo_plan(const hk_run_t *run)
{
    const hk_grid_t grid = hk_grid_of(run);
    const size_t faces = halo_faces(&grid);
    const uint64_t messages = (uint64_t)run->ctx->size * faces;
    const int64_t time = run->option[run->pattern->dimensions + HALO_TIME];
    return (hk_plan_t){.out_bytes = faces * run->bytes,
                       .in_bytes = faces * run->bytes,
                       .reqs_count = 2 * faces,
                       .state_bytes = sizeof(halo_state_t),
                       HK_MOVES(run, messages),
                       .divisor = time == HALO_MESSAGE && faces > 0 ? faces : 1,
                       .timed = time == HALO_SLOWEST ? HK_TIMED_SLOWEST : HK_TIMED_MEAN};
}

/* Faces have the same order on all ranks, so that two ranks that are neighbours on both sides match them. */
static hk_status_t halo_prepare(hk_run_t *run)
{
    const int dimensions = run->pattern->dimensions;
    halo_state_t *state = run->state;
    const hk_grid_t grid = hk_grid_of(run);
    size_t k = 0;
    for (int d = 0; d < dimensions; d++) {
        for (int step = -1; step <= 1 && grid.ranks[d] > 1; step += 2, k++) {
            state->to[k] = hk_grid_around(&grid, d, step);
            state->from[k] = hk_grid_around(&grid, d, -step);
        }
    }
    state->faces = k;
    const uint64_t compute_ns = (uint64_t)run->option[dimensions + HALO_COMPUTE] * 1000;
    return hk_delay_prepare(run->ctx, HK_DELAY_CLOCK, compute_ns, &state->delay);
}

static hk_status_t halo_repeat(hk_run_t *run, uint64_t reps)
{
    halo_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const size_t faces = state->faces, bytes = run->bytes;
    for (uint64_t i = 0; i < reps; i++) {
        for (size_t k = 0; k < faces; k++) {
            HK_TRY(tp->irecv(ctx, state->from[k], run->in + k * bytes, bytes, &run->reqs[k]));
        }
        for (size_t k = 0; k < faces; k++) {
            HK_TRY(tp->isend(ctx, state->to[k], run->out + k * bytes, bytes, &run->reqs[faces + k]));
        }
        HK_TRY(tp->wait_all(ctx, run->reqs, 2 * faces));
        state->delay.take(ctx, &state->delay);
    }
    return HK_OK;
}

static bool halo_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const halo_state_t *state = run->state;
    if (i >= state->faces) {
        return false;
    }
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes,
                                  .from_offset = i * run->bytes,
                                  .size_bytes = run->bytes,
                                  .from_rank = state->from[i]};
    return true;
}

#define HALO_SHARED                                                                                                    \
    .kind = HK_KIND_APPLICATION, .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING, .ranks_min = 2, .timed = HK_TIMED_SLOWEST, \
    .stream = true, .fits = hk_grid_fits, .plan = halo_plan, .prepare = halo_prepare, .repeat = halo_repeat,           \
    .expected = halo_expected, .counter = hk_state_counter

const hk_pattern_t hk_pattern_halo2d = {
    .name = "halo2d",
    .summary =
        "ranks on a periodic grid exchange messages with four neighbours, all at once, and compute; slowest rank",
    .dimensions = 2,
    .option = {HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), HALO_OPTION_COMPUTE, HALO_OPTION_TIME},
    HALO_SHARED,
};

const hk_pattern_t hk_pattern_halo3d = {
    .name = "halo3d",
    .summary = "ranks on a periodic grid exchange messages with six neighbours, all at once, and compute; slowest rank",
    .dimensions = 3,
    .option = {HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), HK_GRID_OPTION("nz"), HALO_OPTION_COMPUTE, HALO_OPTION_TIME},
    HALO_SHARED,
};

const hk_pattern_t hk_pattern_halo4d = {
    .name = "halo4d",
    .summary = "ranks on a periodic grid exchange messages with eight neighbours, as lattice QCD does; slowest rank",
    .dimensions = 4,
    .option = {HK_GRID_OPTION("nx"), HK_GRID_OPTION("ny"), HK_GRID_OPTION("nz"), HK_GRID_OPTION("nt"),
               HALO_OPTION_COMPUTE, HALO_OPTION_TIME},
    HALO_SHARED,
};
