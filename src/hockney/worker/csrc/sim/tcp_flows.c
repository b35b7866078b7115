/* Memory of tcp.h: connections by pairs of ranks, and segments, which are free again when the machine begins anew. */
#include "tcp_flows.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_FLOWS = 256 };

hk_status_t hk_tcp_open(hk_sim_t *sim)
{
    sim->tcp = calloc(1, sizeof *sim->tcp);
    if (sim->tcp == NULL) {
        return HK_ERR_MEMORY;
    }
    const size_t links = hk_topology_links(sim->topology) + 1;
    sim->tcp->counts = calloc((size_t)sim->size, sizeof *sim->tcp->counts);
    sim->tcp->port = calloc(links, sizeof *sim->tcp->port);
    sim->tcp->is_port = calloc(links, sizeof *sim->tcp->is_port);
    return sim->tcp->counts != NULL && sim->tcp->port != NULL && sim->tcp->is_port != NULL ? HK_OK : HK_ERR_MEMORY;
}

void hk_tcp_reset(hk_sim_t *sim)
{
    hk_tcp_t *tcp = sim->tcp;
    for (size_t i = 0; tcp != NULL && i < tcp->room; i++) {
        if (tcp->flow[i] != NULL) {
            free(tcp->flow[i]->route.hop);
            free(tcp->flow[i]);
        }
    }
    while (tcp != NULL && tcp->blocks != NULL) {
        hk_tcp_block_t *block = tcp->blocks;
        tcp->blocks = block->next;
        free(block);
    }
    if (tcp != NULL) {
        free(tcp->flow);
        tcp->flow = NULL;
        tcp->room = tcp->used = tcp->ports = 0;
        tcp->state = 0;
        tcp->free_segments = NULL;
        memset(tcp->counts, 0, (size_t)sim->size * sizeof *tcp->counts);
        memset(tcp->is_port, 0, hk_topology_links(sim->topology) * sizeof *tcp->is_port);
    }
}

void hk_tcp_close(hk_sim_t *sim)
{
    hk_tcp_t *tcp = sim->tcp;
    if (tcp != NULL && tcp->counts != NULL && tcp->is_port != NULL) {
        hk_tcp_reset(sim);
    }
    if (tcp != NULL) {
        free(tcp->counts);
        free(tcp->port);
        free(tcp->is_port);
        free(tcp);
        sim->tcp = NULL;
    }
}

void hk_tcp_segment_drop(hk_tcp_t *tcp, hk_tcp_segment_t *segment)
{
    segment->next = tcp->free_segments;
    tcp->free_segments = segment;
}

hk_tcp_segment_t *hk_tcp_segment_new(hk_sim_t *sim, const hk_tcp_segment_t *content)
{
    hk_tcp_t *tcp = sim->tcp;
    if (tcp->free_segments == NULL) {
        hk_tcp_block_t *block = malloc(sizeof *block);
        if (block == NULL) {
            sim->no_memory = true;
            return NULL;
        }
        block->next = tcp->blocks;
        tcp->blocks = block;
        for (size_t i = HK_TCP_BLOCK_SEGMENTS; i-- > 0;) {
            hk_tcp_segment_drop(tcp, &block->segment[i]);
        }
    }
    hk_tcp_segment_t *segment = tcp->free_segments;
    tcp->free_segments = segment->next;
    *segment = *content;
    return segment;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static hk_flow_t **tcp_place_of(hk_flow_t **flow, size_t room, uint64_t key)
{
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (room - 1);
    while (flow[at] != NULL && flow[at]->key != key) {
        at = (at + 1) & (room - 1);
    }
    return &flow[at];
}

static bool tcp_has_room(hk_tcp_t *tcp)
{
    if (2 * (tcp->used + 1) <= tcp->room) {
        return true;
    }
    const size_t room = tcp->room > 0 ? 2 * tcp->room : FIRST_FLOWS;
    hk_flow_t **flow = calloc(room, sizeof(hk_flow_t *));
    for (size_t i = 0; flow != NULL && i < tcp->room; i++) {
        if (tcp->flow[i] != NULL) {
            *tcp_place_of(flow, room, tcp->flow[i]->key) = tcp->flow[i];
        }
    }
    if (flow != NULL) {
        free(tcp->flow);
        tcp->flow = flow;
        tcp->room = room;
    }
    return flow != NULL;
}

static hk_flow_t *tcp_new_flow(hk_sim_t *sim, uint64_t key, const hk_message_t *message)
{
    const hk_model_t *model = sim->model;
    const hk_route_t *route =
        hk_topology_route(sim->topology, sim->ranks[message->from].node, sim->ranks[message->to].node);
    hk_flow_t *flow = calloc(1, sizeof *flow);
    hk_hop_t *hop = calloc(route->count + 1, sizeof *hop);
    if (flow == NULL || hop == NULL) {
        free(flow);
        free(hop);
        return NULL;
    }
    *flow = (hk_flow_t){.key = key,
                        .from = message->from,
                        .to = message->to,
                        .route = *route,
                        .threshold = 1e18,
                        .window = (double)(model->tcp_initial_window * model->tcp_mss_bytes)};
    memcpy(hop, route->hop, route->count * sizeof *hop);
    flow->route.hop = hop;
    for (size_t i = 0; i < route->count; i++) {
        flow->back_ps += sim->kind_latency_ps[hop[i].kind];
        if (i > 0 && !sim->tcp->is_port[hop[i].link]) {
            sim->tcp->is_port[hop[i].link] = true;
            sim->tcp->port[sim->tcp->ports++] = hop[i];
        }
    }
    return flow;
}

hk_flow_t *hk_tcp_flow_of(hk_sim_t *sim, const hk_message_t *message)
{
    hk_tcp_t *tcp = sim->tcp;
    const uint64_t key = (uint64_t)message->from << 32 | message->to;
    if (!tcp_has_room(tcp)) {
        return NULL;
    }
    hk_flow_t **place = tcp_place_of(tcp->flow, tcp->room, key);
    if (*place == NULL) {
        *place = tcp_new_flow(sim, key, message);
        tcp->used += *place != NULL;
    }
    return *place;
}
