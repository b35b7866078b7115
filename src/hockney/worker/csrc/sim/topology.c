#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NO_LINK = UINT32_MAX;

struct hk_topology {
    hk_shape_t shape;
    size_t levels;
    uint64_t size[HK_MODEL_LEVELS_MAX], width[HK_MODEL_LEVELS_MAX];
    uint64_t nodes, links;
    hk_level_t *kind;
    size_t kinds;
    hk_route_t route;
    const hk_model_t *model;

    /* tree: of level i, how many nodes are below, switches side by side, and where the links to it begin */
    uint64_t below[HK_MODEL_LEVELS_MAX + 1], beside[HK_MODEL_LEVELS_MAX + 1], first_link[HK_MODEL_LEVELS_MAX + 1];

    uint32_t *place; /* torus: the coordinates of each node */

    /* graph: the edges at vertex v are edge[first_edge[v]] and so on; next[node], where it is known, has for each
     * vertex the link that leads to the node */
    uint32_t *first_edge, *edge, *queue;
    uint32_t **next;
};

static hk_status_t no_topology(const hk_model_t *model, const char *what)
{
    fprintf(stderr, "hockney worker: model %s: %s\n", model->name, what);
    return HK_ERR_ARGUMENT;
}

static void add_hop(hk_topology_t *topology, uint64_t link, size_t kind)
{
    const size_t own = kind > HK_MODEL_LEVELS_MAX || topology->model->has_level[kind] ? kind : 0;
    topology->route.hop[topology->route.count++] = (hk_hop_t){(uint32_t)link, (uint32_t)own};
}

/* ---- trees, of which a single switch is one ---------------------------------------------------------------------- */

static hk_status_t open_tree(hk_topology_t *topology)
{
    topology->below[0] = topology->beside[0] = 1;
    for (size_t i = 0; i < topology->levels; i++) {
        topology->below[i + 1] = topology->below[i] * topology->size[i];
        topology->beside[i + 1] = topology->beside[i] * topology->width[i];
        if (topology->below[i + 1] > UINT32_MAX || topology->beside[i + 1] > UINT32_MAX) {
            return no_topology(topology->model, "the tree has too many nodes or switches");
        }
    }
    topology->nodes = topology->below[topology->levels];
    for (size_t i = 0; i < topology->levels; i++) {
        topology->first_link[i] = topology->links;
        topology->links += 2 * (topology->nodes / topology->below[i]) * topology->beside[i + 1];
    }
    return HK_OK;
}

/* How far up two nodes have a switch in common. */
static size_t meeting_level(const hk_topology_t *topology, uint32_t from, uint32_t to)
{
    size_t level = 1;
    while (from / topology->below[level] != to / topology->below[level]) {
        level++;
    }
    return level;
}

/* The link between a part of the tree and the switch above: of `beside` switches side by side the one in whose place
 * the route goes up is chosen by where it leads to, so that all routes to a node end alike. */
static uint64_t tree_link(const hk_topology_t *topology, size_t level, uint32_t node, uint32_t to)
{
    const uint64_t beside = topology->beside[level + 1];
    uint64_t place = 0;
    uint64_t left = to;
    for (size_t i = 0; i <= level; i++) {
        place = place * topology->width[i] + left % topology->width[i];
        left /= topology->width[i];
    }
    return topology->first_link[level] + 2 * (node / topology->below[level] * beside + place);
}

static void route_tree(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const size_t top = meeting_level(topology, from, to);
    topology->route.switches = (uint32_t)(2 * top - 1);
    for (size_t level = 0; level < top; level++) {
        add_hop(topology, tree_link(topology, level, from, to), level + 1);
    }
    for (size_t level = top; level-- > 0;) {
        add_hop(topology, tree_link(topology, level, to, to) + 1, level + 1);
    }
}

/* ---- torus ------------------------------------------------------------------------------------------------------- */

static hk_status_t open_torus(hk_topology_t *topology)
{
    const size_t dimensions = topology->levels;
    if (dimensions == 0) {
        return no_topology(topology->model, "the torus has no dimension");
    }
    topology->nodes = 1;
    for (size_t d = 0; d < dimensions; d++) {
        topology->nodes *= topology->size[d];
        if (topology->nodes * 2 * dimensions > UINT32_MAX) {
            return no_topology(topology->model, "the torus has too many nodes");
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

static uint32_t torus_distance(const hk_topology_t *topology, uint32_t from, uint32_t to)
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
    return distance;
}

/* Along the first dimension, then the second …, the shorter way round; up where both are as long. */
static void route_torus(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const size_t dimensions = topology->levels;
    const uint32_t *b = topology->place + to * dimensions;
    uint32_t dimensions_used = 0;
    uint64_t node = from;
    uint64_t stride = 1;
    for (size_t d = 0; d < dimensions; d++) {
        const uint32_t length = (uint32_t)topology->size[d];
        uint32_t at = topology->place[from * dimensions + d];
        const uint32_t up = b[d] >= at ? b[d] - at : b[d] + length - at;
        const bool goes_up = up <= length - up;
        dimensions_used += up > 0;
        for (uint32_t left = up == 0 ? 0 : goes_up ? up : length - up; left > 0; left--) {
            add_hop(topology, (node * dimensions + d) * 2 + goes_up, d + 1);
            if (goes_up) {
                node = at + 1 < length ? node + stride : node - at * stride;
                at = at + 1 < length ? at + 1 : 0;
            } else {
                node = at > 0 ? node - stride : node + (length - 1) * stride;
                at = at > 0 ? at - 1 : length - 1;
            }
        }
        stride *= length;
    }
    topology->route.switches = (uint32_t)topology->route.count + 1;
    topology->route.turns = dimensions_used > 0 ? dimensions_used - 1 : 0;
}

/* ---- dragonfly --------------------------------------------------------------------------------------------------- */

enum { GROUPS, ROUTERS, NODES, GLOBAL };
enum { KIND_NODE = 1, KIND_LOCAL, KIND_GLOBAL };

static hk_status_t open_dragonfly(hk_topology_t *topology)
{
    const uint64_t *size = topology->size;
    if (size[ROUTERS] * size[GLOBAL] + 1 < size[GROUPS]) {
        return no_topology(topology->model, "the dragonfly has too few global links to connect all groups");
    }
    topology->nodes = size[GROUPS] * size[ROUTERS] * size[NODES];
    topology->first_link[KIND_LOCAL] = 2 * topology->nodes;
    topology->first_link[KIND_GLOBAL] = topology->first_link[KIND_LOCAL] + size[GROUPS] * size[ROUTERS] * size[ROUTERS];
    topology->links = topology->first_link[KIND_GLOBAL] + size[GROUPS] * size[GROUPS];
    if (size[GROUPS] * size[ROUTERS] > UINT32_MAX || topology->nodes > UINT32_MAX / 4 || topology->links > UINT32_MAX) {
        return no_topology(topology->model, "the dragonfly has too many nodes");
    }
    return HK_OK;
}

/* The router of a group from which a global link leads to another group. */
static uint64_t gateway(const hk_topology_t *topology, uint64_t group, uint64_t to_group)
{
    const uint64_t groups = topology->size[GROUPS];
    return (to_group + groups - group - 1) % groups / topology->size[GLOBAL];
}

static void add_local(hk_topology_t *topology, uint64_t group, uint64_t from, uint64_t to)
{
    const uint64_t routers = topology->size[ROUTERS];
    if (from != to) {
        add_hop(topology, topology->first_link[KIND_LOCAL] + (group * routers + from) * routers + to, KIND_LOCAL);
    }
}

/* The least: at most one local link on either side of one global link. */
static void route_dragonfly(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const uint64_t nodes = topology->size[NODES], routers = topology->size[ROUTERS], groups = topology->size[GROUPS];
    const uint64_t a = from / nodes, b = to / nodes;
    const uint64_t group_a = a / routers, group_b = b / routers;
    add_hop(topology, 2 * (uint64_t)from, KIND_NODE);
    if (group_a == group_b) {
        add_local(topology, group_a, a % routers, b % routers);
    } else {
        add_local(topology, group_a, a % routers, gateway(topology, group_a, group_b));
        add_hop(topology, topology->first_link[KIND_GLOBAL] + group_a * groups + group_b, KIND_GLOBAL);
        add_local(topology, group_b, gateway(topology, group_b, group_a), b % routers);
    }
    add_hop(topology, 2 * (uint64_t)to + 1, KIND_NODE);
    topology->route.switches = (uint32_t)topology->route.count - 1;
}

/* ---- graph ------------------------------------------------------------------------------------------------------- */

enum { SWITCHES, GRAPH_NODES };

static uint64_t vertices_of(const hk_topology_t *topology)
{
    return topology->size[SWITCHES] + topology->size[GRAPH_NODES];
}

/* The link from a vertex over an edge. */
static uint32_t link_over(const hk_model_t *model, uint32_t edge, uint32_t from)
{
    return 2 * edge + (model->edges[edge].b == from);
}

static uint32_t far_end(const hk_model_t *model, uint32_t link)
{
    const hk_edge_t *edge = &model->edges[link / 2];
    return link % 2 == 0 ? edge->b : edge->a;
}

static uint32_t find_link(const hk_topology_t *topology, uint32_t from, uint32_t to)
{
    for (uint32_t i = topology->first_edge[from]; i < topology->first_edge[from + 1]; i++) {
        const uint32_t link = link_over(topology->model, topology->edge[i], from);
        if (far_end(topology->model, link) == to) {
            return link;
        }
    }
    return NO_LINK;
}

/* For each vertex the link towards `node`, breadth first; of several as short the first in the order of edges. */
static bool find_ways(hk_topology_t *topology, uint32_t node)
{
    const hk_model_t *model = topology->model;
    const uint64_t count = vertices_of(topology);
    uint32_t *next = malloc(count * sizeof *next);
    if (next == NULL) {
        return false;
    }
    memset(next, 0xff, count * sizeof *next);
    size_t first = 0, last = 0;
    topology->queue[last++] = node;
    while (first < last) {
        const uint32_t vertex = topology->queue[first++];
        for (uint32_t i = topology->first_edge[vertex]; i < topology->first_edge[vertex + 1]; i++) {
            const uint32_t outward = link_over(model, topology->edge[i], vertex);
            const uint32_t other = far_end(model, outward);
            if (other != node && next[other] == NO_LINK) {
                next[other] = outward ^ 1;
                topology->queue[last++] = other;
            }
        }
    }
    topology->next[node] = next;
    return true;
}

static int compare_ends(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    const uint32_t ends[2][2] = {{a[0], a[a_count - 1]}, {b[0], b[b_count - 1]}};
    return ends[0][0] != ends[1][0] ? (ends[0][0] < ends[1][0] ? -1 : 1)
                                    : (ends[0][1] > ends[1][1]) - (ends[0][1] < ends[1][1]);
}

static hk_status_t check_vias(const hk_topology_t *topology)
{
    const hk_model_t *model = topology->model;
    for (size_t i = 0; i < model->vias_count; i++) {
        const uint32_t *vertex = model->vertices + model->vias[i].first_vertex;
        for (size_t k = 0; k + 1 < model->vias[i].count; k++) {
            if (find_link(topology, vertex[k], vertex[k + 1]) == NO_LINK) {
                char what[96];
                (void)snprintf(what, sizeof what, "a route goes from %u to %u, where there is no edge", vertex[k],
                               vertex[k + 1]);
                return no_topology(model, what);
            }
        }
    }
    return HK_OK;
}

static hk_status_t open_graph(hk_topology_t *topology)
{
    const hk_model_t *model = topology->model;
    const uint64_t count = vertices_of(topology);
    topology->nodes = topology->size[GRAPH_NODES];
    topology->links = 2 * model->edges_count;
    topology->first_edge = calloc(count + 2, sizeof *topology->first_edge);
    topology->edge = calloc(2 * model->edges_count + 1, sizeof *topology->edge);
    topology->queue = calloc(count, sizeof *topology->queue);
    topology->next = calloc(topology->nodes, sizeof *topology->next);
    if (topology->first_edge == NULL || topology->edge == NULL || topology->queue == NULL || topology->next == NULL) {
        return HK_ERR_MEMORY;
    }
    uint32_t *first = topology->first_edge;
    for (size_t i = 0; i < model->edges_count; i++) {
        first[model->edges[i].a + 2]++;
        first[model->edges[i].b + 2]++;
    }
    for (uint64_t v = 2; v < count + 2; v++) {
        first[v] += first[v - 1];
    }
    for (uint32_t i = 0; i < model->edges_count; i++) {
        topology->edge[first[model->edges[i].a + 1]++] = i;
        topology->edge[first[model->edges[i].b + 1]++] = i;
    }
    if (!find_ways(topology, 0)) {
        return HK_ERR_MEMORY;
    }
    for (uint64_t node = 1; node < topology->nodes; node++) {
        if (topology->next[0][node] == NO_LINK) {
            char what[96];
            (void)snprintf(what, sizeof what, "there is no route from node 0 to node %llu", (unsigned long long)node);
            return no_topology(model, what);
        }
    }
    return check_vias(topology);
}

static void add_graph_link(hk_topology_t *topology, uint32_t link)
{
    const hk_model_t *model = topology->model;
    add_hop(topology, link, model->edges[link / 2].has_own ? HK_MODEL_LEVELS_MAX + 1 + link / 2 : 0);
    topology->route.switches += far_end(model, link) >= topology->nodes;
}

static void route_graph(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    const hk_model_t *model = topology->model;
    const uint32_t ends[2] = {from, to};
    for (size_t i = 0; i < model->vias_count; i++) {
        const uint32_t *vertex = model->vertices + model->vias[i].first_vertex;
        if (compare_ends(vertex, model->vias[i].count, ends, 2) == 0) {
            for (size_t k = 0; k + 1 < model->vias[i].count; k++) {
                add_graph_link(topology, find_link(topology, vertex[k], vertex[k + 1]));
            }
            return;
        }
    }
    if (topology->next[to] == NULL && !find_ways(topology, to)) {
        abort(); /* no memory for a table that is smaller than those at the start */
    }
    for (uint32_t at = from; at != to;) {
        const uint32_t link = topology->next[to][at];
        add_graph_link(topology, link);
        at = far_end(model, link);
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static uint64_t longest_route(const hk_topology_t *topology)
{
    uint64_t longest = 5; /* of a dragonfly */
    switch (topology->shape) {
    case HK_SHAPE_SWITCH:
    case HK_SHAPE_TREE:
        longest = 2 * topology->levels;
        break;
    case HK_SHAPE_TORUS:
        longest = 0;
        for (size_t d = 0; d < topology->levels; d++) {
            longest += topology->size[d] / 2;
        }
        break;
    case HK_SHAPE_GRAPH:
        longest = vertices_of(topology);
        for (size_t i = 0; i < topology->model->vias_count; i++) {
            longest = topology->model->vias[i].count > longest ? topology->model->vias[i].count : longest;
        }
        break;
    case HK_SHAPE_DRAGONFLY:
        break;
    }
    return longest + 1;
}

/* Kinds 0 to LEVELS_MAX are the levels; of a graph the edges follow. */
static hk_status_t open_kinds(hk_topology_t *topology)
{
    const hk_model_t *model = topology->model;
    topology->kinds = HK_MODEL_LEVELS_MAX + 1 + model->edges_count;
    topology->kind = calloc(topology->kinds, sizeof *topology->kind);
    topology->route.hop = calloc(longest_route(topology), sizeof *topology->route.hop);
    if (topology->kind == NULL || topology->route.hop == NULL) {
        return HK_ERR_MEMORY;
    }
    for (size_t i = 0; i <= HK_MODEL_LEVELS_MAX; i++) {
        topology->kind[i] = model->level[model->has_level[i] ? i : 0];
    }
    for (size_t i = 0; i < model->edges_count; i++) {
        topology->kind[HK_MODEL_LEVELS_MAX + 1 + i] = model->edges[i].own;
    }
    return HK_OK;
}

hk_status_t hk_topology_open(const hk_model_t *model, uint64_t nodes, hk_topology_t **topology_p)
{
    hk_topology_t *topology = calloc(1, sizeof *topology);
    hk_status_t status = HK_OK;
    if (topology == NULL) {
        return HK_ERR_MEMORY;
    }
    topology->model = model;
    topology->shape = model->shape;
    topology->levels = model->levels;
    memcpy(topology->size, model->size, sizeof topology->size);
    memcpy(topology->width, model->width, sizeof topology->width);
    switch (model->shape) {
    case HK_SHAPE_SWITCH:
        topology->levels = 1;
        topology->size[0] = nodes;
        topology->width[0] = 1;
        status = open_tree(topology);
        break;
    case HK_SHAPE_TREE:
        status = open_tree(topology);
        break;
    case HK_SHAPE_TORUS:
        status = open_torus(topology);
        break;
    case HK_SHAPE_DRAGONFLY:
        status = open_dragonfly(topology);
        break;
    case HK_SHAPE_GRAPH:
        status = open_graph(topology);
        break;
    }
    status = status == HK_OK ? open_kinds(topology) : status;
    if (status == HK_OK && topology->nodes < nodes) {
        char what[96];
        (void)snprintf(what, sizeof what, "a rank sits on node %llu, but there are %llu nodes",
                       (unsigned long long)nodes - 1, (unsigned long long)topology->nodes);
        status = no_topology(model, what);
    }
    if (status == HK_ERR_MEMORY) {
        fprintf(stderr, "hockney worker: model %s: no memory for its topology\n", model->name);
    }
    if (status != HK_OK) {
        hk_topology_close(topology);
        return status;
    }
    *topology_p = topology;
    return HK_OK;
}

void hk_topology_close(hk_topology_t *topology)
{
    for (uint64_t node = 0; topology->next != NULL && node < topology->nodes; node++) {
        free(topology->next[node]);
    }
    free(topology->next);
    free(topology->first_edge);
    free(topology->edge);
    free(topology->queue);
    free(topology->place);
    free(topology->kind);
    free(topology->route.hop);
    free(topology);
}

size_t hk_topology_links(const hk_topology_t *topology)
{
    return topology->links;
}

const hk_level_t *hk_topology_kinds(const hk_topology_t *topology, size_t *count_p)
{
    *count_p = topology->kinds;
    return topology->kind;
}

uint32_t hk_topology_switches(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    switch (topology->shape) {
    case HK_SHAPE_SWITCH:
        return 1;
    case HK_SHAPE_TREE:
        return (uint32_t)(2 * meeting_level(topology, from, to) - 1);
    case HK_SHAPE_TORUS:
        return torus_distance(topology, from, to) + 1;
    case HK_SHAPE_DRAGONFLY:
    case HK_SHAPE_GRAPH:
        break;
    }
    return hk_topology_route(topology, from, to)->switches;
}

const hk_route_t *hk_topology_route(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    hk_route_t *route = &topology->route;
    route->count = 0;
    route->switches = route->turns = 0;
    switch (topology->shape) {
    case HK_SHAPE_SWITCH:
    case HK_SHAPE_TREE:
        route_tree(topology, from, to);
        break;
    case HK_SHAPE_TORUS:
        route_torus(topology, from, to);
        break;
    case HK_SHAPE_DRAGONFLY:
        route_dragonfly(topology, from, to);
        break;
    case HK_SHAPE_GRAPH:
        route_graph(topology, from, to);
        break;
    }
    return route;
}
