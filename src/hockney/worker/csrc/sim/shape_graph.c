/* Graphs with explicit edges. */
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NO_LINK = UINT32_MAX;

enum { SWITCHES, GRAPH_NODES };

static uint64_t vertices_of(const hk_topology_t *topology)
{
    return topology->size[SWITCHES] + topology->size[GRAPH_NODES];
}

/* The link that leaves a vertex over an edge. */
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

/* Compute for each vertex the link towards `node`, breadth first. Of equally short routes the first in the order of
 * edges wins. */
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
                return hk_no_topology(model, what);
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
            return hk_no_topology(model, what);
        }
    }
    return check_vias(topology);
}

static void add_graph_link(hk_topology_t *topology, uint32_t link)
{
    const hk_model_t *model = topology->model;
    hk_add_hop(topology, link, model->edges[link / 2].has_own ? HK_MODEL_LEVELS_MAX + 1 + link / 2 : 0);
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
        abort(); /* no memory for a table smaller than those allocated at the start */
    }
    for (uint32_t at = from; at != to;) {
        const uint32_t link = topology->next[to][at];
        add_graph_link(topology, link);
        at = far_end(model, link);
    }
}

static uint64_t graph_longest(const hk_topology_t *topology)
{
    uint64_t longest = vertices_of(topology);
    for (size_t i = 0; i < topology->model->vias_count; i++) {
        longest = topology->model->vias[i].count > longest ? topology->model->vias[i].count : longest;
    }
    return longest;
}

const hk_shape_hooks_t hk_graph = {open_graph, route_graph, NULL, graph_longest};
