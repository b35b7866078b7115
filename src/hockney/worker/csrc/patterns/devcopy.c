/* A copy from, to or within the memory of a device, by its copy engine or by a kernel: one rank starts it and waits for
 * its end. Both ways: a second copy in the other direction, between other buffers, is under way at the same time. */
#include <stdio.h>

#include "../device.h"
#include "../pattern.h"

enum { DEVCOPY_MEMORY, DEVCOPY_BY, DEVCOPY_WAYS, DEVCOPY_FROM, DEVCOPY_TO };
enum { DEVCOPY_ENGINE, DEVCOPY_KERNEL };

/* The words of `memory`: where the source and the target lie. */
// clang-format off
#define DEVCOPY_WORDS                                                                     \
    "host:device|device:host|pinned:device|device:pinned|device|managed:device|"          \
    "device:managed|host:managed|managed:host|pinned:managed|managed:pinned|managed"
// clang-format on
static const hk_memkind_t devcopy_kinds[][2] = {
    {HK_MEM_HOST, HK_MEM_DEVICE},    {HK_MEM_DEVICE, HK_MEM_HOST},    {HK_MEM_PINNED, HK_MEM_DEVICE},
    {HK_MEM_DEVICE, HK_MEM_PINNED},  {HK_MEM_DEVICE, HK_MEM_DEVICE},  {HK_MEM_MANAGED, HK_MEM_DEVICE},
    {HK_MEM_DEVICE, HK_MEM_MANAGED}, {HK_MEM_HOST, HK_MEM_MANAGED},   {HK_MEM_MANAGED, HK_MEM_HOST},
    {HK_MEM_PINNED, HK_MEM_MANAGED}, {HK_MEM_MANAGED, HK_MEM_PINNED}, {HK_MEM_MANAGED, HK_MEM_MANAGED},
};

/* One copy of a repetition, in its stream. */
typedef struct devcopy_way {
    hk_device_t *device[2]; /* that has allocated the source, the target */
    hk_memkind_t kind[2];
    void *memory[2];
} devcopy_way_t;

typedef struct devcopy {
    hk_device_t *copier;
    devcopy_way_t way[HK_STREAMS];
    hk_status_t filled;
} devcopy_t;

static int devcopy_ways(const hk_run_t *run)
{
    return run->option[DEVCOPY_WAYS] == 0 ? 1 : 2;
}

static bool devcopy_is_host(hk_memkind_t kind)
{
    return kind == HK_MEM_HOST || kind == HK_MEM_PINNED;
}

/* The device whose stream copies: that of the source, unless it lies on the host. */
static int devcopy_copier(const hk_run_t *run)
{
    return (int)run->option[devcopy_is_host(devcopy_kinds[run->option[DEVCOPY_MEMORY]][0]) ? DEVCOPY_TO : DEVCOPY_FROM];
}

static bool devcopy_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_memkind_t *kind = devcopy_kinds[run->option[DEVCOPY_MEMORY]];
    const int most = (int)(run->option[DEVCOPY_FROM] > run->option[DEVCOPY_TO] ? run->option[DEVCOPY_FROM]
                                                                               : run->option[DEVCOPY_TO]);
    if (run->option[DEVCOPY_BY] == DEVCOPY_KERNEL && (kind[0] == HK_MEM_HOST || kind[1] == HK_MEM_HOST)) {
        (void)snprintf(why, len, "by=kernel needs memory that a kernel can access: pinned in place of host");
        return false;
    }
    return hk_device_fits(run->ctx, "devcopy", most, why, len);
}

static hk_plan_t devcopy_plan(const hk_run_t *run)
{
    const uint64_t ways = (uint64_t)devcopy_ways(run);
    return (hk_plan_t){
        .out_bytes = run->bytes, .in_bytes = ways * run->bytes, .state_bytes = sizeof(devcopy_t), HK_MOVES(run, ways)};
}

static hk_status_t devcopy_finish(hk_run_t *run)
{
    devcopy_t *state = run->state;
    for (int i = 0; i < devcopy_ways(run); i++) {
        for (int end = 0; end < 2; end++) {
            const devcopy_way_t *way = &state->way[i];
            if (way->memory[end] != NULL && way->device[end]->driver->use(way->device[end]) == HK_OK) {
                way->device[end]->driver->free(way->device[end], way->kind[end], way->memory[end]);
            }
        }
    }
    return HK_OK;
}

/* The payload to the sources, zeros to the targets. */
static hk_status_t devcopy_load(hk_run_t *run)
{
    const devcopy_t *state = run->state;
    HK_TRY(state->copier->driver->use(state->copier));
    for (int i = 0; i < devcopy_ways(run); i++) {
        HK_TRY(hk_device_move(state->copier, state->way[i].memory[0], run->out, run->bytes));
        HK_TRY(hk_device_move(state->copier, state->way[i].memory[1], run->in, run->bytes));
    }
    return HK_OK;
}

static void devcopy_fill(hk_run_t *run, uint64_t seed)
{
    devcopy_t *state = run->state;
    (void)seed;
    if (state->copier != NULL) { /* otherwise `prepare` does it */
        state->filled = devcopy_load(run);
    }
}

/* The second way copies from the first one's kind of target to its kind of source. */
static hk_status_t devcopy_allocate(hk_run_t *run)
{
    devcopy_t *state = run->state;
    const hk_memkind_t *kind = devcopy_kinds[run->option[DEVCOPY_MEMORY]];
    for (int i = 0; i < devcopy_ways(run); i++) {
        for (int end = 0; end < 2; end++) {
            devcopy_way_t *way = &state->way[i];
            const int of = end ^ i;
            const int number =
                devcopy_is_host(kind[of]) ? devcopy_copier(run) : (int)run->option[of == 0 ? DEVCOPY_FROM : DEVCOPY_TO];
            HK_TRY(hk_device_get(run->ctx, number, &way->device[end]));
            way->kind[end] = kind[of];
            HK_TRY(way->device[end]->driver->alloc(way->device[end], kind[of], run->bytes, &way->memory[end]));
        }
    }
    return HK_OK;
}

/* Two devices may reach each other. */
static hk_status_t devcopy_connect(hk_run_t *run)
{
    devcopy_t *state = run->state;
    const int from = (int)run->option[DEVCOPY_FROM], to = (int)run->option[DEVCOPY_TO];
    HK_TRY(hk_device_get(run->ctx, devcopy_copier(run), &state->copier));
    return from == to ? HK_OK : state->copier->driver->reach(state->copier, state->copier->number == from ? to : from);
}

static hk_status_t devcopy_prepare(hk_run_t *run)
{
    hk_status_t status = devcopy_allocate(run);
    status = status == HK_OK ? devcopy_connect(run) : status;
    status = status == HK_OK ? devcopy_load(run) : status;
    if (status != HK_OK) {
        (void)devcopy_finish(run);
    }
    return status;
}

static hk_status_t devcopy_engine(const devcopy_t *state, int ways, size_t bytes, uint64_t reps)
{
    hk_device_t *device = state->copier;
    const hk_driver_t *driver = device->driver;
    for (uint64_t rep = 0; rep < reps; rep++) {
        for (int i = 0; i < ways; i++) {
            HK_TRY(driver->copy(device, i, state->way[i].memory[1], state->way[i].memory[0], bytes));
        }
        for (int i = 0; i < ways; i++) {
            HK_TRY(driver->wait(device, i));
        }
    }
    return HK_OK;
}

static hk_status_t devcopy_kernel(const devcopy_t *state, int ways, size_t bytes, uint64_t reps)
{
    hk_device_t *device = state->copier;
    const hk_driver_t *driver = device->driver;
    uint64_t argument[HK_STREAMS][3];
    for (int i = 0; i < ways; i++) {
        argument[i][0] = (uintptr_t)state->way[i].memory[1];
        argument[i][1] = (uintptr_t)state->way[i].memory[0];
        argument[i][2] = bytes;
    }
    for (uint64_t rep = 0; rep < reps; rep++) {
        for (int i = 0; i < ways; i++) {
            HK_TRY(driver->launch(device, i, HK_KERNEL_COPY, argument[i]));
        }
        for (int i = 0; i < ways; i++) {
            HK_TRY(driver->wait(device, i));
        }
    }
    return HK_OK;
}

static hk_status_t devcopy_repeat(hk_run_t *run, uint64_t reps)
{
    hk_status_t (*const copy)(const devcopy_t *, int, size_t, uint64_t) =
        run->option[DEVCOPY_BY] == DEVCOPY_ENGINE ? devcopy_engine : devcopy_kernel;
    return copy(run->state, devcopy_ways(run), run->bytes, reps);
}

/* What arrived, where it can be compared. */
static hk_status_t devcopy_collect(hk_run_t *run)
{
    const devcopy_t *state = run->state;
    HK_TRY(state->filled);
    for (int i = 0; i < devcopy_ways(run); i++) {
        unsigned char *in = run->in + (size_t)i * run->bytes;
        HK_TRY(hk_device_move(state->copier, in, state->way[i].memory[1], run->bytes));
    }
    return HK_OK;
}

static bool devcopy_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.in_offset = i * run->bytes, .size_bytes = run->bytes};
    return i < (size_t)devcopy_ways(run);
}

const hk_pattern_t hk_pattern_devcopy = {
    .name = "devcopy",
    .kind = HK_KIND_MACHINE,
    .summary = "one rank copies from, to or within device memory; time per copy and wait (verified on a stand-in only)",
    .ranks_min = 1,
    .ranks_max = 1,
    .timed = HK_TIMED_ROOT,
    .untouched = true,
    .grain_bytes = 1,
    .option = {{"memory", DEVCOPY_WORDS, 0, 0, 0, "where source and target lie; one word: both"},
               {"by", "engine|kernel", DEVCOPY_ENGINE, 0, 0,
                "the device's copy engine, or a kernel on its multiprocessors"},
               {"ways", "one|both", 0, 0, 0, "both: a copy in the other direction at the same time"},
               {"from", NULL, 0, 0, HK_DEVICES_MAX - 1, "the device of the source"},
               {"to", NULL, 0, 0, HK_DEVICES_MAX - 1, "the device of the target"}},
    .fits = devcopy_fits,
    .plan = devcopy_plan,
    .prepare = devcopy_prepare,
    .fill = devcopy_fill,
    .finish = devcopy_finish,
    .repeat = devcopy_repeat,
    .collect = devcopy_collect,
    .expected = devcopy_expected,
};
