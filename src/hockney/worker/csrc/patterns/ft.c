/* NAS Parallel Benchmark FT: a partial differential equation in three dimensions, solved by Fourier transforms, after
 * its specification (D. Bailey et al., The NAS Parallel Benchmarks, RNR-94-007, 1994, section 2.4).
 *
 * Each rank has a slab of planes z of the grid, and in the spectrum a slab of lines y. One repetition is what the
 * benchmark times: the initial values, the transform forward, and then for each time step the spectrum's decay, the
 * transform back and a checksum. Each transform is one all-to-all; x and y are transformed in the planes on its one
 * side, z on the other, all in place. Whether the checksums are the published ones is told after the samples.
 *
 * On a model of a machine the operations are charged by their number and the messages sent, but no data exist. */
#include <math.h>
#include <stdio.h>

#include "../collectives.h"
#include "../pattern.h"
#include "fft.h"

enum { CLASS };
enum { ITERATIONS = 6, CHECKED = 1024 };

static const double tolerance = 1e-12;

typedef struct ft_class {
    const char *name;
    size_t nx, ny, nz;
    hk_complex_t sum[ITERATIONS]; /* as published with the NPB */
} ft_class_t;

static const ft_class_t classes[] = {
    {"S",
     64,
     64,
     64,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {"W",
     128,
     128,
     32,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {"A",
     256,
     256,
     128,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
};

/* One rank's part of a problem. A slab is a block for each rank: planes z, in them lines y, in them points x. */
typedef struct ft {
    const ft_class_t *grid;
    hk_run_t *run;
    size_t rank, lines, planes;    /* lines y of the spectrum's slab, planes z of the grid's */
    size_t block;                  /* points */
    hk_complex_t *sent, *received; /* slabs; their last point carries a rank's part of a checksum */
    hk_complex_t *spectrum;        /* a slab: lines y, in them z, in them x */
    hk_status_t (*exchange)(struct ft *ft);
    hk_status_t (*solve)(struct ft *ft, hk_complex_t *const *line);
    hk_complex_t *line[HK_FFT_POINTS_MAX];        /* where each line y of the first plane is when planes come in */
    const hk_complex_t *plane[HK_FFT_POINTS_MAX]; /* where each plane z is when lines of the spectrum come in */
    double decay_x[HK_FFT_POINTS_MAX], decay_y[HK_FFT_POINTS_MAX], decay_z[HK_FFT_POINTS_MAX];
    hk_fft_t fft_x, fft_y, fft_z;
    hk_fft_block_t block_a, block_b;
    hk_complex_t sum[ITERATIONS]; /* rank 0: of the last repetition */
    int wrong;                    /* rank 0: the first iteration whose checksum was ever wrong; 0: none */
    hk_complex_t wrong_sum;
} ft_t;

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* x(k+1) = 5^13 x(k) mod 2^46, scaled to (0, 1). */
static const uint64_t multiplier = 1220703125;
static const uint64_t seed = 314159265;
static const uint64_t low_46_bits = ((uint64_t)1 << 46) - 1;

/* The state of the generator after that many numbers. */
static uint64_t state_after(uint64_t count)
{
    uint64_t state = seed;
    uint64_t power = multiplier;
    for (; count > 0; count /= 2) {
        state = count % 2 == 1 ? (state * power) & low_46_bits : state;
        power = (power * power) & low_46_bits;
    }
    return state;
}

/* A line of initial values; returns the state after them. */
static uint64_t draw_line(uint64_t state, hk_complex_t *line, size_t points)
{
    const double scale = 1.0 / (double)(low_46_bits + 1);
    for (size_t x = 0; x < points; x++) {
        state = (state * multiplier) & low_46_bits;
        line[x].re = scale * (double)state;
        state = (state * multiplier) & low_46_bits;
        line[x].im = scale * (double)state;
    }
    return state;
}

/* The planes of this rank, laid out in blocks for their receivers. */
static void draw_planes(const ft_t *ft)
{
    const ft_class_t *grid = ft->grid;
    const size_t plane = ft->lines * grid->nx;
    uint64_t state = state_after(2 * grid->nx * grid->ny * ft->planes * ft->rank);
    for (size_t z = 0; z < ft->planes; z++) {
        for (size_t y = 0; y < grid->ny; y++) {
            hk_complex_t *const line = ft->sent + y / ft->lines * ft->block + y % ft->lines * grid->nx;
            state = draw_line(state, line + z * plane, grid->nx);
        }
    }
}

/* ---- transforms -------------------------------------------------------------------------------------------------- */

/* In which direction: the inverse of a transform is the transform with re and im in each other's place. */
typedef enum direction { FORWARD, INVERSE } direction_t;

static double *re_of(hk_fft_block_t *block, direction_t direction)
{
    return direction == FORWARD ? block->re : block->im;
}

static double *im_of(hk_fft_block_t *block, direction_t direction)
{
    return direction == FORWARD ? block->im : block->re;
}

/* A row of a block from or to neighbours in memory. */
static void gather(double *restrict re, double *restrict im, const hk_complex_t *restrict from)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        re[l] = from[l].re;
        im[l] = from[l].im;
    }
}

static void scatter(hk_complex_t *restrict to, const double *restrict re, const double *restrict im)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        to[l] = (hk_complex_t){re[l], im[l]};
    }
}

/* Along x: the lanes are lines. */
static void transform_x(ft_t *ft, hk_complex_t *const *line, size_t offset, direction_t direction)
{
    const size_t nx = ft->grid->nx;
    double *re = re_of(&ft->block_a, direction);
    double *im = im_of(&ft->block_a, direction);
    hk_complex_t *lane[HK_FFT_LANES];
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        lane[l] = line[l] + offset;
    }
    for (size_t x = 0; x < nx; x++) {
        for (size_t l = 0; l < HK_FFT_LANES; l++) {
            re[x * HK_FFT_LANES + l] = lane[l][x].re;
            im[x * HK_FFT_LANES + l] = lane[l][x].im;
        }
    }
    hk_fft_block_t *const done = hk_fft_transform(&ft->fft_x, &ft->block_a, &ft->block_b);
    re = re_of(done, direction);
    im = im_of(done, direction);
    for (size_t x = 0; x < nx; x++) {
        for (size_t l = 0; l < HK_FFT_LANES; l++) {
            lane[l][x] = (hk_complex_t){re[x * HK_FFT_LANES + l], im[x * HK_FFT_LANES + l]};
        }
    }
}

/* Along y: the lanes are neighbours x. */
static void transform_y(ft_t *ft, hk_complex_t *const *line, size_t offset, direction_t direction)
{
    const size_t ny = ft->grid->ny;
    double *re = re_of(&ft->block_a, direction);
    double *im = im_of(&ft->block_a, direction);
    for (size_t y = 0; y < ny; y++) {
        gather(re + y * HK_FFT_LANES, im + y * HK_FFT_LANES, line[y] + offset);
    }
    hk_fft_block_t *const done = hk_fft_transform(&ft->fft_y, &ft->block_a, &ft->block_b);
    re = re_of(done, direction);
    im = im_of(done, direction);
    for (size_t y = 0; y < ny; y++) {
        scatter(line[y] + offset, re + y * HK_FFT_LANES, im + y * HK_FFT_LANES);
    }
}

/* All planes of this rank in both of their directions, in place. */
static void transform_planes(ft_t *ft, hk_complex_t *const *line, direction_t direction)
{
    const ft_class_t *grid = ft->grid;
    for (size_t z = 0; z < ft->planes; z++) {
        const size_t plane = z * ft->lines * grid->nx;
        for (size_t y = 0; direction == FORWARD && y < grid->ny; y += HK_FFT_LANES) {
            transform_x(ft, line + y, plane, direction);
        }
        for (size_t x = 0; x < grid->nx; x += HK_FFT_LANES) {
            transform_y(ft, line, plane + x, direction);
        }
        for (size_t y = 0; direction == INVERSE && y < grid->ny; y += HK_FFT_LANES) {
            transform_x(ft, line + y, plane, direction);
        }
    }
}

/* Along z, from the planes that came in to the spectrum. */
static void transform_z(ft_t *ft)
{
    const size_t nx = ft->grid->nx;
    const size_t nz = ft->grid->nz;
    for (size_t y = 0; y < ft->lines; y++) {
        for (size_t x = 0; x < nx; x += HK_FFT_LANES) {
            for (size_t z = 0; z < nz; z++) {
                gather(ft->block_a.re + z * HK_FFT_LANES, ft->block_a.im + z * HK_FFT_LANES, ft->plane[z] + y * nx + x);
            }
            const hk_fft_block_t *const done = hk_fft_transform(&ft->fft_z, &ft->block_a, &ft->block_b);
            for (size_t z = 0; z < nz; z++) {
                scatter(ft->spectrum + (y * nz + z) * nx + x, done->re + z * HK_FFT_LANES, done->im + z * HK_FFT_LANES);
            }
        }
    }
}

/* A row of the spectrum one time step later, and the same with re and im in each other's place. */
static void decay_row(hk_complex_t *restrict row, double decay, const double *restrict decay_x, double *restrict re,
                      double *restrict im)
{
    for (size_t l = 0; l < HK_FFT_LANES; l++) {
        const double factor = decay * decay_x[l];
        row[l].re *= factor;
        row[l].im *= factor;
        im[l] = row[l].re;
        re[l] = row[l].im;
    }
}

/* One time step of the spectrum, and back along z into the planes that go out. */
static void step_z(ft_t *ft)
{
    const size_t nx = ft->grid->nx;
    const size_t nz = ft->grid->nz;
    for (size_t y = 0; y < ft->lines; y++) {
        const double decay_y = ft->decay_y[ft->rank * ft->lines + y];
        for (size_t x = 0; x < nx; x += HK_FFT_LANES) {
            for (size_t z = 0; z < nz; z++) {
                decay_row(ft->spectrum + (y * nz + z) * nx + x, decay_y * ft->decay_z[z], ft->decay_x + x,
                          ft->block_a.re + z * HK_FFT_LANES, ft->block_a.im + z * HK_FFT_LANES);
            }
            const hk_fft_block_t *const done = hk_fft_transform(&ft->fft_z, &ft->block_a, &ft->block_b);
            for (size_t z = 0; z < nz; z++) {
                scatter(ft->sent + (z * ft->lines + y) * nx + x, done->im + z * HK_FFT_LANES,
                        done->re + z * HK_FFT_LANES);
            }
        }
    }
}

/* exp(-4 alpha pi^2 k^2) with k from -points/2 to points/2 - 1, and the negative ones last. */
static void fill_decay(double *decay, size_t points)
{
    const double alpha = 1e-6;
    const double pi = acos(-1.0);
    for (size_t i = 0; i < points; i++) {
        const double k = i < points / 2 ? (double)i : (double)i - (double)points;
        decay[i] = exp(-4 * alpha * pi * pi * k * k);
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static hk_status_t exchange_native(ft_t *ft)
{
    hk_ctx_t *ctx = ft->run->ctx;
    return ctx->tp->alltoall(ctx, ft->sent, ft->received, ft->block * sizeof *ft->sent);
}

static hk_status_t exchange_portable(ft_t *ft)
{
    return hk_portable_alltoall(ft->run->ctx, ft->sent, ft->received, ft->block * sizeof *ft->sent, ft->run->reqs);
}

/* Rank 0 gets the sum of every rank's part of a checksum. */
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

/* This rank's part of the sum over 1024 points of the grid. */
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
    step_z(ft);
    HK_TRY(ft->exchange(ft));
    transform_planes(ft, ft->line, INVERSE);
    return add_up(ft, sum_points(ft), sum_p);
}

/* ---- the benchmark ----------------------------------------------------------------------------------------------- */

static bool is_close(double found, double published)
{
    return fabs((found - published) / published) <= tolerance; /* false for what is no number */
}

static void compare_sums(ft_t *ft)
{
    for (int i = 0; i < ITERATIONS && ft->wrong == 0; i++) {
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
    fill_decay(ft->decay_x, ft->grid->nx);
    fill_decay(ft->decay_y, ft->grid->ny);
    fill_decay(ft->decay_z, ft->grid->nz);
    draw_planes(ft);
    transform_planes(ft, line, FORWARD);
    HK_TRY(ft->exchange(ft));
    transform_z(ft);
    for (int i = 0; i < ITERATIONS; i++) {
        HK_TRY(step(ft, &ft->sum[i]));
    }
    if (ft->rank == 0) {
        compare_sums(ft);
    }
    return HK_OK;
}

/* A rank's part of the operations that the NPB counts for each point: a + b ln(points). */
static void charge(const ft_t *ft, double a, double b)
{
    hk_ctx_t *ctx = ft->run->ctx;
    const double points = (double)(ft->grid->nx * ft->grid->ny * ft->grid->nz);
    const double operations = points / ctx->size * (a + b * log(points));
    ctx->tp->compute(ctx, (uint64_t)(1e9 * operations / ctx->tp->flops_per_s));
}

/* All ranks compute alike, so on which side of an exchange does not matter. */
static hk_status_t solve_charged(ft_t *ft, hk_complex_t *const *line)
{
    (void)line;
    charge(ft, 14.8157, 7.19641);
    HK_TRY(ft->exchange(ft));
    for (int i = 0; i < ITERATIONS; i++) {
        charge(ft, 5.23518, 7.21113);
        HK_TRY(ft->exchange(ft));
        HK_TRY(add_up(ft, (hk_complex_t){0, 0}, &ft->sum[i]));
    }
    return HK_OK;
}

/* The state begins with a cache line, which the memory for it need not. */
static ft_t *ft_state_of(const hk_run_t *run)
{
    const size_t beyond = (uintptr_t)run->state % _Alignof(ft_t);
    return (ft_t *)(void *)((unsigned char *)run->state + (beyond > 0 ? _Alignof(ft_t) - beyond : 0));
}

static hk_status_t ft_repeat(hk_run_t *run, uint64_t reps)
{
    ft_t *ft = ft_state_of(run);
    hk_complex_t *line[HK_FFT_POINTS_MAX]; /* of the planes that go out */
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
    hk_log(run->ctx->rank,
           "ft: class %s is wrong: the checksum of iteration %d is %.12e %.12e and should be %.12e %.12e",
           ft->grid->name, ft->wrong, ft->wrong_sum.re, ft->wrong_sum.im, published.re, published.im);
    return HK_ERR_CORRUPT;
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
                 "ft: class %s, %zu x %zu x %zu, can't be divided among %zu ranks: it takes a power of two up to %zu",
                 grid->name, grid->nx, grid->ny, grid->nz, size, grid->ny < grid->nz ? grid->ny : grid->nz);
        return false;
    }
    snprintf(why, len, "ft: class %s sends messages of %zu B on %zu ranks, above the %llu B of %s", grid->name,
             message_bytes, size, (unsigned long long)tp->max_bytes, tp->name);
    return tp->max_bytes == 0 || message_bytes <= tp->max_bytes;
}

static hk_plan_t ft_plan(const hk_run_t *run)
{
    const size_t size = (size_t)run->ctx->size;
    const size_t slab_bytes = slab_bytes_of(run);
    return (hk_plan_t){.out_bytes = slab_bytes + sizeof(hk_complex_t),
                       .in_bytes = 2 * slab_bytes + sizeof(hk_complex_t),
                       .reqs_count = 2 * (size - 1),
                       .state_bytes = sizeof(ft_t) + _Alignof(ft_t),
                       .divisor = 1,
                       .algorithm = run->ctx->tp->alltoall != NULL ? "native" : "portable"};
}

/* Where lines and planes will be found: with the portable exchange the own block stays where it was sent from. */
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
    const hk_ctx_t *ctx = run->ctx;
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
    ft->exchange = ctx->tp->alltoall != NULL ? exchange_native : exchange_portable;
    ft->solve = ctx->tp->flops_per_s > 0 ? solve_charged : solve;
    find_places(ft, ctx->tp->alltoall == NULL);
    hk_fft_prepare(&ft->fft_x, grid->nx);
    hk_fft_prepare(&ft->fft_y, grid->ny);
    hk_fft_prepare(&ft->fft_z, grid->nz);
    return HK_OK;
}

const hk_pattern_t hk_pattern_ft = {
    .name = "ft",
    .summary = "NAS Parallel Benchmark FT: a 3-D Fourier transform over all-to-all, its checksums verified",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD,
    .ranks_min = 1,
    .timed = HK_TIMED_ROOT,
    .unsized = true,
    .option = {{"class", "S|W|A", 0, 0, 0, "the size of the grid: 64 x 64 x 64, 128 x 128 x 32, or 256 x 256 x 128"}},
    .fits = ft_fits,
    .plan = ft_plan,
    .prepare = ft_prepare,
    .repeat = ft_repeat,
    .verdict = ft_verdict,
};
