/* The topology of a machine: the links on the route between two nodes. */
#ifndef HK_SIM_TOPOLOGY_H
#define HK_SIM_TOPOLOGY_H

#include "model.h"

/* A link in one direction; `kind` is its index among the kinds of links. */
typedef struct hk_hop {
    uint32_t link, kind;
} hk_hop_t;

typedef struct hk_route {
    hk_hop_t *hop;
    size_t count;
    uint32_t switches, turns;
} hk_route_t;

typedef struct hk_topology hk_topology_t;

/* For nodes 0 to nodes - 1. HK_ERR_ARGUMENT, with one sentence in the log: the topology does not have these nodes,
 * or two are not connected. */
hk_status_t hk_topology_open(const hk_model_t *model, uint64_t nodes, hk_topology_t **topology_p);
void hk_topology_close(hk_topology_t *topology);

size_t hk_topology_links(const hk_topology_t *topology);

/* All kinds of links, and their number. */
const hk_level_t *hk_topology_kinds(const hk_topology_t *topology, size_t *count_p);

/* The number of switches between two different nodes. */
uint32_t hk_topology_switches(hk_topology_t *topology, uint32_t from, uint32_t to);

/* The route between two different nodes; valid until the next call. */
const hk_route_t *hk_topology_route(hk_topology_t *topology, uint32_t from, uint32_t to);

#endif
