/* cold */
/* Who accesses whom. */
#include "access.h"
#include "distance.h"
#include "roles.h"

static const hk_access_kind_t *reach_kind(const hk_run_t *run)
{
    return run->pattern->own;
}

int hk_reach_peers(const hk_run_t *run, bool accesses, int *peers)
{
    const hk_reach_t reach = reach_kind(run)->reach;
    const int rank = run->ctx->rank, size = run->ctx->size;
    int count = 0;
    switch (reach) {
    case HK_REACH_PAIR:
        peers[0] = accesses ? hk_target(run->option) : hk_source(run->option);
        return rank == (accesses ? hk_source(run->option) : hk_target(run->option)) ? 1 : 0;
    case HK_REACH_HALVES:
        peers[0] = accesses ? rank + size / 2 : rank - size / 2;
        return (rank < size / 2) == accesses ? 1 : 0;
    case HK_REACH_RING:
        peers[0] = accesses ? hk_ring_next(run) : hk_ring_previous(run);
        return 1;
    case HK_REACH_EXCHANGE:
        peers[0] = (rank + size - 1) % size;
        peers[1] = (rank + 1) % size;
        return 2;
    case HK_REACH_FAN:
    case HK_REACH_ALL:
        if (reach == HK_REACH_FAN && !accesses) {
            peers[0] = 0;
            return rank > 0 ? 1 : 0;
        }
        for (int step = 1; step < size && (reach == HK_REACH_ALL || rank == 0); step++) {
            peers[count++] = (rank + step) % size; /* another target for each rank, so that none is everyone's first */
        }
        return count;
    }
    return 0;
}

size_t hk_reach_peers_max(const hk_run_t *run)
{
    const size_t size = (size_t)run->ctx->size;
    const hk_reach_t reach = reach_kind(run)->reach;
    return size > 2 && (reach == HK_REACH_FAN || reach == HK_REACH_ALL) ? size : 2;
}

size_t hk_reach_slot_here(const hk_run_t *run, int i, int peer)
{
    return reach_kind(run)->reach == HK_REACH_ALL ? (size_t)peer : (size_t)i;
}

size_t hk_reach_slot_there(const hk_run_t *run, int i)
{
    switch (reach_kind(run)->reach) {
    case HK_REACH_ALL:
        return (size_t)run->ctx->rank;
    case HK_REACH_EXCHANGE:
        return i == 0 ? 1 : 0;
    default:
        return 0;
    }
}

size_t hk_reach_slots(const hk_run_t *run)
{
    const hk_access_kind_t *kind = reach_kind(run);
    const size_t size = (size_t)run->ctx->size;
    switch (kind->reach) {
    case HK_REACH_ALL:
        return size;
    case HK_REACH_EXCHANGE:
        return 2;
    case HK_REACH_FAN:
        return !kind->reads ? 1 : run->ctx->rank == 0 ? size - 1 : 0;
    default:
        return 1;
    }
}

uint64_t hk_reach_accesses(const hk_run_t *run)
{
    const uint64_t size = (uint64_t)run->ctx->size;
    switch (reach_kind(run)->reach) {
    case HK_REACH_PAIR:
        return 1;
    case HK_REACH_HALVES:
        return size / 2;
    case HK_REACH_RING:
        return size;
    case HK_REACH_FAN:
        return size - 1;
    case HK_REACH_ALL:
        return size * (size - 1);
    case HK_REACH_EXCHANGE:
        return 2 * size;
    }
    return 0;
}
