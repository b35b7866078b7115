/* Ping-pong: the source sends, and the target answers with a message of the same size. The time is half a round trip on
 * the source. Ranks 0 and 1 unless the options name others; the rest are idle.
 *
 * The option `receive` selects how both ranks receive:
 *   blocking  a plain receive.
 *   posted    each receive is started before its message can be sent: the source starts it before it sends, the
 *             target before it answers.
 *   late      a message of 8 bytes announces each message. The receiver takes the announcement, computes for twice a
 *             plain round trip of this size, and then receives the message, which has arrived meanwhile. Computation
 *             is subtracted from the time: the announcement contains the sender's last wait.
 *   probe     a rank probes until its message is there, and then receives it.
 *   any-source, any-tag, any  a receive takes a message from any rank, with any tag, or both.
 *
 * Meanwhile other messages and receives may wait in the queues that a library searches (queues.h). */
#include <stdio.h>
#include <string.h>

#include "../device.h"
#include "any.h"
#include "queues.h"
#include "roundtrip.h"

enum { PINGPONG_RECEIVE = HK_ROLE_TARGET + 1, PINGPONG_QUEUES };
enum { RECEIVE_BLOCKING, RECEIVE_POSTED, RECEIVE_LATE, RECEIVE_PROBE, RECEIVE_ANY };
enum { PLAIN_TRIPS = 5, ANNOUNCED_BYTES = sizeof(uint64_t) };

typedef struct pingpong_state {
    bool is_posted;            /* the receive of the first message is under way: the ranks have met */
    uint64_t wait_ns;          /* late: length of a wait, measured when the ranks first met */
    uint64_t waited_ns;        /* the last wait */
    uint64_t receives, probes; /* posted, late or probed receives; and probes made */
    double wait_total_ns;
} pingpong_state_t;

/* The announcement lies after the message. */
static size_t pingpong_announced_at(size_t bytes)
{
    return (bytes + ANNOUNCED_BYTES - 1) / ANNOUNCED_BYTES * ANNOUNCED_BYTES;
}

/* They lie after the message and its announcement. */
static hk_queues_t pingpong_queues(const hk_run_t *run)
{
    const bool is_late = run->option[PINGPONG_RECEIVE] == RECEIVE_LATE;
    return hk_queues_of(run, PINGPONG_QUEUES,
                        is_late ? pingpong_announced_at(run->bytes) + ANNOUNCED_BYTES : run->bytes);
}

static hk_plan_t pingpong_plan(const hk_run_t *run)
{
    const hk_queues_t queues = pingpong_queues(run);
    return (hk_plan_t){.out_bytes = queues.room_bytes,
                       .in_bytes = queues.room_bytes,
                       .reqs_count = 1 + queues.posted,
                       .state_bytes = sizeof(pingpong_state_t),
                       HK_MOVES(run, 2),
                       .divisor = 2,
                       .root = hk_source(run->option)};
}

/* Which of the words of any.h; below 0: none. */
static int64_t pingpong_any(const hk_run_t *run)
{
    return run->option[PINGPONG_RECEIVE] - RECEIVE_ANY;
}

static bool pingpong_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    const int64_t receive = run->option[PINGPONG_RECEIVE];
    if (receive == RECEIVE_POSTED && (tp->caps & HK_CAP_NONBLOCKING) == 0) {
        snprintf(why, len, "receive=posted needs receives that are started early, which %s does not offer", tp->name);
        return false;
    }
    if (receive == RECEIVE_PROBE && (tp->caps & HK_CAP_PROBE) == 0) {
        snprintf(why, len, "receive=probe needs a probe for messages, which %s does not offer", tp->name);
        return false;
    }
    if (receive == RECEIVE_LATE && (tp->move != NULL || hk_asks_memory(run))) {
        snprintf(why, len, "receive=late writes times into its messages, which the CPU cannot reach on devices");
        return false;
    }
    if (pingpong_any(run) >= HK_ANY_TAG && run->option[PINGPONG_QUEUES + HK_QUEUE_UNEXPECTED] > 0) {
        snprintf(why, len, "a receive with any tag would take the messages of unexpected=: use receive=any-source");
        return false;
    }
    return hk_any_fits(run, pingpong_any(run), why, len) && hk_queues_fit(run, PINGPONG_QUEUES, why, len) &&
           hk_roles_fit(run, why, len);
}

static hk_status_t pingpong_prepare(hk_run_t *run)
{
    const hk_queues_t queues = pingpong_queues(run);
    return hk_unless_broken(hk_queues_fill(run, &queues, hk_role_peer(run->ctx->rank, run->option)));
}

static hk_status_t pingpong_finish(hk_run_t *run)
{
    const hk_queues_t queues = pingpong_queues(run);
    return hk_queues_empty(run, &queues, hk_role_peer(run->ctx->rank, run->option));
}

/* ---- posted ------------------------------------------------------------------------------------------------------ */

static hk_status_t pingpong_post(hk_run_t *run, int peer)
{
    return run->ctx->tp->irecv(run->ctx, peer, run->in, run->bytes, run->reqs);
}

/* Nothing stays posted after the last message, because the next message belongs to another loop. */
static hk_status_t posted_target(hk_run_t *run, int peer, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    pingpong_state_t *state = run->state;
    HK_TRY(state->is_posted ? HK_OK : pingpong_post(run, peer));
    state->is_posted = false;
    for (uint64_t i = 1; i < reps; i++) {
        HK_TRY(tp->wait_all(ctx, run->reqs, 1));
        HK_TRY(tp->irecv(ctx, peer, run->in, run->bytes, run->reqs));
        HK_TRY(tp->send(ctx, peer, run->out, run->bytes));
    }
    HK_TRY(tp->wait_all(ctx, run->reqs, 1));
    return tp->send(ctx, peer, run->out, run->bytes);
}

/* ---- late -------------------------------------------------------------------------------------------------------- */

static hk_status_t send_announced(hk_run_t *run, int peer)
{
    hk_ctx_t *ctx = run->ctx;
    unsigned char *word = run->out + pingpong_announced_at(run->bytes);
    memcpy(word, &((const pingpong_state_t *)run->state)->waited_ns, ANNOUNCED_BYTES);
    HK_TRY(ctx->tp->send(ctx, peer, word, ANNOUNCED_BYTES));
    return ctx->tp->send(ctx, peer, run->out, run->bytes);
}

static hk_status_t receive_late(hk_run_t *run, int peer)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    pingpong_state_t *state = run->state;
    uint64_t peer_waited_ns = 0;
    unsigned char *word = run->in + pingpong_announced_at(run->bytes);
    HK_TRY(tp->recv(ctx, peer, word, ANNOUNCED_BYTES));
    const uint64_t start_ns = tp->now_ns(ctx);
    tp->compute(ctx, state->wait_ns);
    state->waited_ns = tp->now_ns(ctx) - start_ns;
    state->wait_total_ns += (double)state->waited_ns;
    memcpy(&peer_waited_ns, word, ANNOUNCED_BYTES);
    run->untimed_ns += state->waited_ns + peer_waited_ns;
    return tp->recv(ctx, peer, run->in, run->bytes);
}

static hk_status_t late_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    /* A wait of an earlier sample is not subtracted. */
    ((pingpong_state_t *)run->state)->waited_ns = 0;
    return hk_trips(run, peer, begins, reps, send_announced, receive_late);
}

/* ---- probe ------------------------------------------------------------------------------------------------------- */

static hk_status_t receive_probed(hk_run_t *run, int peer)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    uint64_t probes = 0;
    bool is_there = false;
    while (!is_there) {
        HK_TRY(tp->probe(ctx, peer, &is_there));
        probes++;
    }
    ((pingpong_state_t *)run->state)->probes += probes;
    return tp->recv(ctx, peer, run->in, run->bytes);
}

static hk_status_t probed_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    hk_status_t status = begins ? ctx->tp->send(ctx, peer, run->out, run->bytes) : HK_OK;
    for (uint64_t i = 1; i < reps + (begins ? 0 : 1) && status == HK_OK; i++) {
        status = receive_probed(run, peer);
        if (status == HK_OK) {
            status = ctx->tp->send(ctx, peer, run->out, run->bytes);
        }
    }
    return begins && status == HK_OK ? receive_probed(run, peer) : status;
}

/* ---- any --------------------------------------------------------------------------------------------------------- */

static hk_status_t matched_trips(hk_run_t *run, int peer, bool begins, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    const int source = hk_any_source(run, pingpong_any(run), peer), tag = hk_any_tag(run, pingpong_any(run));
    if (begins) {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(tp->send(ctx, peer, run->out, run->bytes));
            HK_TRY(tp->recv_tagged(ctx, source, tag, run->in, run->bytes));
        }
    } else {
        for (uint64_t i = 0; i < reps; i++) {
            HK_TRY(tp->recv_tagged(ctx, source, tag, run->in, run->bytes));
            HK_TRY(tp->send(ctx, peer, run->out, run->bytes));
        }
    }
    return HK_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hk_status_t pingpong_repeat(hk_run_t *run, uint64_t reps)
{
    const int rank = run->ctx->rank;
    const int peer = hk_role_peer(rank, run->option);
    const bool begins = rank == hk_source(run->option);
    if (peer < 0 || reps == 0) {
        return HK_OK;
    }
    ((pingpong_state_t *)run->state)->receives += reps;
    switch (run->option[PINGPONG_RECEIVE]) {
    case RECEIVE_BLOCKING:
        return hk_round_trips(run, peer, begins, reps);
    case RECEIVE_POSTED:
        return begins ? hk_posted_exchanges(run, peer, reps) : posted_target(run, peer, reps);
    case RECEIVE_LATE:
        return late_trips(run, peer, begins, reps);
    case RECEIVE_PROBE:
        return probed_trips(run, peer, begins, reps);
    default:
        return matched_trips(run, peer, begins, reps);
    }
}

/* With `posted`, the target's message that its receive is posted synchronises both ranks. */
static hk_status_t pingpong_meet(hk_run_t *run)
{
    hk_ctx_t *ctx = run->ctx;
    pingpong_state_t *state = run->state;
    const int peer = hk_role_peer(ctx->rank, run->option);
    const bool begins = ctx->rank == hk_source(run->option);
    if (peer >= 0 && run->option[PINGPONG_RECEIVE] == RECEIVE_POSTED) {
        if (begins) {
            return ctx->tp->recv(ctx, peer, run->in, 0);
        }
        HK_TRY(pingpong_post(run, peer));
        state->is_posted = true;
        return ctx->tp->send(ctx, peer, run->out, 0);
    }
    if (peer >= 0 && run->option[PINGPONG_RECEIVE] == RECEIVE_LATE && state->wait_ns == 0) {
        HK_TRY(hk_shortest_trip(run, peer, begins, PLAIN_TRIPS, &state->wait_ns));
        state->wait_ns *= 2; /* a message follows its announcement at once */
    }
    return hk_roles_meet(run);
}

/* The counters that show which way to receive was used. */
static bool pingpong_counter(const hk_run_t *run, size_t i, hk_counter_t *counter_p)
{
    static const char *const names[] = {NULL, "posted_receives", "late_receives", "probed_receives"};
    const pingpong_state_t *state = run->state;
    const int64_t receive = run->option[PINGPONG_RECEIVE];
    if (receive == RECEIVE_BLOCKING || receive >= RECEIVE_ANY) {
        return false;
    }
    if (i == 0) {
        *counter_p = (hk_counter_t){names[receive], (double)state->receives};
    } else {
        *counter_p = receive == RECEIVE_LATE ? (hk_counter_t){"late_wait_ns", state->wait_total_ns}
                                             : (hk_counter_t){"probes", (double)state->probes};
    }
    return i < (receive == RECEIVE_POSTED ? 1 : 2);
}

const hk_pattern_t hk_pattern_pingpong = {
    .name = "pingpong",
    .summary = "one message back and forth between two ranks; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .untouched = true,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .option = {HK_ROLES_OPTIONS,
               {"receive", "blocking|posted|late|probe|" HK_ANY_WORDS, RECEIVE_BLOCKING, 0, 0,
                "a plain receive; one started before its message is sent, or after it has arrived; one after a "
                "probe has found the message; or one from any rank, with any tag, or both"},
               HK_QUEUE_OPTIONS,
               HK_MEMORY_OPTION},
    .fits = pingpong_fits,
    .plan = pingpong_plan,
    .prepare = pingpong_prepare,
    .finish = pingpong_finish,
    .meet = pingpong_meet,
    .repeat = pingpong_repeat,
    .expected = hk_roles_expected,
    .counter = pingpong_counter,
};
