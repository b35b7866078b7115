/* NAS Parallel Benchmark FT: solves a partial differential equation in three dimensions with Fourier transforms, as
 * specified by D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007, 1994, section 2.4.
 *
 * Each rank has a slab of planes z of the grid, and a slab of lines y of the spectrum. One repetition is the part that
 * NPB times: the initial values, the forward transform, and for each time step the decay of the spectrum, the inverse
 * transform and a checksum. Each transform needs one all-to-all: x and y are transformed in the planes before it, z
 * after it, all in place. The checksums are compared with the published ones after the samples.
 *
 * On a machine model the pattern charges the time of its operations and sends its messages, but has no data. */
#include <math.h>
#include <stdio.h>

#include "../algorithms/algorithms.h"
#include "ft.h"

enum { CLASS };
enum { CHECKED = 1024 };

static const double tolerance = 1e-12;

// clang-format off
static const ft_class_t classes[] = {
    {"S", 64, 64, 64,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {"W", 128, 128, 32,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {"A", 256, 256, 128,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
};
// clang-format on

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The library's exchange copies the rank's own block, too. */
static hk_status_t exchange(ft_t *ft)
{
    return ft->call.run(ft->run->ctx, &ft->call);
}

/* Rank 0 gets the sum of all ranks' parts of a checksum. */
static hk_status_t add_up(const ft_t *ft, hk_complex_t part, hk_complex_t *sum_p)
{
    hk_ctx_t *ctx = ft->run->ctx;
    const size_t last = ft->block * (size_t)ctx->size;
    if (ctx->rank > 0) {
        ft->sent[last] = part;
        return ctx->tp->send(ctx, 0, &ft->sent[last], sizeof part);
    }
    for (int from = 1; from < ctx->size; from++) {
        HK_TRY(ctx->tp->recv(ctx, from, &ft->received[last], sizeof part));
        part.re += ft->received[last].re;
        part.im += ft->received[last].im;
    }
    *sum_p = part;
    return HK_OK;
}

/* This rank's part of the checksum over 1024 points of the grid. */
static hk_complex_t sum_points(const ft_t *ft)
{
    const ft_class_t *grid = ft->grid;
    const double scale = 1.0 / (double)(grid->nx * grid->ny * grid->nz);
    hk_complex_t sum = {0, 0};
    for (size_t j = 1; j <= CHECKED; j++) {
        const size_t z = 5 * j % grid->nz;
        if (z / ft->planes == ft->rank) {
            const hk_complex_t *plane = ft->line[3 * j % grid->ny] + z % ft->planes * ft->lines * grid->nx;
            sum.re += plane[j % grid->nx].re;
            sum.im += plane[j % grid->nx].im;
        }
    }
    return (hk_complex_t){scale * sum.re, scale * sum.im};
}

static hk_status_t step(ft_t *ft, hk_complex_t *sum_p)
{
    hk_ft_step_z(ft);
    HK_TRY(exchange(ft));
    hk_ft_planes(ft, ft->line, HK_FT_INVERSE);
    return add_up(ft, sum_points(ft), sum_p);
}

/* ---- the benchmark ----------------------------------------------------------------------------------------------- */

static bool is_close(double found, double published)
{
    return fabs((found - published) / published) <= tolerance; /* false for NaN */
}

static void compare_sums(ft_t *ft)
{
    for (int i = 0; i < HK_FT_ITERATIONS && ft->wrong == 0; i++) {
        const hk_complex_t found = ft->sum[i];
        const hk_complex_t published = ft->grid->sum[i];
        if (!is_close(found.re, published.re) || !is_close(found.im, published.im)) {
            ft->wrong = i + 1;
            ft->wrong_sum = found;
        }
    }
}

static hk_status_t solve(ft_t *ft, hk_complex_t *const *line)
{
    hk_ft_fill_decay(ft->decay_x, ft->grid->nx);
    hk_ft_fill_decay(ft->decay_y, ft->grid->ny);
    hk_ft_fill_decay(ft->decay_z, ft->grid->nz);
    hk_ft_draw_planes(ft);
    hk_ft_planes(ft, line, HK_FT_FORWARD);
    HK_TRY(exchange(ft));
    hk_ft_z(ft);
    for (int i = 0; i < HK_FT_ITERATIONS; i++) {
        HK_TRY(step(ft, &ft->sum[i]));
    }
    if (ft->rank == 0) {
        compare_sums(ft);
    }
    return HK_OK;
}

/* Charge this rank's part of the operations that NPB counts for each point: a + b ln(points). */
static void charge(const ft_t *ft, double a, double b)
{
    hk_ctx_t *ctx = ft->run->ctx;
    const double points = (double)(ft->grid->nx * ft->grid->ny * ft->grid->nz);
    const double operations = points / ctx->size * (a + b * log(points));
    ctx->tp->compute(ctx, (uint64_t)(1e9 * operations / ctx->tp->flops_per_s));
}

/* All ranks compute the same, so the side of an exchange does not matter. */
static hk_status_t solve_charged(ft_t *ft, hk_complex_t *const *line)
{
    (void)line;
    charge(ft, 14.8157, 7.19641);
    HK_TRY(exchange(ft));
    for (int i = 0; i < HK_FT_ITERATIONS; i++) {
        charge(ft, 5.23518, 7.21113);
        HK_TRY(exchange(ft));
        HK_TRY(add_up(ft, (hk_complex_t){0, 0}, &ft->sum[i]));
    }
    return HK_OK;
}

/* Aligns the state to a cache line. */
static ft_t *ft_state_of(const hk_run_t *run)
{
    const size_t beyond = (uintptr_t)run->state % _Alignof(ft_t);
    return (ft_t *)(void *)((unsigned char *)run->state + (beyond > 0 ? _Alignof(ft_t) - beyond : 0));
}

static hk_status_t ft_repeat(hk_run_t *run, uint64_t reps)
{
    ft_t *ft = ft_state_of(run);
    hk_complex_t *line[HK_FFT_POINTS_MAX]; /* of outgoing planes */
    for (size_t y = 0; y < ft->grid->ny; y++) {
        line[y] = ft->sent + y / ft->lines * ft->block + y % ft->lines * ft->grid->nx;
    }
    for (uint64_t i = 0; i < reps; i++) {
        HK_TRY(ft->solve(ft, line));
    }
    return HK_OK;
}

static hk_status_t ft_verdict(const hk_run_t *run)
{
    const ft_t *ft = ft_state_of(run);
    if (ft->wrong == 0) {
        return HK_OK;
    }
    const hk_complex_t published = ft->grid->sum[ft->wrong - 1];
    return hk_fail(HK_ERR_CORRUPT, run->ctx->rank,
                   "ft: class %s is wrong: the checksum of iteration %d is %.12e %.12e and should be %.12e %.12e",
                   ft->grid->name, ft->wrong, ft->wrong_sum.re, ft->wrong_sum.im, published.re, published.im);
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static size_t slab_bytes_of(const hk_run_t *run)
{
    const ft_class_t *grid = &classes[run->option[CLASS]];
    return grid->nx * grid->ny * grid->nz / (size_t)run->ctx->size * sizeof(hk_complex_t);
}

static bool ft_fits(const hk_run_t *run, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    const ft_class_t *grid = &classes[run->option[CLASS]];
    const size_t size = (size_t)run->ctx->size;
    const size_t message_bytes = slab_bytes_of(run) / size;
    if ((size & (size - 1)) != 0 || grid->ny % size != 0 || grid->nz % size != 0) {
        snprintf(why, len,
                 "ft: class %s, %zu x %zu x %zu, cannot be divided among %zu ranks: use a power of two up to %zu",
                 grid->name, grid->nx, grid->ny, grid->nz, size, grid->ny < grid->nz ? grid->ny : grid->nz);
        return false;
    }
    snprintf(why, len, "ft: class %s sends messages of %zu B on %zu ranks, more than the %llu B of %s", grid->name,
             message_bytes, size, (unsigned long long)tp->max_bytes, tp->name);
    return tp->max_bytes == 0 || message_bytes <= tp->max_bytes;
}

static hk_plan_t ft_plan(const hk_run_t *run)
{
    const size_t size = (size_t)run->ctx->size;
    const size_t slab_bytes = slab_bytes_of(run);
    const hk_call_t call = {.operation = HK_ALLTOALL, .size = run->ctx->size};
    const bool is_portable = !hk_has_own(run->ctx->tp, HK_ALLTOALL);
    return (hk_plan_t){.out_bytes = slab_bytes + sizeof(hk_complex_t),
                       .in_bytes = 2 * slab_bytes + sizeof(hk_complex_t),
                       .reqs_count = 2 * (size - 1),
                       .state_bytes =
                           sizeof(ft_t) + _Alignof(ft_t) + (is_portable ? 0 : run->ctx->tp->call_bytes(&call)),
                       .algorithm = is_portable ? "flat" : "native"};
}

/* Compute the places of received lines and planes. In the portable exchange a rank's own block stays in the send
 * buffer. */
static void find_places(ft_t *ft, bool is_portable)
{
    const ft_class_t *grid = ft->grid;
    for (size_t y = 0; y < grid->ny; y++) {
        const size_t from = y / ft->lines;
        hk_complex_t *slab = is_portable && from == ft->rank ? ft->sent : ft->received;
        ft->line[y] = slab + from * ft->block + y % ft->lines * grid->nx;
    }
    for (size_t z = 0; z < grid->nz; z++) {
        const hk_complex_t *slab = is_portable && z / ft->planes == ft->rank ? ft->sent : ft->received;
        ft->plane[z] = slab + z * ft->lines * grid->nx;
    }
}

static hk_status_t ft_prepare(hk_run_t *run)
{
    ft_t *ft = ft_state_of(run);
    hk_ctx_t *ctx = run->ctx;
    const ft_class_t *grid = &classes[run->option[CLASS]];
    const size_t size = (size_t)ctx->size;
    const size_t slab = grid->nx * grid->ny * grid->nz / size;
    ft->grid = grid;
    ft->run = run;
    ft->rank = (size_t)ctx->rank;
    ft->lines = grid->ny / size;
    ft->planes = grid->nz / size;
    ft->block = slab / size;
    ft->sent = (hk_complex_t *)(void *)run->out;
    ft->received = (hk_complex_t *)(void *)run->in;
    ft->spectrum = ft->received + slab + 1;
    ft->solve = ctx->tp->flops_per_s > 0 ? solve_charged : solve;
    const bool is_portable = !hk_has_own(ctx->tp, HK_ALLTOALL);
    find_places(ft, is_portable);
    hk_fft_prepare(&ft->fft_x, grid->nx);
    hk_fft_prepare(&ft->fft_y, grid->ny);
    hk_fft_prepare(&ft->fft_z, grid->nz);
    for (size_t i = 0; i <= size; i++) {
        ft->block_at[i] = i * ft->block * sizeof *ft->sent;
    }
    ft->call = (hk_call_t){.operation = HK_ALLTOALL,
                           .rank = ctx->rank,
                           .size = ctx->size,
                           .bytes = ft->block_at[1],
                           .given_bytes = ft->block_at[size],
                           .out_at = ft->block_at,
                           .in_at = ft->block_at,
                           .out = run->out,
                           .in = run->in,
                           .reqs = run->reqs,
                           .run = hk_alltoall_flat,
                           .own = ft + 1};
    return is_portable ? HK_OK : ctx->tp->make_call(ctx, &ft->call);
}

static hk_status_t ft_finish(hk_run_t *run)
{
    ft_t *ft = ft_state_of(run);
    if (ft->call.run != hk_alltoall_flat) {
        run->ctx->tp->drop_call(run->ctx, &ft->call);
    }
    return HK_OK;
}

const hk_pattern_t hk_pattern_ft = {
    .name = "ft",
    .kind = HK_KIND_APPLICATION,
    .summary =
        "NAS Parallel Benchmark FT: a 3-D Fourier transform over all-to-all, checksums verified; time of the benchmark",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD,
    .ranks_min = 1,
    .timed = HK_TIMED_ROOT,
    .unsized = true,
    .option = {{"class", "S|W|A", 0, 0, 0, "the size of the grid: 64 x 64 x 64, 128 x 128 x 32, or 256 x 256 x 128"}},
    .fits = ft_fits,
    .plan = ft_plan,
    .prepare = ft_prepare,
    .finish = ft_finish,
    .repeat = ft_repeat,
    .verdict = ft_verdict,
};
