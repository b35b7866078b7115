/* The rounds of a tournament (the circle method, T. P. Kirkman 1847): disjoint pairs of ranks, so that P - 1 rounds (P,
 * where P is odd) bring every rank together with every other. With an odd number of ranks one rests in each round. */
#ifndef HK_TOURNAMENT_H
#define HK_TOURNAMENT_H

#include "../pattern.h"

// clang-format off
#define HK_TOURNAMENT_OPTION {"round", NULL, 1, 1, 4095, "number of the round"}
// clang-format on

/* The rank that this one meets in a round; -1: it rests. */
int hk_tournament_peer(const hk_ctx_t *ctx, int64_t round);

/* For the hook `fits`: whether there is such a round. */
bool hk_tournament_has(const hk_ctx_t *ctx, int64_t round, char *why, size_t len);

#endif
