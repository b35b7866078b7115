/* cold */
/* The options of a collective pattern: the call and the algorithm that they choose, and whether they fit together. */
#include <stdio.h>

#include "collective_core.h"

hk_asked_t hk_asked_of(const hk_run_t *run)
{
    return (hk_asked_t){.operation = run->pattern->operation,
                        .algorithm = hk_option_value(run->pattern, run->option, "algorithm", HK_ALGORITHM_AUTO),
                        .form = hk_option_value(run->pattern, run->option, "form", HK_BLOCKING),
                        .overlap = hk_option_value(run->pattern, run->option, "overlap", 0),
                        .tests = hk_option_value(run->pattern, run->option, "tests", 0),
                        .root = hk_option_value(run->pattern, run->option, "root", 0),
                        .type = hk_option_value(run->pattern, run->option, "dtype", HK_UINT8),
                        .reduction = hk_option_value(run->pattern, run->option, "op", HK_SUM),
                        .in_place = hk_option_value(run->pattern, run->option, "inplace", 0),
                        .counts = hk_option_value(run->pattern, run->option, "counts", HK_COUNTS_EQUAL),
                        .groups = hk_option_value(run->pattern, run->option, "groups", 1),
                        .start = hk_option_value(run->pattern, run->option, "start", HK_START_STREAM),
                        .time = hk_option_value(run->pattern, run->option, "time", 0),
                        .arrival_us = hk_option_value(run->pattern, run->option, "arrival_us", 0),
                        .fresh = hk_option_value(run->pattern, run->option, "data", 0),
                        .distances = hk_option_value(run->pattern, run->option, "distances", 0),
                        .vector_bytes =
                            hk_option_value(run->pattern, run->option, "bytes_of", 0) != 0 ? run->bytes : 0};
}

hk_call_t hk_call_of(const hk_run_t *run, const hk_asked_t *asked)
{
    const hk_ctx_t *ctx = run->ctx;
    const int size = ctx->size / (int)asked->groups;
    const int rank = size > 0 ? ctx->rank % size : 0;
    const size_t element = hk_type_bytes[asked->type], count = size > 0 ? (size_t)size : 1;
    const size_t rest = hk_is_a(asked->operation, HK_UNEVEN) ? count - 1 : 0; /* some blocks have one element more */
    const size_t mean = (asked->vector_bytes / element + rest) / count * element;
    return (hk_call_t){.operation = asked->operation,
                       .form = (hk_form_t)asked->form,
                       .type = (hk_type_t)asked->type,
                       .reduction = (hk_reduction_t)asked->reduction,
                       .combine = hk_combine_of((hk_type_t)asked->type, (hk_reduction_t)asked->reduction),
                       .rank = rank,
                       .size = size,
                       .first = ctx->rank - rank,
                       .root = (int)asked->root,
                       .in_place = asked->in_place != 0,
                       .near.count = (int)asked->distances,
                       .is_met = asked->start != HK_START_STREAM,
                       .bytes = asked->vector_bytes > 0 ? mean : run->bytes};
}

/* ---- the algorithm ----------------------------------------------------------------------------------------------- */

bool hk_is_plain_barrier(const hk_ctx_t *ctx, const hk_call_t *call)
{
    return call->operation == HK_BARRIER && call->form == HK_BLOCKING && call->size == ctx->size &&
           ctx->tp->barrier != NULL;
}

static bool has_own(const hk_run_t *run, const hk_asked_t *asked, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    hk_call_t call = hk_call_of(run, asked);
    if (hk_is_plain_barrier(run->ctx, &call)) {
        return true;
    }
    if (asked->operation == HK_NEIGHBOR_ALLGATHERV && asked->counts == HK_COUNTS_ONE_BIG) {
        /* A rank sends one block to all neighbours, so all blocks that it receives may be large. */
        call.bytes *= (size_t)(asked->distances > 0 ? asked->distances : 2 * HK_GRID_DIMENSIONS_MAX);
    }
    snprintf(why, len, "%s of its own", hk_operation_names[asked->operation]);
    return tp->has_call != NULL && tp->has_call(tp, &call, why, len);
}

const hk_algorithm_t *hk_chosen(const hk_run_t *run, const hk_asked_t *asked)
{
    char why[160];
    const char *what = NULL;
    const hk_algorithm_t *rows = hk_algorithms_of(asked->operation);
    if (asked->algorithm >= HK_ALGORITHM_FIRST) {
        return &rows[asked->algorithm - HK_ALGORITHM_FIRST];
    }
    const uint32_t needs = run->pattern->needs;
    const bool has_messages = (run->ctx->tp->caps & needs) == needs;
    if (asked->algorithm == HK_ALGORITHM_NATIVE || !has_messages || has_own(run, asked, why, sizeof why)) {
        return NULL;
    }
    while (!hk_algorithm_takes(rows, run->ctx->size / (int)asked->groups, &what)) {
        rows++; /* each operation has one for all sizes */
    }
    return rows;
}

bool hk_collective_native(const hk_run_t *run)
{
    const hk_asked_t asked = hk_asked_of(run);
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    return algorithm == NULL || algorithm->parts[0] != HK_NO_OPERATION;
}

size_t hk_collective_grain(const hk_run_t *run)
{
    const hk_asked_t asked = hk_asked_of(run);
    return hk_is_a(asked.operation, HK_REDUCES) || asked.type != HK_UINT8 ? hk_type_bytes[asked.type] : 0;
}

/* ---- whether the options fit together ---------------------------------------------------------------------------- */

static bool fits_group(const hk_run_t *run, const hk_asked_t *asked, char *why, size_t len)
{
    const int ranks = run->ctx->size, size = ranks / (int)asked->groups;
    if (ranks % asked->groups != 0 || size < run->pattern->ranks_min) {
        snprintf(why, len, "%d ranks cannot form %d equal groups of %d or more", ranks, (int)asked->groups,
                 run->pattern->ranks_min);
        return false;
    }
    if (asked->root >= size) {
        snprintf(why, len, "root=%d is not one of the %d ranks: the last one is %d", (int)asked->root, size, size - 1);
        return false;
    }
    const size_t least_bytes = hk_type_bytes[asked->type] * (size_t)size;
    if (asked->vector_bytes > 0 && asked->vector_bytes < least_bytes && !hk_is_a(asked->operation, HK_UNEVEN)) {
        snprintf(why, len, "bytes_of=vector: a vector of %zu B is too short for %d ranks: use %zu B or more",
                 asked->vector_bytes, size, least_bytes);
        return false;
    }
    if (asked->vector_bytes > 0 && asked->counts != HK_COUNTS_EQUAL) {
        snprintf(why, len, "bytes_of=vector divides a vector into equal blocks: leave out bytes_of= or counts=");
        return false;
    }
    for (int64_t i = 0; i < asked->distances; i++) {
        if (run->list[i] % size == 0) {
            snprintf(why, len, "distances=%+d makes each of %d ranks its own neighbour", (int)run->list[i], size);
            return false;
        }
    }
    const int64_t *grid = run->option;
    if (asked->distances > 0 && (grid[HK_GRID_NX] != 0 || grid[HK_GRID_NY] != 0 || grid[HK_GRID_NZ] != 1)) {
        snprintf(why, len, "distances= replaces the grid: leave out nx=, ny= and nz=");
        return false;
    }
    hk_ctx_t group = *run->ctx;
    hk_run_t in_group = *run;
    group.size = size;
    group.rank %= size;
    in_group.ctx = &group;
    return !hk_is_a(asked->operation, HK_NEAR) || asked->distances > 0 || hk_grid_fits(&in_group, why, len);
}

/* Whether this part of an operation accepts uneven blocks, or treats all blocks as one vector. */
static bool takes_uneven(hk_operation_t part)
{
    return part == HK_NO_OPERATION || part == HK_BCAST || part == HK_REDUCE || hk_is_a(part, HK_UNEVEN);
}

static bool fits_parts(const hk_run_t *run, const hk_asked_t *asked, const hk_algorithm_t *algorithm, char *why,
                       size_t len)
{
    const hk_call_t call = hk_call_of(run, asked);
    const hk_operation_t *parts = algorithm->parts;
    const bool is_uneven = asked->counts != HK_COUNTS_EQUAL;
    if (parts[0] == asked->operation) {
        snprintf(why, len, "algorithm=%s is %s itself: use algorithm=native", algorithm->name, run->pattern->name);
        return false;
    }
    if (is_uneven && !(takes_uneven(parts[0]) && takes_uneven(parts[1]))) {
        snprintf(why, len, "algorithm=%s needs equal blocks: leave out counts=", algorithm->name);
        return false;
    }
    snprintf(why, len, "algorithm=%s uses one pair of buffers: leave out data=fresh and inplace=yes", algorithm->name);
    return asked->fresh == 0 && asked->in_place == 0 && hk_parts_fit(run->ctx->tp, &call, algorithm, why, len);
}

static bool fits_portable(const hk_run_t *run, const hk_asked_t *asked, const hk_algorithm_t *algorithm, char *why,
                          size_t len)
{
    static const char *const forms[] = {"blocking", "nonblocking", "persistent"};
    const char *what = NULL, *name = run->pattern->name;
    const hk_call_t call = hk_call_of(run, asked);
    char missing[160];
    if (asked->form != HK_BLOCKING && asked->algorithm >= HK_ALGORITHM_FIRST) {
        snprintf(why, len, "algorithm=%s is blocking only: leave out form=%s or the algorithm", algorithm->name,
                 forms[asked->form]);
        return false;
    }
    if (asked->form != HK_BLOCKING) {
        has_own(run, asked, missing, sizeof missing);
        snprintf(why, len, "form=%s needs the library's own %s, and %s has no %s", forms[asked->form], name,
                 run->ctx->tp->name, missing);
        return false;
    }
    if (algorithm->parts[0] != HK_NO_OPERATION) {
        return fits_parts(run, asked, algorithm, why, len);
    }
    if (!hk_algorithm_takes(algorithm, call.size, &what)) {
        snprintf(why, len, "algorithm=%s of %s needs %s, not %d", algorithm->name, name, what, call.size);
        return false;
    }
    if (hk_is_a(asked->operation, HK_REDUCES) && call.combine == NULL) {
        if (asked->algorithm == HK_ALGORITHM_AUTO && run->ctx->tp->has_call != NULL) {
            has_own(run, asked, missing, sizeof missing);
            snprintf(why, len, "%s has no %s", run->ctx->tp->name, missing);
            return false;
        }
        snprintf(why, len, "hockney has no op=%s of %s; with an MPI library try algorithm=native",
                 hk_reduction_names[asked->reduction], hk_type_names[asked->type]);
        return false;
    }
    snprintf(why, len, "algorithm=%s of %s does not work in place; with an MPI library try algorithm=native",
             algorithm->name, name);
    return asked->in_place == 0 || hk_gives[asked->operation] != HK_DATA_BLOCKS ||
           hk_gets[asked->operation] != HK_DATA_BLOCKS;
}

static bool fits_native(const hk_run_t *run, const hk_asked_t *asked, char *why, size_t len)
{
    char missing[160];
    const bool has = has_own(run, asked, missing, sizeof missing);
    snprintf(why, len, "%s has no %s", run->ctx->tp->name, missing);
    return has;
}

static bool fits_times(const hk_run_t *run, const hk_asked_t *asked, char *why, size_t len)
{
    const uint32_t stamps = HK_CAP_SEND | HK_CAP_PAYLOAD;
    const char *wrong = NULL;
    if (asked->overlap != 0 && asked->form == HK_BLOCKING) {
        wrong = "overlap=yes needs form=nonblocking or form=persistent";
    } else if (asked->tests > 0 && asked->overlap == 0) {
        wrong = "tests= needs overlap=yes: MPI_Test is called while the rank computes";
    } else if (asked->arrival_us > 0 && asked->start == HK_START_STREAM) {
        wrong = "arrival_us= needs start=barrier or start=window: calls of start=stream do not start together";
    } else if (asked->start == HK_START_WINDOW && (run->ctx->tp->caps & (stamps | HK_CAP_LOSSY)) != stamps) {
        wrong = "start=window compares clocks by messages, which this transport does not offer; use start=barrier";
    } else if (asked->fresh != 0 && asked->in_place != 0) {
        wrong = "data=fresh uses other buffers in each repetition: leave out inplace=yes";
    } else if (asked->fresh != 0 && asked->form == HK_PERSISTENT) {
        wrong = "data=fresh uses other buffers in each repetition: leave out form=persistent";
    }
    snprintf(why, len, "%s", wrong != NULL ? wrong : "");
    return wrong == NULL;
}

bool hk_collective_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_asked_t asked = hk_asked_of(run);
    if (!fits_group(run, &asked, why, len) || !fits_times(run, &asked, why, len)) {
        return false;
    }
    const hk_algorithm_t *algorithm = hk_chosen(run, &asked);
    return algorithm == NULL ? fits_native(run, &asked, why, len) : fits_portable(run, &asked, algorithm, why, len);
}
