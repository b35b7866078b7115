/* Opens, resets and closes a simulated machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "tcp.h"

static void happen(hk_sim_t *sim, hk_event_kind_t kind, void *what)
{
    if (kind <= HK_EVENT_WRITE) {
        hk_message_event(sim, kind, what);
    } else if (kind >= HK_EVENT_SEGMENT) {
        hk_tcp_event(sim, kind, what);
    } else {
        hk_cpu_event(sim, kind, what);
    }
}

static uint32_t node_of(const hk_model_t *model, int rank)
{
    return (size_t)rank < model->places_count ? model->places[rank]
                                              : (uint32_t)((uint64_t)rank / model->ranks_per_node);
}

static hk_status_t open_links(hk_sim_t *sim)
{
    size_t kinds = 0;
    const hk_level_t *kind = hk_topology_kinds(sim->topology, &kinds);
    sim->link_free_ps = calloc(hk_topology_links(sim->topology) + 1, sizeof *sim->link_free_ps);
    sim->kind_ps_per_byte = calloc(kinds, sizeof *sim->kind_ps_per_byte);
    sim->kind_latency_ps = calloc(kinds, sizeof *sim->kind_latency_ps);
    if (sim->link_free_ps == NULL || sim->kind_ps_per_byte == NULL || sim->kind_latency_ps == NULL) {
        return HK_ERR_MEMORY;
    }
    for (size_t i = 0; i < kinds; i++) {
        sim->kind_ps_per_byte[i] = kind[i].bytes_per_s > 0 ? 1e12 / kind[i].bytes_per_s : 0;
        sim->kind_latency_ps[i] = hk_ps(kind[i].latency_ns);
    }
    sim->turn_ps = hk_ps(sim->model->turn_ns);
    sim->slice_ps = hk_ps(sim->model->slice_ns);
    return HK_OK;
}

/* The ranks of a node with fewer CPUs than ranks take turns. */
static hk_status_t open_cpus(hk_sim_t *sim)
{
    const uint32_t cpus = (uint32_t)sim->model->node_cpus;
    uint32_t *ranks = calloc(sim->nodes_count, sizeof *ranks);
    bool is_shared = false;
    if (ranks == NULL) {
        return HK_ERR_MEMORY;
    }
    for (int i = 0; i < sim->size; i++) {
        is_shared = ++ranks[sim->ranks[i].node] > cpus || is_shared;
    }
    sim->cpus = is_shared ? calloc(sim->nodes_count, sizeof *sim->cpus) : NULL;
    for (int i = 0; i < sim->size; i++) {
        hk_sim_rank_t *rank = &sim->ranks[i];
        const uint32_t here = ranks[rank->node];
        rank->cpu = here > cpus && sim->cpus != NULL ? &sim->cpus[rank->node] : NULL;
        rank->cpus_left = here > cpus ? 0 : cpus - here + 1;
    }
    free(ranks);
    return is_shared && sim->cpus == NULL ? HK_ERR_MEMORY : HK_OK;
}

static hk_status_t open_ranks(hk_sim_t *sim)
{
    const hk_model_t *model = sim->model;
    sim->ranks = calloc((size_t)sim->size, sizeof *sim->ranks);
    sim->nodes = calloc(sim->nodes_count, sizeof *sim->nodes);
    sim->costs = calloc(model->classes_count, sizeof(void *));
    if (sim->ranks == NULL || sim->nodes == NULL || sim->costs == NULL) {
        return HK_ERR_MEMORY;
    }
    for (int i = 0; i < sim->size; i++) {
        sim->ranks[i] = (hk_sim_rank_t){
            .base = {.tp = &sim->tp, .rank = i, .size = sim->size}, .sim = sim, .node = node_of(model, i)};
    }
    for (unsigned operation = 0; operation < HK_TRAFFICS; operation++) {
        sim->only_class[operation] = -1;
        for (size_t i = model->classes_count; i-- > 0;) {
            const hk_class_t *class = &model->classes[i];
            if (class->operation == operation) {
                const bool is_for_all =
                    !class->same_node && class->switches_min == 0 && class->switches_max == UINT32_MAX;
                sim->only_class[operation] = is_for_all ? (int)i : -1;
            }
        }
    }
    return HK_OK;
}

hk_status_t hk_sim_open(const hk_model_t *model, int size, hk_sim_t **sim_p)
{
    if (model->ranks_max > 0 && (uint64_t)size > model->ranks_max) {
        fprintf(stderr, "hockney worker: model %s: it allows at most %llu ranks, not %d\n", model->name,
                (unsigned long long)model->ranks_max, size);
        return HK_ERR_ARGUMENT;
    }
    if (model->places_count > 0 && (size_t)size > model->places_count) {
        fprintf(stderr, "hockney worker: model %s: it places %zu ranks, not %d\n", model->name, model->places_count,
                size);
        return HK_ERR_ARGUMENT;
    }
    hk_sim_t *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return HK_ERR_MEMORY;
    }
    sim->model = model;
    sim->happen = happen;
    sim->size = size;
    for (int i = 0; i < size; i++) {
        const size_t node = node_of(model, i);
        sim->nodes_count = node >= sim->nodes_count ? node + 1 : sim->nodes_count;
    }
    hk_status_t status = hk_topology_open(model, sim->nodes_count, &sim->topology);
    status = status == HK_OK ? open_links(sim) : status;
    status = status == HK_OK ? open_ranks(sim) : status;
    status = status == HK_OK ? open_cpus(sim) : status;
    status = status == HK_OK && model->has_tcp ? hk_tcp_open(sim) : status;
    status = status == HK_OK ? hk_stacks_open((size_t)size, &sim->stacks) : status;
    if (status == HK_ERR_MEMORY) {
        fprintf(stderr, "hockney worker: no memory for %d ranks\n", size);
    }
    if (status != HK_OK) {
        hk_sim_close(sim);
        return status;
    }
    *sim_p = sim;
    return HK_OK;
}

void hk_sim_close(hk_sim_t *sim)
{
    for (size_t i = 0; sim->costs != NULL && i < sim->model->classes_count; i++) {
        while (sim->costs[i] != NULL) {
            hk_costs_t *costs = sim->costs[i];
            sim->costs[i] = costs->next;
            free(costs);
        }
    }
    hk_messages_free(sim);
    hk_tcp_close(sim);
    if (sim->topology != NULL) {
        hk_topology_close(sim->topology);
    }
    hk_sim_close_streams(sim);
    hk_stacks_close(&sim->stacks);
    hk_queue_free(&sim->queue);
    free(sim->channels.place);
    free(sim->link_free_ps);
    free(sim->kind_ps_per_byte);
    free(sim->kind_latency_ps);
    free(sim->costs);
    free(sim->cpus);
    free(sim->nodes);
    free(sim->ranks);
    free(sim);
}

void hk_sim_reset(hk_sim_t *sim, uint64_t seed)
{
    for (int i = 0; i < sim->size; i++) {
        hk_sim_rank_t *rank = &sim->ranks[i];
        *rank = (hk_sim_rank_t){
            .base = rank->base, .sim = sim, .node = rank->node, .cpu = rank->cpu, .cpus_left = rank->cpus_left};
        hk_sim_seed(rank, seed);
    }
    for (size_t i = 0; sim->cpus != NULL && i < sim->nodes_count; i++) {
        sim->cpus[i] = (hk_cpu_t){.idle = (uint32_t)sim->model->node_cpus};
    }
    memset(sim->nodes, 0, sim->nodes_count * sizeof *sim->nodes);
    memset(sim->link_free_ps, 0, hk_topology_links(sim->topology) * sizeof *sim->link_free_ps);
    hk_queue_clear(&sim->queue);
    hk_tcp_reset(sim);
    free(sim->channels.place);
    sim->channels = (hk_channels_t){0};
    hk_messages_drop_all(sim);
    hk_sim_close_streams(sim); /* their times are of the last point */
    sim->now_ps = 0;
    sim->first_ready = NULL;
    sim->no_memory = false;
    sim->has_misfit = false;
    sim->in_barrier = 0;
    sim->barrier_ps = 0;
    sim->messages = 0;
}
