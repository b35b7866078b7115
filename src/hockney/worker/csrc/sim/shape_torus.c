/* Tori. */
#include "shapes.h"

#include <stdlib.h>

static hk_status_t open_torus(hk_topology_t *topology)
{
    const size_t dimensions = topology->levels;
    if (dimensions == 0) {
        return hk_no_topology(topology->model, "the torus has no dimension");
    }
    topology->nodes = 1;
    for (size_t d = 0; d < dimensions; d++) {
        topology->nodes *= topology->size[d];
        if (topology->nodes * 2 * dimensions > UINT32_MAX) {
            return hk_no_topology(topology->model, "the torus has too many nodes");
        }
    }
    topology->links = topology->nodes * 2 * dimensions;
    topology->place = calloc(topology->nodes * dimensions, sizeof *topology->place);
    if (topology->place == NULL) {
        return HK_ERR_MEMORY;
    }
    for (uint64_t node = 0; node < topology->nodes; node++) {
        uint64_t left = node;
        for (size_t d = 0; d < dimensions; d++) {
            topology->place[node * dimensions + d] = (uint32_t)(left % topology->size[d]);
            left /= topology->size[d];
        }
    }
    return HK_OK;
}

static uint32_t torus_switches(const hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const size_t dimensions = topology->levels;
    const uint32_t *a = topology->place + from * dimensions;
    const uint32_t *b = topology->place + to * dimensions;
    uint32_t distance = 0;
    for (size_t d = 0; d < dimensions; d++) {
        const uint32_t up = b[d] >= a[d] ? b[d] - a[d] : b[d] + (uint32_t)topology->size[d] - a[d];
        const uint32_t down = (uint32_t)topology->size[d] - up;
        distance += up < down ? up : down;
    }
    return distance + 1;
}

/* One dimension after the other, the shorter way round; upwards if both are equal. */
static void route_torus(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const size_t dimensions = topology->levels;
    const uint32_t *b = topology->place + to * dimensions;
    uint32_t dimensions_used = 0;
    uint64_t node = from;
    uint64_t stride = 1;
    for (size_t d = 0; d < dimensions; d++) {
        const uint32_t size = (uint32_t)topology->size[d];
        uint32_t at = topology->place[from * dimensions + d];
        const uint32_t up = b[d] >= at ? b[d] - at : b[d] + size - at;
        const bool goes_up = up <= size - up;
        dimensions_used += up > 0;
        for (uint32_t left = up == 0 ? 0 : goes_up ? up : size - up; left > 0; left--) {
            hk_add_hop(topology, (node * dimensions + d) * 2 + goes_up, d + 1);
            if (goes_up) {
                node = at + 1 < size ? node + stride : node - at * stride;
                at = at + 1 < size ? at + 1 : 0;
            } else {
                node = at > 0 ? node - stride : node + (size - 1) * stride;
                at = at > 0 ? at - 1 : size - 1;
            }
        }
        stride *= size;
    }
    topology->route.switches = (uint32_t)topology->route.count + 1;
    topology->route.turns = dimensions_used > 0 ? dimensions_used - 1 : 0;
}

static uint64_t torus_longest(const hk_topology_t *topology)
{
    uint64_t longest = 0;
    for (size_t d = 0; d < topology->levels; d++) {
        longest += topology->size[d] / 2;
    }
    return longest;
}

const hk_shape_hooks_t hk_torus = {open_torus, route_torus, torus_switches, torus_longest};
