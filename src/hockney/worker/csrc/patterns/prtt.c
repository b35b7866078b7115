/* Parametrised round trip, PRTT(n, d, s) of Hoefler, Lichei and Rehm (IPDPS workshops 2007): the source sends n
 * messages of s bytes, and the target answers the last with one of the same size. The time is the source's. A delay
 * d follows each message, including the last. An answer that arrives during it costs only its receive overhead,
 * which separates the overheads of the two ends (Kielmann, Bal and Verstoep, IPDPS workshops 2000). Four such times
 * give the LogGP parameters; src/hockney/stats/fit/loggp.py has the formulas. */
#include "delay.h"
#include "roundtrip.h"

enum { PRTT_SOURCE = HK_ROLE_SOURCE, PRTT_TARGET = HK_ROLE_TARGET, PRTT_MESSAGES, PRTT_DELAY_NS };

enum {
    PRTT_TRIES = 5,
    PRTT_DELAYS_MAX = 16,          /* delays per try: their mean counts */
    PRTT_CALIBRATION_NS = 4000000, /* limit for all tries, except for one delay each */
    PRTT_DELAY_MAX_NS =
        5000000, /* so that three repetitions of 1024 delays fit into the shortest usual limit of 20 s */
};

/* The pattern's state: the real time of a delay, and the number of delays. */
typedef struct prtt_state {
    double delay_ns, delays;
} prtt_state_t;

static hk_plan_t prtt_plan(const hk_run_t *run)
{
    const uint64_t messages = (uint64_t)run->option[PRTT_MESSAGES];
    return (hk_plan_t){HK_ONE_EACH(run), .state_bytes = sizeof(prtt_state_t), HK_MOVES(run, messages + 1),
                       .root = hk_source(run->option)};
}

/* The mean time of a delay, including its call and overshoot. The loop reads no other clock. */
static double prtt_delay_ns(hk_ctx_t *ctx, uint64_t asked_ns)
{
    const uint64_t room = PRTT_CALIBRATION_NS / PRTT_TRIES / asked_ns;
    const uint64_t delays = room < 1 ? 1 : room < PRTT_DELAYS_MAX ? room : PRTT_DELAYS_MAX;
    uint64_t spent_ns = 0;
    double least_ns = 0;
    for (int i = 0; i < PRTT_TRIES && spent_ns < PRTT_CALIBRATION_NS; i++) {
        const uint64_t start_ns = ctx->tp->now_ns(ctx);
        for (uint64_t k = 0; k < delays; k++) {
            ctx->tp->compute(ctx, asked_ns);
        }
        const uint64_t elapsed_ns = ctx->tp->now_ns(ctx) - start_ns;
        const double each_ns = (double)elapsed_ns / (double)delays;
        least_ns = i == 0 || each_ns < least_ns ? each_ns : least_ns;
        spent_ns += elapsed_ns;
    }
    return least_ns;
}

static hk_status_t prtt_prepare(hk_run_t *run)
{
    const uint64_t asked_ns = (uint64_t)run->option[PRTT_DELAY_NS];
    if (asked_ns == 0 || run->ctx->rank != hk_source(run->option)) {
        return HK_OK;
    }
    HK_TRY(hk_delay_resolved(run->ctx, asked_ns));
    prtt_state_t *state = run->state;
    state->delay_ns = prtt_delay_ns(run->ctx, asked_ns);
    return HK_OK;
}

/* `spaced` is a constant in each call, so the loop without delays contains no test. */
static inline hk_status_t prtt_ask(hk_run_t *run, int target, uint64_t reps, const bool spaced)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int64_t messages = run->option[PRTT_MESSAGES];
    const uint64_t delay_ns = (uint64_t)run->option[PRTT_DELAY_NS];
    prtt_state_t *state = run->state;
    for (uint64_t i = 0; i < reps; i++) {
        for (int64_t k = 0; k < messages; k++) {
            HK_TRY(tp->send(ctx, target, run->out, run->bytes));
            if (spaced) {
                tp->compute(ctx, delay_ns);
            }
        }
        HK_TRY(tp->recv(ctx, target, run->in, run->bytes));
    }
    state->delays += spaced ? (double)reps * (double)messages : 0;
    return HK_OK;
}

static hk_status_t prtt_answer(hk_run_t *run, int source, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int64_t messages = run->option[PRTT_MESSAGES];
    for (uint64_t i = 0; i < reps; i++) {
        for (int64_t k = 0; k < messages; k++) {
            HK_TRY(tp->recv(ctx, source, run->in, run->bytes));
        }
        HK_TRY(tp->send(ctx, source, run->out, run->bytes));
    }
    return HK_OK;
}

static hk_status_t prtt_repeat(hk_run_t *run, uint64_t reps)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    if (peer < 0) {
        return HK_OK;
    }
    if (run->ctx->rank == hk_target(run->option)) {
        return prtt_answer(run, peer, reps);
    }
    return run->option[PRTT_DELAY_NS] > 0 ? prtt_ask(run, peer, reps, true) : prtt_ask(run, peer, reps, false);
}

static bool prtt_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    const prtt_state_t *state = run->state;
    const hk_delay_t delay = {.count = state->delays, .taken_ns = state->delays * state->delay_ns};
    return hk_delay_counter(&delay, i, counter_p);
}

const hk_pattern_t hk_pattern_prtt = {
    .name = "prtt",
    .summary = "messages with a delay after each, answered by one; the round trip that gives LogGP parameters",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .option = {HK_ROLES_OPTIONS,
               {"messages", NULL, 1, 1, 1024, "messages before the answer"},
               {"delay_ns", NULL, 0, 0, PRTT_DELAY_MAX_NS, "computation after each message; 0: none"}},
    .fits = hk_roles_fit,
    .plan = prtt_plan,
    .prepare = prtt_prepare,
    .meet = hk_roles_meet,
    .repeat = prtt_repeat,
    .expected = hk_roles_expected,
    .counter = prtt_counter,
};
