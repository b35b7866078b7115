/* Dragonflies: groups of routers, each group linked to each other group. */
#include "shapes.h"

enum { GROUPS, ROUTERS, NODES, GLOBAL };
enum { KIND_NODE = 1, KIND_LOCAL, KIND_GLOBAL };

static hk_status_t open_dragonfly(hk_topology_t *topology)
{
    const uint64_t *size = topology->size;
    if (size[ROUTERS] * size[GLOBAL] + 1 < size[GROUPS]) {
        return hk_no_topology(topology->model, "the dragonfly has too few global links to connect all groups");
    }
    topology->nodes = size[GROUPS] * size[ROUTERS] * size[NODES];
    topology->first_link[KIND_LOCAL] = 2 * topology->nodes;
    topology->first_link[KIND_GLOBAL] = topology->first_link[KIND_LOCAL] + size[GROUPS] * size[ROUTERS] * size[ROUTERS];
    topology->links = topology->first_link[KIND_GLOBAL] + size[GROUPS] * size[GROUPS];
    if (size[GROUPS] * size[ROUTERS] > UINT32_MAX || topology->nodes > UINT32_MAX / 4 || topology->links > UINT32_MAX) {
        return hk_no_topology(topology->model, "the dragonfly has too many nodes");
    }
    return HK_OK;
}

/* The router of a group with the global link to another group. */
static uint64_t gateway(const hk_topology_t *topology, uint64_t group, uint64_t to_group)
{
    const uint64_t groups = topology->size[GROUPS];
    return (to_group + groups - group - 1) % groups / topology->size[GLOBAL];
}

static void add_local(hk_topology_t *topology, uint64_t group, uint64_t from, uint64_t to)
{
    const uint64_t routers = topology->size[ROUTERS];
    if (from != to) {
        hk_add_hop(topology, topology->first_link[KIND_LOCAL] + (group * routers + from) * routers + to, KIND_LOCAL);
    }
}

/* Minimal routes: at most one local link on each side of one global link. */
static void route_dragonfly(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const uint64_t nodes = topology->size[NODES], routers = topology->size[ROUTERS], groups = topology->size[GROUPS];
    const uint64_t a = from / nodes, b = to / nodes;
    const uint64_t group_a = a / routers, group_b = b / routers;
    hk_add_hop(topology, 2 * (uint64_t)from, KIND_NODE);
    if (group_a == group_b) {
        add_local(topology, group_a, a % routers, b % routers);
    } else {
        add_local(topology, group_a, a % routers, gateway(topology, group_a, group_b));
        hk_add_hop(topology, topology->first_link[KIND_GLOBAL] + group_a * groups + group_b, KIND_GLOBAL);
        add_local(topology, group_b, gateway(topology, group_b, group_a), b % routers);
    }
    hk_add_hop(topology, 2 * (uint64_t)to + 1, KIND_NODE);
    topology->route.switches = (uint32_t)topology->route.count - 1;
}

static uint64_t dragonfly_longest(const hk_topology_t *topology)
{
    (void)topology;
    return 5;
}

const hk_shape_hooks_t hk_dragonfly = {open_dragonfly, route_dragonfly, NULL, dragonfly_longest};
