/* Patterns with a source and a target: one moves data to or from the other, and all other ranks are idle. */
#ifndef HK_ROLES_H
#define HK_ROLES_H

#include "../pattern.h"

/* The first options of a pattern with roles, in this order. */
enum { HK_ROLE_SOURCE, HK_ROLE_TARGET };

// clang-format off
#define HK_ROLES_OPTIONS \
    {"source", NULL, 0, 0, 4095, "the rank that acts and is timed"}, \
    {"target", NULL, 1, 0, 4095, "the rank at the other end"}
// clang-format on

static inline int hk_source(const int64_t *option)
{
    return (int)option[HK_ROLE_SOURCE];
}

static inline int hk_target(const int64_t *option)
{
    return (int)option[HK_ROLE_TARGET];
}

/* The peer: the target on the source, the source on the target, -1 on idle ranks. */
int hk_role_peer(int rank, const int64_t *option);

/* The hook `fits`: source and target exist and differ. `_in`: for patterns whose role options are not the first. */
bool hk_roles_fit(const hk_run_t *run, char *why, size_t len);
bool hk_roles_fit_in(const hk_run_t *run, const int64_t *option, char *why, size_t len);

/* The hook `expected` if each of the two has a message from the other. */
bool hk_roles_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p);

#endif
