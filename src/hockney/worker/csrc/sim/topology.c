#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

hk_status_t hk_no_topology(const hk_model_t *model, const char *what)
{
    fprintf(stderr, "hockney worker: model %s: %s\n", model->name, what);
    return HK_ERR_ARGUMENT;
}

void hk_add_hop(hk_topology_t *topology, uint64_t link, size_t kind)
{
    const size_t own = kind > HK_MODEL_LEVELS_MAX || topology->model->has_level[kind] ? kind : 0;
    topology->route.hop[topology->route.count++] = (hk_hop_t){(uint32_t)link, (uint32_t)own};
}

/* Kinds 0 to LEVELS_MAX are levels; those of a graph's edges follow. */
static hk_status_t open_kinds(hk_topology_t *topology)
{
    const hk_model_t *model = topology->model;
    topology->kinds = HK_MODEL_LEVELS_MAX + 1 + model->edges_count;
    topology->kind = calloc(topology->kinds, sizeof *topology->kind);
    topology->route.hop = calloc(topology->shape->longest(topology) + 1, sizeof *topology->route.hop);
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
    static const hk_shape_hooks_t *const shapes[] = {[HK_SHAPE_SWITCH] = &hk_tree,
                                                     [HK_SHAPE_TREE] = &hk_tree,
                                                     [HK_SHAPE_TORUS] = &hk_torus,
                                                     [HK_SHAPE_DRAGONFLY] = &hk_dragonfly,
                                                     [HK_SHAPE_GRAPH] = &hk_graph};
    hk_topology_t *topology = calloc(1, sizeof *topology);
    if (topology == NULL) {
        return HK_ERR_MEMORY;
    }
    topology->model = model;
    topology->shape = shapes[model->shape];
    topology->levels = model->levels;
    memcpy(topology->size, model->size, sizeof topology->size);
    memcpy(topology->width, model->width, sizeof topology->width);
    if (model->shape == HK_SHAPE_SWITCH) { /* a tree of one level */
        topology->levels = 1;
        topology->size[0] = nodes;
        topology->width[0] = 1;
    }
    hk_status_t status = topology->shape->open(topology);
    status = status == HK_OK ? open_kinds(topology) : status;
    if (status == HK_OK && topology->nodes < nodes) {
        char what[96];
        (void)snprintf(what, sizeof what, "a rank is on node %llu, but there are %llu nodes",
                       (unsigned long long)nodes - 1, (unsigned long long)topology->nodes);
        status = hk_no_topology(model, what);
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
    return topology->shape->switches != NULL ? topology->shape->switches(topology, from, to)
                                             : hk_topology_route(topology, from, to)->switches;
}

const hk_route_t *hk_topology_route(hk_topology_t *topology, uint32_t from, uint32_t to)
{
    hk_route_t *route = &topology->route;
    route->count = 0;
    route->switches = route->turns = 0;
    topology->shape->route(topology, from, to);
    return route;
}
