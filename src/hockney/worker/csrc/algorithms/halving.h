/* Recursive halving of a vector among the ranks of a power of two: shared by Rabenseifner's algorithms. */
#ifndef HK_HALVING_H
#define HK_HALVING_H

#include "algorithms.h"

enum { HALVINGS_MAX = 32 };

typedef struct halving_range {
    size_t at, end; /* bytes of the vector */
} halving_range_t;

/* Ranks are numbered from the root, or from rank 0 where `root` is 0. */
typedef struct halving {
    int doubling, steps;                     /* the largest power of two up to the size; halvings that were made */
    halving_range_t range[HALVINGS_MAX + 1]; /* that this rank was responsible for before each halving, and now */
} halving_t;

/* Ranks beyond the power of two give their vectors to others before. Then in each step pairs swap halves, and each
 * combines its own: at the end a rank has one part of the result in `sum`. Uses call->work, and two requests. */
static inline hk_status_t halving_begin(hk_ctx_t *ctx, hk_call_t *call, int rank, const unsigned char *given,
                                        unsigned char *sum, halving_t *halving_p)
{
    const hk_transport_t *tp = ctx->tp;
    const unsigned char *mine = given;
    halving_t halving = {.doubling = 1};
    halving.range[0] = (halving_range_t){0, call->bytes};
    while (2 * halving.doubling <= call->size) {
        halving.doubling *= 2;
    }
    *halving_p = halving;
    if (rank >= halving.doubling) {
        return tp->send(ctx, hk_peer(call, hk_to_rank(call, rank - halving.doubling)), given, call->bytes);
    }
    if (rank + halving.doubling < call->size) {
        HK_TRY(tp->recv(ctx, hk_peer(call, hk_to_rank(call, rank + halving.doubling)), call->work, call->bytes));
        call->combine(sum, mine, call->work, call->bytes);
        mine = sum;
    }
    for (int distance = halving.doubling / 2; distance > 0; distance /= 2) {
        const halving_range_t all = halving.range[halving.steps];
        const size_t grain = hk_type_bytes[call->type];
        const size_t middle = all.at + (all.end - all.at) / grain / 2 * grain;
        const bool is_upper = (rank & distance) != 0;
        const halving_range_t kept = is_upper ? (halving_range_t){middle, all.end} : (halving_range_t){all.at, middle};
        const halving_range_t given_away =
            is_upper ? (halving_range_t){all.at, middle} : (halving_range_t){middle, all.end};
        const int peer = hk_to_rank(call, rank ^ distance);
        HK_TRY(hk_swap(ctx, call, peer, mine + given_away.at, given_away.end - given_away.at, peer,
                       call->work + kept.at, kept.end - kept.at));
        call->combine(sum + kept.at, mine + kept.at, call->work + kept.at, kept.end - kept.at);
        mine = sum;
        halving.range[++halving.steps] = kept;
    }
    *halving_p = halving;
    return HK_OK;
}

/* This rank's range, after which it is responsible for the one before. */
static inline halving_range_t halving_back(halving_t *halving)
{
    return halving->range[halving->steps--];
}

/* What the partner of that halving has. */
static inline halving_range_t halving_other(const halving_t *halving, halving_range_t mine)
{
    const halving_range_t all = halving->range[halving->steps];
    return mine.at == all.at ? (halving_range_t){mine.end, all.end} : (halving_range_t){all.at, mine.at};
}

#endif
