/* The interface between topology.c and the shapes. */
#ifndef HK_SIM_SHAPES_H
#define HK_SIM_SHAPES_H

#include "topology.h"

struct hk_topology {
    const struct hk_shape_hooks *shape;
    size_t levels;
    uint64_t size[HK_MODEL_LEVELS_MAX], width[HK_MODEL_LEVELS_MAX];
    uint64_t nodes, links;
    hk_level_t *kind;
    size_t kinds;
    hk_route_t route;
    const hk_model_t *model;

    /* tree, per level: nodes below a switch, parallel switches, and the first link to the level */
    uint64_t below[HK_MODEL_LEVELS_MAX + 1], parallel[HK_MODEL_LEVELS_MAX + 1], first_link[HK_MODEL_LEVELS_MAX + 1];

    uint32_t *place; /* torus: coordinates of each node */

    /* graph: the edges at vertex v start at edge[first_edge[v]]; next[node], if known, holds for each vertex the
     * link towards the node */
    uint32_t *first_edge, *edge, *queue;
    uint32_t **next;
};

/* A shape. `route` adds the hops between two different nodes, and sets the switches and turns. */
typedef struct hk_shape_hooks {
    hk_status_t (*open)(hk_topology_t *topology);
    void (*route)(hk_topology_t *topology, uint32_t from, uint32_t to);
    uint32_t (*switches)(const hk_topology_t *topology, uint32_t from, uint32_t to); /* NULL: those of the route */
    uint64_t (*longest)(const hk_topology_t *topology);                              /* maximum hops of a route */
} hk_shape_hooks_t;

extern const hk_shape_hooks_t hk_tree, hk_torus, hk_dragonfly, hk_graph;

/* HK_ERR_ARGUMENT, with this sentence in the log. */
hk_status_t hk_no_topology(const hk_model_t *model, const char *what);

/* Append a link to the route. kind: its level, or for a graph's edges a number above all levels. */
void hk_add_hop(hk_topology_t *topology, uint64_t link, size_t kind);

#endif
