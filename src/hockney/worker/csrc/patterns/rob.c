#include "rob.h"

/* An event that is read in turn, with one request under way. */
typedef struct rob_reader {
    hk_run_t *run;
    const hk_rob_kind_t *kind;
    int rob;     /* sender of the message under way; last rank and above: none */
    size_t step; /* of the current message */
    unsigned char *place;
    hk_status_t status;
} rob_reader_t;

/* The pattern's state. */
typedef struct rob_state {
    hk_delay_t delay;
    rob_reader_t reader;
    size_t buffer;        /* the buffer of the next event */
    bool begun;           /* with two buffers, in a stream: an event is under way at `place` */
    size_t buffers;       /* 1 or 2 */
    size_t event_bytes;   /* of one buffer */
    int ahead;            /* ROBs up to this rank are read at once; with two buffers, before the computation */
    unsigned char *place; /* of the last event begun */
} rob_state_t;

static rob_state_t *rob_state_of(const hk_run_t *run)
{
    return run->state;
}

/* The number of ROBs read at once: in turn it is one, and only that one can be read ahead. */
static int ahead_of(const hk_run_t *run)
{
    return run->option[HK_ROB_READ] == HK_READ_PARALLEL ? run->ctx->size - 1 : 1;
}

hk_plan_t hk_rob_plan(const hk_run_t *run)
{
    const hk_rob_kind_t *kind = run->pattern->own;
    const size_t robs = (size_t)run->ctx->size - 1;
    const bool processor = run->ctx->rank == 0;
    return (hk_plan_t){.out_bytes = processor ? kind->asked_bytes : run->bytes,
                       .in_bytes =
                           processor ? (size_t)run->option[HK_ROB_BUFFERS] * robs * run->bytes : kind->asked_bytes,
                       .reqs_count = processor ? (size_t)ahead_of(run) * kind->requests : 0,
                       .state_bytes = sizeof(rob_state_t),
                       HK_MOVES(run, robs),
                       .period = (uint64_t)run->option[HK_ROB_BUFFERS]};
}

hk_status_t hk_rob_prepare(hk_run_t *run)
{
    rob_state_t *state = rob_state_of(run);
    state->buffers = (size_t)run->option[HK_ROB_BUFFERS];
    state->event_bytes = ((size_t)run->ctx->size - 1) * run->bytes;
    state->ahead = ahead_of(run);
    state->place = run->in;
    const uint64_t delay_ns = run->ctx->rank == 0 ? (uint64_t)run->option[HK_ROB_DELAY_US] * 1000 : 0;
    return hk_delay_prepare(run->ctx, (hk_delay_kind_t)run->option[HK_ROB_DELAY_KIND], delay_ns, &state->delay);
}

/* The buffer of the next event. */
static unsigned char *next_place(hk_run_t *run)
{
    rob_state_t *state = rob_state_of(run);
    unsigned char *place = run->in + state->buffer * state->event_bytes;
    state->buffer = state->buffer + 1 < state->buffers ? state->buffer + 1 : 0;
    return place;
}

static hk_status_t begin_event(hk_run_t *run, const hk_rob_kind_t *kind, unsigned char *place)
{
    const int ahead = rob_state_of(run)->ahead;
    hk_req_t *req = run->reqs;
    for (int rob = 1; rob <= ahead; rob++, req += kind->requests) {
        HK_TRY(kind->begin(run, rob, place + (size_t)(rob - 1) * run->bytes, req));
    }
    return HK_OK;
}

static hk_status_t read_in_turn(hk_run_t *run, const hk_rob_kind_t *kind, unsigned char *place, int first)
{
    const int size = run->ctx->size;
    for (int rob = first; rob < size; rob++) {
        HK_TRY(kind->read(run, rob, place + (size_t)(rob - 1) * run->bytes));
    }
    return HK_OK;
}

static hk_status_t end_event(hk_run_t *run, const hk_rob_kind_t *kind, unsigned char *place)
{
    HK_TRY(run->ctx->tp->wait_all(run->ctx, run->reqs, run->reqs_count));
    return read_in_turn(run, kind, place, rob_state_of(run)->ahead + 1);
}

/* `in_turn` is a constant in each call. */
static inline hk_status_t process_each(hk_run_t *run, const hk_rob_kind_t *kind, uint64_t reps, const bool in_turn)
{
    rob_state_t *state = rob_state_of(run);
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(in_turn ? HK_OK : begin_event(run, kind, run->in));
        HK_TRY(in_turn ? read_in_turn(run, kind, run->in, 1) : end_event(run, kind, run->in));
        state->delay.take(run->ctx, &state->delay);
    }
    return HK_OK;
}

/* Each event of a stream except the last has a successor, whose receives are posted before the delay. */
static hk_status_t process_ahead(hk_run_t *run, const hk_rob_kind_t *kind, uint64_t reps)
{
    rob_state_t *state = rob_state_of(run);
    const uint64_t with_next = run->reps_to_come > 0 ? reps : reps - 1;
    unsigned char *place = state->begun ? state->place : next_place(run);
    HK_TRY(state->begun ? HK_OK : begin_event(run, kind, place));
    for (uint64_t i = 0; i < with_next; i++) {
        HK_TRY(end_event(run, kind, place));
        place = next_place(run);
        HK_TRY(begin_event(run, kind, place));
        state->delay.take(run->ctx, &state->delay);
    }
    if (with_next < reps) {
        HK_TRY(end_event(run, kind, place));
        state->delay.take(run->ctx, &state->delay);
    }
    state->begun = run->reps_to_come > 0;
    state->place = place;
    return HK_OK;
}

/* ---- a process that reads while another computes ----------------------------------------------------------------- */

static bool start_step(rob_reader_t *reader)
{
    hk_run_t *run = reader->run;
    unsigned char *into = reader->place + (size_t)(reader->rob - 1) * run->bytes;
    reader->status = reader->kind->step(run, reader->rob, into, reader->step, run->reqs);
    return reader->status == HK_OK;
}

/* A request is done: start the next one, if any. */
static bool next_step(void *arg)
{
    rob_reader_t *reader = arg;
    reader->step++;
    if (reader->step == reader->kind->requests) {
        reader->step = 0;
        reader->rob++;
    }
    return reader->rob < reader->run->ctx->size && start_step(reader);
}

static hk_status_t start_reading(hk_run_t *run, const hk_rob_kind_t *kind)
{
    rob_reader_t *reader = &rob_state_of(run)->reader;
    *reader = (rob_reader_t){.run = run, .kind = kind, .rob = 1, .place = next_place(run)};
    rob_state_of(run)->place = reader->place;
    (void)start_step(reader);
    return reader->status;
}

static hk_status_t read_rest(hk_run_t *run)
{
    rob_reader_t *reader = &rob_state_of(run)->reader;
    bool goes_on = reader->status == HK_OK && reader->rob < run->ctx->size;
    while (goes_on) {
        const hk_status_t status = run->ctx->tp->wait_all(run->ctx, run->reqs, 1);
        goes_on = next_step(reader) && status == HK_OK;
        reader->status = status != HK_OK ? status : reader->status;
    }
    return reader->status;
}

/* Read the next event in turn while computing on this one. */
static hk_status_t process_overlapped(hk_run_t *run, const hk_rob_kind_t *kind, uint64_t reps)
{
    rob_state_t *state = rob_state_of(run);
    const uint64_t with_next = run->reps_to_come > 0 ? reps : reps - 1;
    hk_status_t status = state->begun ? HK_OK : start_reading(run, kind);
    for (uint64_t i = 0; i < reps && status == HK_OK; i++) {
        status = read_rest(run);
        if (status == HK_OK && i < with_next) {
            status = start_reading(run, kind);
            hk_delay_overlapped(run->ctx, &state->delay, run->reqs, next_step, &state->reader);
        } else if (status == HK_OK) {
            state->delay.take(run->ctx, &state->delay);
        }
    }
    state->begun = run->reps_to_come > 0;
    return status;
}

hk_status_t hk_rob_repeat(hk_run_t *run, uint64_t reps)
{
    const rob_state_t *state = rob_state_of(run);
    const hk_rob_kind_t *kind = run->pattern->own;
    const bool in_turn = run->option[HK_ROB_READ] == HK_READ_IN_TURN;
    if (run->ctx->rank > 0) {
        return kind->serve(run, reps);
    }
    if (in_turn && (state->buffers == 1 || (run->ctx->tp->overlap != NULL && state->delay.amount == 0))) {
        return process_each(run, kind, reps, true); /* with two buffers there is nothing to overlap */
    }
    if (state->buffers == 1) {
        return process_each(run, kind, reps, false);
    }
    return in_turn && hk_delay_overlaps(run->ctx, &state->delay) ? process_overlapped(run, kind, reps)
                                                                 : process_ahead(run, kind, reps);
}

bool hk_rob_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const hk_rob_kind_t *kind = run->pattern->own;
    if (run->ctx->rank > 0) {
        *expected_p = (hk_expected_t){.size_bytes = kind->asked_bytes, .from_rank = 0};
        return i == 0 && kind->asked_bytes > 0;
    }
    const size_t place = (size_t)(rob_state_of(run)->place - run->in);
    *expected_p =
        (hk_expected_t){.in_offset = place + i * run->bytes, .size_bytes = run->bytes, .from_rank = (int)i + 1};
    return i + 1 < (size_t)run->ctx->size;
}
