/* cold */
#include "fragments.h"

#include <math.h>
#include <stdio.h>

/* The standard normal quantile of a probability, to the precision of a double, by halving. */
static double fragments_quantile(double probability)
{
    double low = -10, high = 10;
    for (int i = 0; i < 64; i++) {
        const double middle = (low + high) / 2;
        *(erfc(-middle / sqrt(2)) / 2 < probability ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* How large the sizes are compared with each other. */
static size_t fragments_weights(const hk_run_t *run, size_t first, double weight[HK_LIST_MAX])
{
    const size_t listed = (size_t)run->option[first + HK_FRAGMENT_SIZES];
    const double sigma = (double)run->option[first + HK_FRAGMENT_SIGMA] / 100;
    const size_t count = listed > 0 ? listed : sigma > 0 ? HK_LIST_MAX : 1;
    for (size_t i = 0; i < count; i++) {
        weight[i] = listed > 0 ? run->list[i] : exp(sigma * fragments_quantile(((double)i + 0.5) / (double)count));
    }
    return count;
}

void hk_fragments_of(const hk_run_t *run, size_t first, hk_fragments_t *fragments_p)
{
    double weight[HK_LIST_MAX], sum = 0;
    hk_fragments_t fragments = {.count = fragments_weights(run, first, weight),
                                .streams = (int)run->option[first + HK_FRAGMENT_STREAMS]};
    for (size_t i = 0; i < fragments.count; i++) {
        sum += weight[i];
    }
    for (size_t i = 0; i < fragments.count; i++) {
        const double bytes = (double)run->bytes * weight[i] * (double)fragments.count / sum;
        const size_t whole = (size_t)(bytes + 0.5);
        fragments.size[i] = run->bytes > 0 && whole == 0 ? 1 : whole;
        fragments.largest = fragments.size[i] > fragments.largest ? fragments.size[i] : fragments.largest;
    }
    *fragments_p = fragments;
}

bool hk_fragments_fit(const hk_run_t *run, size_t first, char *why, size_t len)
{
    const hk_transport_t *tp = run->ctx->tp;
    const int64_t listed = run->option[first + HK_FRAGMENT_SIZES];
    hk_fragments_t fragments;
    if (listed > 0 && run->option[first + HK_FRAGMENT_SIGMA] > 0) {
        snprintf(why, len, "fragment=FILE and sigma_percent exclude each other");
        return false;
    }
    for (int64_t i = 0; i < listed; i++) {
        if (run->list[i] < 0) {
            snprintf(why, len, "fragment=%+d is no size", (int)run->list[i]);
            return false;
        }
    }
    hk_fragments_of(run, first, &fragments);
    snprintf(why, len, "the largest fragment has %zu B, and %s sends at most %llu B in one message: choose fewer bytes",
             fragments.largest, tp->name, (unsigned long long)tp->max_bytes);
    return tp->max_bytes == 0 || fragments.largest <= tp->max_bytes;
}
