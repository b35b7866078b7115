/* Random pairs (Unirandom, Birandom and Corandom of IMB-P2P). In one-way and two-way a repetition is P steps: in each,
 * two ranks drawn at random send a message, or exchange one, while the others go on; a rank takes its steps in order.
 * In ring, all ranks form a ring in random order, and each sends to the next and receives from the previous one. The
 * draws are the same on all ranks and in all measurements, made before the samples, and begin anew after `period`
 * repetitions. The time is the mean of all ranks or the slowest rank's, in two-way half of it. */
#include "../mix.h"
#include "flow.h"

enum { RANDOM_WAY, RANDOM_TIME };
enum { RANDOM_ONE_WAY, RANDOM_TWO_WAY, RANDOM_RING };
enum { RANDOM_PERIOD = 64, RANDOM_PERIOD_LEAST = 8, RANDOM_PAIRS = 4096 };
enum { RANDOM_SEED = 1, RANDOM_PLACES = 8 }; /* where the messages of a repetition are received, in turn */

/* What a rank does in a step. In a ring it receives from another rank than it sends to. */
typedef struct random_step {
    int to, from; /* -1: neither */
} random_step_t;

typedef struct random_state {
    uint64_t count; /* repetitions so far */
    size_t places;
    size_t first[RANDOM_PERIOD + 1]; /* the first step of each repetition */
    random_step_t step[];            /* then, of a ring, room for the order of all ranks */
} random_state_t;

/* Of many ranks few repetitions are drawn, as every rank draws the pairs of all; but no single one decides. */
static uint64_t random_period(const hk_ctx_t *ctx)
{
    const int most = RANDOM_PAIRS / ctx->size;
    return most > RANDOM_PERIOD ? RANDOM_PERIOD : most > RANDOM_PERIOD_LEAST ? (uint64_t)most : RANDOM_PERIOD_LEAST;
}

/* ---- the draws --------------------------------------------------------------------------------------------------- */

/* From 0 to below - 1. */
static int random_draw(uint64_t *state, int below)
{
    return (int)(hk_mix_next(state) % (uint64_t)below);
}

/* This rank's steps of a repetition; returns their number. step_p may be NULL. */
static size_t random_pairs(const hk_run_t *run, uint64_t *state, random_step_t *step_p)
{
    const int rank = run->ctx->rank, size = run->ctx->size, others = size - 1;
    const bool both = run->option[RANDOM_WAY] == RANDOM_TWO_WAY;
    size_t count = 0;
    for (int i = 0; i < size && others > 0; i++) {
        const int a = random_draw(state, size), other = random_draw(state, others), b = other + (other >= a);
        if (rank != a && rank != b) {
            continue;
        }
        const int peer = rank == a ? b : a;
        if (step_p != NULL) {
            step_p[count] = (random_step_t){.to = both || rank == a ? peer : -1, .from = both || rank == b ? peer : -1};
        }
        count++;
    }
    return count;
}

/* A shuffle (R. Durstenfeld, Algorithm 235, 1964). */
static size_t random_ring(const hk_run_t *run, uint64_t *state, int *order, random_step_t *step_p)
{
    const int size = run->ctx->size;
    int at = 0;
    for (int i = 0; i < size; i++) {
        const int j = random_draw(state, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    while (order[at] != run->ctx->rank) {
        at++;
    }
    *step_p = (random_step_t){.to = order[(at + 1) % size], .from = order[(at + size - 1) % size]};
    return 1;
}

/* What this rank needs for its steps of all repetitions. */
static size_t random_steps_bytes(const hk_run_t *run)
{
    const uint64_t period = random_period(run->ctx);
    uint64_t draws = RANDOM_SEED;
    size_t steps = 0;
    if (run->option[RANDOM_WAY] == RANDOM_RING) {
        return (size_t)period * sizeof(random_step_t) + (size_t)run->ctx->size * sizeof(int);
    }
    for (uint64_t i = 0; i < period; i++) {
        steps += random_pairs(run, &draws, NULL);
    }
    return steps * sizeof(random_step_t);
}

static hk_plan_t random_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_MEAN, HK_TIMED_SLOWEST};
    const uint64_t ways = run->option[RANDOM_WAY] == RANDOM_TWO_WAY ? 2 : 1, size = (uint64_t)run->ctx->size;
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = hk_flow_places(run->bytes, RANDOM_PLACES) * run->bytes,
                       .reqs_count = 1,
                       .state_bytes = sizeof(random_state_t) + random_steps_bytes(run),
                       HK_MOVES(run, ways * size),
                       .divisor = ways,
                       .timed = timed[run->option[RANDOM_TIME]],
                       .period = random_period(run->ctx)};
}

static hk_status_t random_prepare(hk_run_t *run)
{
    random_state_t *state = run->state;
    const uint64_t period = random_period(run->ctx);
    int *order = (int *)(void *)(state->step + period);
    uint64_t draws = RANDOM_SEED;
    state->places = hk_flow_places(run->bytes, RANDOM_PLACES);
    for (uint64_t i = 0; i < period; i++) {
        random_step_t *at = state->step + state->first[i];
        const bool is_ring = run->option[RANDOM_WAY] == RANDOM_RING;
        state->first[i + 1] =
            state->first[i] + (is_ring ? random_ring(run, &draws, order, at) : random_pairs(run, &draws, at));
    }
    return HK_OK;
}

/* ---- the loops --------------------------------------------------------------------------------------------------- */

/* A step of one way: a send or a receive. */
static inline hk_status_t random_move(hk_run_t *run, const random_step_t *step, unsigned char *in)
{
    const hk_transport_t *tp = run->ctx->tp;
    return step->to >= 0 ? tp->send(run->ctx, step->to, run->out, run->bytes)
                         : tp->recv(run->ctx, step->from, in, run->bytes);
}

static inline hk_status_t random_exchange(hk_run_t *run, const random_step_t *step, unsigned char *in)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    HK_TRY(tp->irecv(ctx, step->from, in, run->bytes, run->reqs));
    HK_TRY(tp->send(ctx, step->to, run->out, run->bytes));
    return tp->wait_all(ctx, run->reqs, 1);
}

/* `one_way` is a constant in each call. */
static inline hk_status_t random_steps(hk_run_t *run, uint64_t reps, const bool one_way)
{
    random_state_t *state = run->state;
    const uint64_t period = random_period(run->ctx);
    for (uint64_t i = 0; i < reps; i++, state->count++) {
        const uint64_t turn = state->count % period;
        const random_step_t *step = state->step + state->first[turn], *end = state->step + state->first[turn + 1];
        for (size_t place = 0; step < end; step++) {
            unsigned char *in = run->in + place * run->bytes;
            HK_TRY(one_way ? random_move(run, step, in) : random_exchange(run, step, in));
            if (step->from >= 0) {
                place = place + 1 < state->places ? place + 1 : 0;
            }
        }
    }
    return HK_OK;
}

static hk_status_t random_repeat(hk_run_t *run, uint64_t reps)
{
    return run->option[RANDOM_WAY] == RANDOM_ONE_WAY ? random_steps(run, reps, true) : random_steps(run, reps, false);
}

/* The last message in each place, of the last repetition. */
static bool random_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const random_state_t *state = run->state;
    const uint64_t turn = (state->count + random_period(run->ctx) - 1) % random_period(run->ctx);
    int from = -1;
    size_t received = 0;
    for (size_t k = state->first[turn]; k < state->first[turn + 1]; k++) {
        if (state->step[k].from >= 0) {
            from = received % state->places == i ? state->step[k].from : from;
            received++;
        }
    }
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes, .from_rank = from};
    return i < state->places && from >= 0;
}

const hk_pattern_t hk_pattern_random = {
    .name = "random",
    .summary = "messages between ranks that are drawn at random, P in a repetition; mean time",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .timed = HK_TIMED_MEAN,
    .stream = true,
    .option = {{"way", "one-way|two-way|ring", RANDOM_ONE_WAY, 0, 0,
                "pairs that send a message, pairs that exchange one, or a ring in random order"},
               {"time", "mean|slowest", 0, 0, 0, "whose time counts"}},
    .plan = random_plan,
    .prepare = random_prepare,
    .repeat = random_repeat,
    .expected = random_expected,
};
