/* Ping-ping (IMB): ranks i and i + P/2 send to each other at once, and each receives the other's message, all pairs at
 * once. The time is that of an exchange, on the slowest rank or the mean.
 *
 * The option `receive`: "blocking" starts the send, receives, and waits for the send; "any-source", "any-tag" and "any"
 * the same, from any rank, with any tag, or both: PingPing of IMB-MPI1 has any tag, PingPingAnySource both. "posted"
 * starts the receive, sends, and waits for the receive, as PingPing of IMB-P2P does. */
#include "any.h"
#include "halves.h"

enum { PINGPING_RECEIVE, PINGPING_TIME };
enum { PINGPING_BLOCKING, PINGPING_POSTED, PINGPING_ANY };

/* Which of the words of any.h; below 0: none. */
static int64_t pingping_any(const hk_run_t *run)
{
    return run->option[PINGPING_RECEIVE] - PINGPING_ANY;
}

static bool pingping_fits(const hk_run_t *run, char *why, size_t len)
{
    return hk_any_fits(run, pingping_any(run), why, len);
}

static hk_plan_t pingping_plan(const hk_run_t *run)
{
    static const hk_timed_t timed[] = {HK_TIMED_SLOWEST, HK_TIMED_MEAN};
    const uint64_t size = (uint64_t)run->ctx->size;
    return (hk_plan_t){HK_ONE_EACH(run), .reqs_count = 1, HK_MOVES(run, size),
                       .timed = timed[run->option[PINGPING_TIME]]};
}

static hk_status_t pingping_matched(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int source = hk_any_source(run, pingping_any(run), peer), tag = hk_any_tag(run, pingping_any(run));
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->isend(ctx, peer, run->out, run->bytes, run->reqs));
        HK_TRY(tp->recv_tagged(ctx, source, tag, run->in, run->bytes));
        HK_TRY(tp->wait_all(ctx, run->reqs, 1));
    }
    return HK_OK;
}

static hk_status_t pingping_repeat(hk_run_t *run, uint64_t reps)
{
    const int peer = hk_halves_peer(run->ctx);
    switch (run->option[PINGPING_RECEIVE]) {
    case PINGPING_BLOCKING:
        return hk_exchanges(run, peer, reps);
    case PINGPING_POSTED:
        return hk_posted_exchanges(run, peer, reps);
    default:
        return pingping_matched(run, peer, reps);
    }
}

/* Both send first. */
static hk_status_t pingping_meet(hk_run_t *run)
{
    const int peer = hk_halves_peer(run->ctx);
    return hk_start_pair(run, peer, run->ctx->rank < peer);
}

const hk_pattern_t hk_pattern_pingping = {
    .name = "pingping",
    .summary = "partners in two halves of the ranks send to each other at once and receive; the slowest exchange",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 2,
    .ranks_step = 2,
    .untouched = true,
    .timed = HK_TIMED_SLOWEST,
    .links = HK_LINKS_HALVES,
    .stream = true,
    .option = {{"receive", "blocking|posted|" HK_ANY_WORDS, PINGPING_BLOCKING, 0, 0,
                "a plain receive after the send has started; one started before it; or a plain one of any message"},
               {"time", "slowest|mean", 0, 0, 0, "whose time counts"},
               HK_MEMORY_OPTION},
    .fits = pingping_fits,
    .plan = pingping_plan,
    .meet = pingping_meet,
    .repeat = pingping_repeat,
    .expected = hk_halves_expected,
};
