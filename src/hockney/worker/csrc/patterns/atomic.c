/* Atomic operations (OSU, Intel MPI benchmarks): the source, or every rank, changes elements in the target's memory. An
 * operation of a window has its own elements, so that the result of each is known. */
#include "atomic_check.h"

#include <stdio.h>

// clang-format off
#define ATOMIC_OPTIONS                                                                                         \
    HK_ROLES_OPTIONS,                                                                                          \
    {"origins", "one|half|all", 0, 0, 0,                                                                       \
     "who acts: the source; each rank of the first half on one of the second; or all, on the same elements"},  \
    {"window", NULL, 0, 0, 1024, "operations that complete together; 0: those of a batch"},                    \
    {"sync", HK_SYNC_STARTED, 0, 0, 0, HK_SYNC_HELP},                                                          \
    {"dtype", HK_TYPE_WORDS, HK_UINT64, 0, 0, "the type of elements"}
#define ATOMIC_OPTION_OP                                                                                       \
    {"op", &"" HK_REDUCTIONS_(HK_REDUCTION_WORD) "|replace|no_op|inc"[1], HK_SUM, 0, 0,                        \
     "what happens to an element; no_op: only fetched; inc: 1 is added by the library's own call"}
// clang-format on

static hk_epoch_kind_t atomic_sync(const hk_run_t *run)
{
    return (hk_epoch_kind_t)(run->option[HK_ATOMIC_SYNC] + HK_EPOCH_QUIET);
}

static size_t atomic_grain(const hk_run_t *run)
{
    return run->pattern->unsized ? 0 : hk_type_bytes[run->option[HK_ATOMIC_TYPE]];
}

static bool atomic_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    const hk_atomic_t atomic = hk_atomic_of(run);
    const bool is_reduction = atomic.update <= (int)HK_UPDATE_REDUCTIONS;
    const char *type = hk_type_names[atomic.type];
    char missing[128] = "";
    if (is_reduction && hk_combine_of(atomic.type, (hk_reduction_t)atomic.update) == NULL) {
        snprintf(why, len, "there is no %s of %s", hk_reduction_names[atomic.update], type);
    } else if (atomic.update == HK_UPDATE_NO_OP && !hk_fetches(atomic.kind)) {
        snprintf(why, len, "op=no_op only fetches, and accumulate fetches nothing: use get_accumulate");
    } else if (hk_is_single(atomic.kind) && hk_is_real(atomic.type) && atomic.kind == HK_ATOMIC_COMPARE_AND_SWAP) {
        snprintf(why, len, "compare_and_swap is of integers, not of %s", type);
    } else if (hk_atomic_by_all(run) && hk_fetches(atomic.kind) &&
               (hk_is_real(atomic.type) || hk_type_bytes[atomic.type] < 4)) {
        snprintf(why, len, "what all ranks fetch is checked with integers of 4 or 8 bytes, not with %s", type);
    } else if (run->option[HK_ATOMIC_ORIGINS] != HK_ORIGINS_ONE && run->option[HK_ROLE_SOURCE] != 0) {
        snprintf(why, len, "source is of origins=one");
    } else if (hk_atomic_by_half(run) && run->option[HK_ROLE_TARGET] != 1) {
        snprintf(why, len, "with origins=half each rank of the second half is a target");
    } else if (hk_atomic_by_half(run) && run->ctx->size % 2 != 0) {
        snprintf(why, len, "origins=half needs an even number of ranks, not %d", run->ctx->size);
    } else if (hk_atomic_by_all(run) && hk_target(run->option) >= run->ctx->size) {
        snprintf(why, len, "target is rank %d, and the last of %d ranks is %d", hk_target(run->option), run->ctx->size,
                 run->ctx->size - 1);
    } else if (!tp->has_atomic(tp, &atomic, missing, sizeof missing)) {
        snprintf(why, len, "%s has no %s", tp->name, missing);
    } else {
        return (hk_atomic_by_all(run) || hk_roles_fit(run, why, len)) && hk_epoch_fits(run, atomic_sync(run), why, len);
    }
    return false;
}

static hk_plan_t atomic_plan(const hk_run_t *run)
{
    const hk_atomic_t atomic = hk_atomic_of(run);
    static const hk_timed_t timed[] = {HK_TIMED_AS_DECLARED, HK_TIMED_SOURCES, HK_TIMED_SLOWEST};
    const uint64_t places = hk_atomic_places(run), size = (uint64_t)run->ctx->size;
    const uint64_t origins = hk_atomic_by_all(run) ? size : 1, ranks = hk_atomic_by_half(run) ? size / 2 : origins;
    const size_t stride = hk_atomic_stride(run);
    return (hk_plan_t){.out_bytes = 2 * stride,
                       .in_bytes = 2 * stride + (hk_fetches(atomic.kind) ? (size_t)origins * hk_atomic_block(run) : 0),
                       .state_bytes = sizeof(hk_atomic_state_t) + 2 * sizeof(uint64_t) +
                                      (size_t)origins * (sizeof(hk_atomic_step_t) + 2 * sizeof(uint64_t) + sizeof(int)),
                       HK_MOVES(run, ranks * places),
                       .divisor = places,
                       .timed = timed[run->option[HK_ATOMIC_ORIGINS]],
                       .root = hk_source(run->option)};
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* `begins` and `swaps` are constants in each call. A batch is one window. A swap exchanges what it expects for what it
 * writes each time, so that every one of a single origin succeeds. */
static inline hk_status_t atomic_windows(hk_run_t *run, uint64_t reps, const bool begins, const bool swaps)
{
    hk_atomic_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    hk_epoch_t *epoch = &state->epoch;
    const hk_atomic_t *atomic = &state->atomic;
    const size_t bytes = atomic->size_bytes, stride = hk_atomic_stride(run), end = hk_atomic_places(run) * bytes;
    const bool is_batch = run->option[HK_ATOMIC_WINDOW] == 0;
    const uint64_t window = !state->acts ? 0 : is_batch ? reps : end / bytes, windows = is_batch ? 1 : reps;
    unsigned char *const fetched = run->in + stride;
    const unsigned char *local = run->out, *compare = run->out + stride;
    const int target = state->target;
    size_t turned = state->count & 1;
    for (uint64_t i = 0; i < windows; i++) {
        HK_TRY(begins ? epoch->begin(ctx, epoch) : HK_OK);
        size_t at = 0;
        for (uint64_t k = 0; k < window; k++) {
            if (swaps) {
                local = run->out + turned * stride;
                compare = run->out + (1 - turned) * stride;
                turned ^= is_batch;
            }
            HK_TRY(atomic->start(ctx, atomic, target, run->in + at, local + at, compare + at, fetched + at));
            at = at + bytes < end ? at + bytes : 0;
        }
        turned ^= !is_batch;
        HK_TRY(epoch->end(ctx, epoch));
    }
    state->count += reps;
    return HK_OK;
}

static hk_status_t atomic_repeat(hk_run_t *run, uint64_t reps)
{
    const hk_atomic_state_t *state = run->state;
    const bool begins = state->epoch.begin != NULL;
    if (!hk_takes_part(&state->epoch)) {
        return HK_OK;
    }
    if (state->atomic.kind == HK_ATOMIC_COMPARE_AND_SWAP && hk_atomic_succeeds(run)) {
        return begins ? atomic_windows(run, reps, true, true) : atomic_windows(run, reps, false, true);
    }
    return begins ? atomic_windows(run, reps, true, false) : atomic_windows(run, reps, false, false);
}

static hk_status_t atomic_prepare(hk_run_t *run)
{
    hk_atomic_state_t *state = run->state;
    hk_ctx_t *ctx = run->ctx;
    const bool by_all = hk_atomic_by_all(run);
    const int origins = by_all ? ctx->size : 1;
    state->target = hk_atomic_target(run);
    state->acts = by_all || ctx->rank == hk_atomic_origin(run);
    state->atomic = hk_atomic_of(run);
    state->steps = (hk_atomic_step_t *)(void *)state->room;
    state->values = (uint64_t *)(void *)(state->steps + origins);
    state->origins = (int *)(void *)(state->values + 2 * (origins + 1));
    for (int i = 0; i < origins; i++) {
        state->origins[i] = by_all ? i : hk_atomic_origin(run);
    }
    state->epoch = (hk_epoch_t){.kind = atomic_sync(run),
                                .to = &state->target,
                                .to_count = state->acts ? 1 : 0,
                                .from = state->origins,
                                .from_count = ctx->rank == state->target ? origins : 0,
                                .memory = run->in};
    HK_TRY(ctx->tp->make_atomic(ctx, &state->atomic));
    return hk_epoch_make(ctx, &state->epoch);
}

static hk_status_t atomic_finish(hk_run_t *run)
{
    hk_atomic_state_t *state = run->state;
    return hk_epoch_drop(run->ctx, &state->epoch);
}

// clang-format off
#define ATOMIC_OPTION_SUCCEED                                                                                   \
    {"succeed", "yes|no", 0, 0, 0,                                                                              \
     "whether elements are as expected, by one origin always; no: they never are, and stay"}
#define ATOMIC_VECTOR .grain_bytes = 8
#define ATOMIC_ELEMENT .unsized = true
#define ATOMIC_ROW(key, KIND, size, text, option_last)                                                          \
    const hk_pattern_t hk_pattern_##key = {                                                                     \
        size, .name = #key, .summary = (text), .kind = HK_KIND_ONE_SIDED,                                       \
        .needs = HK_CAP_ONE_SIDED | HK_CAP_ATOMICS, .ranks_min = 2, .stream = true, .timed = HK_TIMED_ROOT,     \
        .links = HK_LINKS_ENDS, .own = &(const hk_atomic_kind_t){HK_ATOMIC_##KIND}, .grain = atomic_grain,      \
        .option = {ATOMIC_OPTIONS, option_last}, .fits = atomic_fits, .plan = atomic_plan,                      \
        .prepare = atomic_prepare, .fill = hk_atomic_fill, .finish = atomic_finish, .repeat = atomic_repeat,    \
        .collect = hk_atomic_collect, .check = hk_atomic_check};

ATOMIC_ROW(accumulate, ACCUMULATE, ATOMIC_VECTOR,
    "one rank combines a vector with one in the memory of another; time on its side", ATOMIC_OPTION_OP)
ATOMIC_ROW(get_accumulate, GET_ACCUMULATE, ATOMIC_VECTOR,
    "accumulate, and the old vector comes back", ATOMIC_OPTION_OP)
ATOMIC_ROW(fetch_and_op, FETCH_AND_OP, ATOMIC_ELEMENT,
    "one rank changes an element in the memory of another and gets the old one; time on its side", ATOMIC_OPTION_OP)
ATOMIC_ROW(compare_and_swap, COMPARE_AND_SWAP, ATOMIC_ELEMENT,
    "one rank replaces an element in the memory of another if it is as expected; time on its side",
    ATOMIC_OPTION_SUCCEED)
// clang-format on
