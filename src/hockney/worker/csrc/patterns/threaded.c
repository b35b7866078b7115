/* Patterns mt_…: messages between threads of two ranks, as in IMB-MT and osu_latency_mt. Thread i of a rank talks to
 * thread i of the rank P / 2 after it. Every thread has its own buffers. The time of a thread runs from its first
 * repetition to its last; a rank's is the mean of its threads', or the longest. */
#include <stdio.h>

#include "flow.h"
#include "roundtrip.h"
#include "threads.h"

enum {
    MT_COMM = HK_THREADS_OPTIONS,
    MT_MORE, /* of a kind of pattern */
    MT_WINDOW = MT_MORE,
    MT_DISTANCE = MT_MORE,
    MT_MATCH = MT_MORE,
    MT_RECEIVERS,
};

/* What a thread knows. */
typedef struct mt_thread {
    int next, previous; /* ranks; of pairs both are the partner */
    bool begins;
    uint64_t number, senders, receivers; /* comm=pool: `senders` messages in a repetition are for `receivers` threads */
} mt_thread_t;

typedef struct mt_kind {
    hk_loop_t loop;
    bool is_paired, is_one_way, has_window;
    size_t blocks;     /* that a thread receives, but for windows */
    size_t reqs;       /* of a thread, or for each message of a window */
    uint64_t messages; /* of two threads in a repetition, or for each message of a window */
    uint64_t divisor;  /* times the window */
} mt_kind_t;

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static hk_status_t mt_loop_pingpong(hk_run_t *run, uint64_t reps)
{
    const mt_thread_t *me = run->state;
    const uint64_t mine = me->begins ? reps : (reps * me->senders + me->receivers - 1 - me->number) / me->receivers;
    return hk_round_trips(run, me->next, me->begins, mine);
}

static hk_status_t mt_loop_pingping(hk_run_t *run, uint64_t reps)
{
    return hk_exchanges(run, ((const mt_thread_t *)run->state)->next, reps);
}

static hk_status_t mt_loop_sendrecv(hk_run_t *run, uint64_t reps)
{
    const mt_thread_t *me = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->irecv(ctx, me->previous, run->in, run->bytes, &run->reqs[0]));
        HK_TRY(tp->isend(ctx, me->next, run->out, run->bytes, &run->reqs[1]));
        HK_TRY(tp->wait_all(ctx, run->reqs, 2));
    }
    return HK_OK;
}

static hk_status_t mt_loop_exchange(hk_run_t *run, uint64_t reps)
{
    const mt_thread_t *me = run->state;
    hk_ctx_t *ctx = run->ctx;
    const hk_transport_t *tp = ctx->tp;
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(tp->isend(ctx, me->previous, run->out, run->bytes, &run->reqs[0]));
        HK_TRY(tp->isend(ctx, me->next, run->out, run->bytes, &run->reqs[1]));
        HK_TRY(tp->recv(ctx, me->previous, run->in, run->bytes));
        HK_TRY(tp->recv(ctx, me->next, run->in + run->bytes, run->bytes));
        HK_TRY(tp->wait_all(ctx, run->reqs, 2));
    }
    return HK_OK;
}

static hk_status_t mt_loop_uniband(hk_run_t *run, uint64_t reps)
{
    const mt_thread_t *me = run->state;
    return me->begins ? hk_flow_send_windows(run, me->next, reps, true)
                      : hk_flow_receive_windows(run, me->next, reps, true);
}

static hk_status_t mt_loop_biband(hk_run_t *run, uint64_t reps)
{
    const mt_thread_t *me = run->state;
    return hk_flow_exchange_windows(run, me->next, me->begins, reps, true);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static const mt_kind_t *mt_kind(const hk_run_t *run)
{
    return run->pattern->own;
}

static size_t mt_window(const hk_run_t *run)
{
    return mt_kind(run)->has_window ? (size_t)run->option[MT_WINDOW] : 1;
}

static bool mt_is_pool(const hk_run_t *run)
{
    return run->option[MT_COMM] == HK_APART_NOT;
}

/* Only a ping-pong has the option. */
static int mt_receivers(const hk_run_t *run)
{
    const bool has_option = mt_kind(run)->loop == mt_loop_pingpong;
    return (int)(has_option && run->option[MT_RECEIVERS] > 0 ? run->option[MT_RECEIVERS] : run->option[HK_THREADS]);
}

/* The threads of this rank, and of the rank that has most. */
static int mt_count(const hk_run_t *run)
{
    const bool begins = run->ctx->rank < run->ctx->size / 2;
    return begins ? (int)run->option[HK_THREADS] : mt_receivers(run);
}

static int mt_most(const hk_run_t *run)
{
    const int threads = (int)run->option[HK_THREADS], receivers = mt_receivers(run);
    return threads > receivers ? threads : receivers;
}

static size_t mt_blocks(const hk_run_t *run)
{
    const mt_kind_t *kind = mt_kind(run);
    return kind->has_window ? hk_flow_places(run->bytes, mt_window(run)) : kind->blocks;
}

/* The answer comes after the messages. */
static size_t mt_in_stride(const hk_run_t *run)
{
    return hk_threads_stride(mt_blocks(run) * run->bytes + 1);
}

/* The rank so many places further. */
static int mt_neighbour(const hk_run_t *run, bool is_next)
{
    const int size = run->ctx->size;
    const int64_t asked = mt_kind(run)->is_paired ? 0 : run->option[MT_DISTANCE];
    const int distance = asked > 0 ? (int)(asked % size) : size / 2;
    return (run->ctx->rank + (is_next ? distance : size - distance)) % size;
}

static hk_plan_t mt_plan(const hk_run_t *run)
{
    const mt_kind_t *kind = mt_kind(run);
    const size_t most = (size_t)mt_most(run);
    const uint64_t window = mt_window(run);
    const uint64_t messages =
        (uint64_t)run->option[HK_THREADS] * (uint64_t)run->ctx->size * kind->messages * window / 2;
    return (hk_plan_t){.out_bytes = most * hk_threads_stride(run->bytes),
                       .in_bytes = most * mt_in_stride(run),
                       .state_bytes = sizeof(hk_threads_t),
                       HK_MOVES(run, messages),
                       .divisor = kind->divisor * window,
                       .timed = run->option[HK_THREADS_TIME] == HK_THREADS_SLOWEST ? HK_TIMED_SLOWEST
                                                                                   : HK_TIMED_AS_DECLARED};
}

static bool mt_fits(const hk_run_t *run, char *why, size_t len)
{
    const mt_kind_t *kind = mt_kind(run);
    const bool is_pingpong = kind->loop == mt_loop_pingpong;
    const int64_t match = is_pingpong ? run->option[MT_MATCH] : HK_MATCH_ALL;
    const char *wrong = NULL;
    if (is_pingpong && run->option[MT_RECEIVERS] > 0 && !mt_is_pool(run)) {
        wrong = "receivers= needs comm=pool: else thread i answers to thread i";
    } else if ((match == HK_MATCH_ANY_TAG || match == HK_MATCH_ANY) && run->option[MT_COMM] == HK_APART_TAG) {
        wrong = "comm=shared tells threads apart by their tags: with any tag use comm=private or comm=pool";
    } else if (!kind->is_paired && mt_neighbour(run, true) == run->ctx->rank) {
        wrong = "distance= is a multiple of the number of ranks: a rank would send to itself";
    }
    snprintf(why, len, "%s", wrong != NULL ? wrong : "");
    return wrong == NULL;
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static hk_status_t mt_prepare(hk_run_t *run)
{
    const mt_kind_t *kind = mt_kind(run);
    hk_threads_t *threads = run->state;
    const int count = mt_count(run);
    const bool is_pool = mt_is_pool(run);
    const hk_match_t match = kind->loop == mt_loop_pingpong ? (hk_match_t)run->option[MT_MATCH] : HK_MATCH_ALL;
    HK_TRY(hk_threads_open(run, mt_most(run), (hk_apart_t)run->option[MT_COMM], match, count,
                           kind->reqs * mt_window(run), sizeof(mt_thread_t)));
    for (int i = 0; i < count; i++) {
        hk_run_t *one = hk_team_run(threads->team, i);
        one->out = run->out + (is_pool ? 0 : (size_t)i * hk_threads_stride(run->bytes));
        one->in = run->in + (size_t)i * mt_in_stride(run);
        *(mt_thread_t *)one->state = (mt_thread_t){.next = mt_neighbour(run, true),
                                                   .previous = mt_neighbour(run, false),
                                                   .begins = run->ctx->rank < run->ctx->size / 2,
                                                   .number = is_pool ? (uint64_t)i : 0,
                                                   .senders = is_pool ? (uint64_t)run->option[HK_THREADS] : 1,
                                                   .receivers = is_pool ? (uint64_t)mt_receivers(run) : 1};
    }
    const hk_status_t status = hk_team_start(threads->team, kind->loop);
    if (status != HK_OK) {
        hk_threads_finish(run);
    }
    return status;
}

static hk_status_t mt_meet(hk_run_t *run)
{
    HK_TRY(hk_threads_meet(run));
    return mt_kind(run)->is_paired ? hk_meet(run, mt_neighbour(run, true), run->ctx->rank < run->ctx->size / 2) : HK_OK;
}

static bool mt_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const mt_kind_t *kind = mt_kind(run);
    const size_t blocks = mt_blocks(run), thread = i / blocks, block = i % blocks;
    const bool begins = run->ctx->rank < run->ctx->size / 2;
    /* In one repetition of a pool there may be fewer messages than threads. */
    const size_t count =
        (size_t)(mt_is_pool(run) && !begins && mt_receivers(run) > run->option[HK_THREADS] ? run->option[HK_THREADS]
                                                                                           : mt_count(run));
    *expected_p = (hk_expected_t){.in_offset = thread * mt_in_stride(run) + block * run->bytes,
                                  .size_bytes = run->bytes,
                                  .from_rank = mt_neighbour(run, kind->loop == mt_loop_exchange && block == 1),
                                  .from_offset = mt_is_pool(run) ? 0 : thread * hk_threads_stride(run->bytes)};
    return thread < count && !(kind->is_one_way && begins);
}

/* ---- the patterns ------------------------------------------------------------------------------------------------ */

// clang-format off
#define MT_SHARED                                                                                                  \
    .kind = HK_KIND_THREADS, .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_MULTIPLE, .ranks_min = 2,          \
    .fits = mt_fits, .plan = mt_plan, .prepare = mt_prepare, .finish = hk_threads_finish, .meet = mt_meet,         \
    .repeat = hk_threads_repeat, .expected = mt_expected
#define MT_OPTION_COMM(words)                                                                                      \
    {"comm", words, HK_APART_COMM, 0, 0,                                                                           \
     "private: each thread has a communicator; shared: threads share one, and have a tag each; pool: one tag for all"}
#define MT_OPTION_WINDOW {"window", NULL, 64, 1, 1024, "messages of a thread under way at once"}
#define MT_OPTION_DISTANCE {"distance", NULL, 0, 0, 4095, "how many ranks further the next one is; 0: half of all"}
#define MT_OPTIONS_COMM MT_OPTION_COMM("private|shared")
#define MT_OPTIONS_RING MT_OPTIONS_COMM, MT_OPTION_DISTANCE
#define MT_OPTIONS_WINDOW MT_OPTIONS_COMM, MT_OPTION_WINDOW
#define MT_OPTIONS_POOL                                                                                            \
    MT_OPTION_COMM("private|shared|pool"),                                                                         \
    {"match", "all|any-source|any-tag|any", HK_MATCH_ALL, 0, 0, "what receives leave open"},                       \
    {"receivers", NULL, 0, 0, HK_TEAM_MAX,                                                                         \
     "threads that answer, with comm=pool: each takes the next message; 0: as many as send"}

/* A pattern; whose time; the divisor of the number of ranks; options; fields of mt_kind_t. */
#define MT_ROW(key, whose, step, text, options, ...)                                                               \
    const hk_pattern_t hk_pattern_mt_##key = {                                                                     \
        MT_SHARED, .name = "mt_" #key, .summary = text, .timed = HK_TIMED_##whose, .ranks_step = step,             \
        .option = {HK_OPTIONS_THREADS, options}, .own = &(const mt_kind_t){.loop = mt_loop_##key, __VA_ARGS__}};

MT_ROW(pingpong, SOURCES, 2,
    "ping-pongs of all threads at once, between ranks of the first and the second half; half the round trip",
    MT_OPTIONS_POOL, .is_paired = true, .blocks = 1, .messages = 2, .divisor = 2)
MT_ROW(pingping, MEAN, 2, "threads of two ranks send to each other at once; time until both messages are there",
    MT_OPTIONS_COMM, .is_paired = true, .blocks = 1, .reqs = 1, .messages = 2, .divisor = 1)
MT_ROW(sendrecv, MEAN, 0,
    "each thread sends to the rank `distance` after its own, and receives from the one before; mean time",
    MT_OPTIONS_RING, .blocks = 1, .reqs = 2, .messages = 2, .divisor = 1)
MT_ROW(exchange, MEAN, 0,
    "each thread exchanges a message with the ranks `distance` before and after its own; mean time",
    MT_OPTIONS_RING, .blocks = 2, .reqs = 2, .messages = 4, .divisor = 1)
MT_ROW(uniband, SOURCES, 2,
    "each thread sends a window of messages to one of the other half, which answers; time per message",
    MT_OPTIONS_WINDOW, .is_paired = true, .is_one_way = true, .has_window = true,
    .reqs = 1, .messages = 1, .divisor = 1)
MT_ROW(biband, MEAN, 2, "threads of two ranks send windows to each other at once; time per message sent or received",
    MT_OPTIONS_WINDOW, .is_paired = true, .has_window = true, .reqs = 2, .messages = 2, .divisor = 2)
// clang-format on
