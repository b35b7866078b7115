#include "roles.h"

#include <stdio.h>

int hk_role_peer(int rank, const int64_t *option)
{
    const int source = hk_source(option);
    const int target = hk_target(option);
    return rank == source ? target : rank == target ? source : -1;
}

bool hk_roles_fit_in(const hk_run_t *run, const int64_t *option, char *why, size_t len)
{
    const int size = run->ctx->size;
    const int source = hk_source(option);
    const int target = hk_target(option);
    if (source == target) {
        snprintf(why, len, "source and target must differ, but both are rank %d", source);
    } else if (source >= size || target >= size) {
        snprintf(why, len, "%s is rank %d, and the last of %d ranks is %d", source >= size ? "source" : "target",
                 source >= size ? source : target, size, size - 1);
    } else {
        return true;
    }
    return false;
}

bool hk_roles_fit(const hk_run_t *run, char *why, size_t len)
{
    return hk_roles_fit_in(run, run->option, why, len);
}

bool hk_roles_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = peer};
    return i == 0 && peer >= 0;
}
