/* Trees; a single switch is a tree of one level. */
#include "shapes.h"

static hk_status_t open_tree(hk_topology_t *topology)
{
    topology->below[0] = topology->parallel[0] = 1;
    for (size_t i = 0; i < topology->levels; i++) {
        topology->below[i + 1] = topology->below[i] * topology->size[i];
        topology->parallel[i + 1] = topology->parallel[i] * topology->width[i];
        if (topology->below[i + 1] > UINT32_MAX || topology->parallel[i + 1] > UINT32_MAX) {
            return hk_no_topology(topology->model, "the tree has too many nodes or switches");
        }
    }
    topology->nodes = topology->below[topology->levels];
    for (size_t i = 0; i < topology->levels; i++) {
        topology->first_link[i] = topology->links;
        const uint64_t links = 2 * (topology->nodes / topology->below[i]);
        if (links > UINT32_MAX / topology->parallel[i + 1]) {
            return hk_no_topology(topology->model, "the tree has too many links");
        }
        topology->links += links * topology->parallel[i + 1];
    }
    return HK_OK;
}

/* The lowest level at which two nodes share a switch. */
static size_t meeting_level(const hk_topology_t *topology, uint32_t from, uint32_t to)
{
    size_t level = 1;
    while (from / topology->below[level] != to / topology->below[level]) {
        level++;
    }
    return level;
}

/* The link between a subtree and a switch above it. Of `parallel` parallel switches the destination determines the one
 * on the way up, so all routes to a node have the same end. */
static uint64_t tree_link(const hk_topology_t *topology, size_t level, uint32_t node, uint32_t to)
{
    const uint64_t parallel = topology->parallel[level + 1];
    uint64_t place = 0;
    uint64_t left = to;
    for (size_t i = 0; i <= level; i++) {
        place = place * topology->width[i] + left % topology->width[i];
        left /= topology->width[i];
    }
    return topology->first_link[level] + 2 * (node / topology->below[level] * parallel + place);
}

static void route_tree(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const size_t top = meeting_level(topology, from, to);
    topology->route.switches = (uint32_t)(2 * top - 1);
    for (size_t level = 0; level < top; level++) {
        hk_add_hop(topology, tree_link(topology, level, from, to), level + 1);
    }
    for (size_t level = top; level-- > 0;) {
        hk_add_hop(topology, tree_link(topology, level, to, to) + 1, level + 1);
    }
}

static uint32_t tree_switches(const hk_topology_t *topology, uint32_t from, uint32_t to)
{
    return (uint32_t)(2 * meeting_level(topology, from, to) - 1);
}

static uint64_t tree_longest(const hk_topology_t *topology)
{
    return 2 * topology->levels;
}

const hk_shape_hooks_t hk_tree = {open_tree, route_tree, tree_switches, tree_longest};
