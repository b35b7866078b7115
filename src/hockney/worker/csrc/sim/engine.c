#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

_Static_assert(sizeof(hk_sim_req_t) <= sizeof(hk_req_t), "a request of the simulation must fit");

struct hk_block {
    struct hk_block *next;
    hk_message_t message[256];
};

/* ---- ranks in turn ----------------------------------------------------------------------------------------------- */

void hk_sim_wake(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    rank->wait = HK_WAIT_NOTHING;
    if (rank->is_ready) {
        return;
    }
    rank->is_ready = true;
    __builtin_prefetch(rank->place); /* others go on before it */
    rank->next_ready = NULL;
    if (sim->first_ready == NULL) {
        sim->first_ready = rank;
    } else {
        sim->last_ready->next_ready = rank;
    }
    sim->last_ready = rank;
}

/* Let happen what is next until a rank can go on; NULL: none ever can. */
static hk_sim_rank_t *next_rank(hk_sim_t *sim)
{
    while (sim->first_ready == NULL) {
        if (sim->queue.count == 0 || sim->queue.failed || sim->no_memory) {
            return NULL;
        }
        const hk_event_t event = hk_queue_take(&sim->queue);
        const hk_event_kind_t kind = (hk_event_kind_t)hk_event_kind(&event);
        sim->now_ps = event.at_ps;
        if (kind == HK_EVENT_GO_ON) {
            hk_sim_wake(event.what);
        } else if (kind <= HK_EVENT_WRITE) {
            hk_message_event(sim, kind, event.what);
        } else {
            hk_cpu_event(sim, kind, event.what);
        }
    }
    hk_sim_rank_t *rank = sim->first_ready;
    sim->first_ready = rank->next_ready;
    rank->is_ready = false;
    return rank;
}

/* While some have not begun, the others leave it to main to begin them. */
static void give_way(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    hk_sim_rank_t *next = sim->is_starting ? NULL : next_rank(sim);
    if (next != rank) {
        hk_switch(&rank->place, next != NULL ? next->place : sim->main);
    }
}

void hk_sim_wait(hk_sim_rank_t *rank, hk_wait_t wait, int peer)
{
    rank->wait = wait;
    rank->wait_peer = (uint32_t)peer;
    give_way(rank);
}

void hk_sim_step(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    rank->ahead = 0;
    if (hk_sim_is_next(rank)) {
        sim->now_ps = rank->now_ps;
    } else {
        hk_queue_put(&sim->queue, rank->now_ps, HK_EVENT_GO_ON, rank);
        give_way(rank);
    }
}

static void run_rank(void *arg)
{
    hk_sim_rank_t *rank = arg;
    hk_sim_t *sim = rank->sim;
    sim->body(rank, sim->arg);
    rank->is_done = true;
    sim->live--;
    give_way(rank);
}

/* "rank 0 waits for a message from rank 1". */
static size_t say_wait(const hk_sim_rank_t *rank, char *why, size_t len)
{
    static const char *const words[] = {"can go on",
                                        "waits for a message from rank %u",
                                        "waits for rank %u to receive",
                                        "waits for its messages",
                                        "waits in a barrier",
                                        "waits for a word in its memory",
                                        "waits for a CPU",
                                        "waits for its puts",
                                        "waits for its stream with rank %u"};
    char text[64];
    (void)snprintf(text, sizeof text, words[rank->wait], rank->wait_peer);
    const int said = snprintf(why, len, "rank %d %s", rank->base.rank, text);
    return said < 0 ? 0 : (size_t)said < len ? (size_t)said : len - 1;
}

static void say_deadlock(const hk_sim_t *sim, char *why, size_t len)
{
    enum { NAMED = 5 };
    if (sim->queue.failed || sim->no_memory) {
        (void)snprintf(why, len, "no memory for the messages under way");
        return;
    }
    size_t at = (size_t)snprintf(why, len, "deadlock: ");
    int named = 0;
    for (int i = 0; i < sim->size && named < NAMED; i++) {
        if (!sim->ranks[i].is_done) {
            at += (size_t)snprintf(why + at, len - at, "%s", named > 0 ? ", " : "");
            at += say_wait(&sim->ranks[i], why + at, len - at);
            named++;
        }
    }
    if (sim->live > named) {
        (void)snprintf(why + at, len - at, ", and %d more ranks wait", sim->live - named);
    }
}

bool hk_sim_run(hk_sim_t *sim, void (*body)(hk_sim_rank_t *rank, void *arg), void *arg, char *why, size_t len)
{
    uint64_t now_ps = sim->now_ps;
    for (int i = 0; i < sim->size; i++) {
        now_ps = sim->ranks[i].now_ps > now_ps ? sim->ranks[i].now_ps : now_ps;
    }
    sim->body = body;
    sim->arg = arg;
    sim->live = sim->size;
    sim->is_starting = true;
    for (int i = 0; i < sim->size; i++) {
        sim->ranks[i].now_ps = now_ps;
        sim->ranks[i].is_done = false;
    }
    for (int i = 0; i < sim->size; i++) {
        hk_switch_new(&sim->main, &sim->stacks, (size_t)i, run_rank, &sim->ranks[i]);
    }
    sim->is_starting = false;
    const hk_sim_rank_t *first = next_rank(sim);
    if (first != NULL) {
        hk_switch(&sim->main, first->place);
    }
    if (sim->live > 0) {
        say_deadlock(sim, why, len);
    }
    return sim->live == 0;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood 2014), from 0 to 1 without either. */
static double draw(uint64_t *state)
{
    uint64_t value = *state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    value ^= value >> 31;
    return ((double)(value >> 11) + 0.5) / 9007199254740992.0;
}

uint64_t hk_sim_noisy(hk_sim_rank_t *rank, uint64_t cost_ps)
{
    const hk_model_t *model = rank->sim->model;
    if (model->noise == HK_NOISE_NONE || cost_ps == 0) {
        return cost_ps;
    }
    if (model->noise == HK_NOISE_EXPONENTIAL) {
        return cost_ps + hk_ps(-model->noise_amount * log(draw(&rank->random)));
    }
    const double pi = 3.14159265358979323846;
    const double radius = sqrt(-2.0 * log(draw(&rank->random)));
    const double normal = radius * cos(2.0 * pi * draw(&rank->random));
    return (uint64_t)((double)cost_ps * exp(model->noise_amount * normal) + 0.5);
}

uint64_t hk_sim_cpu_cost(hk_sim_rank_t *rank, uint64_t cost_ps)
{
    return hk_sim_noisy(rank, hk_sim_at_node(rank->sim, rank->node, cost_ps));
}

void hk_sim_barrier(hk_sim_rank_t *rank)
{
    hk_sim_t *sim = rank->sim;
    sim->barrier_ps = rank->now_ps > sim->barrier_ps ? rank->now_ps : sim->barrier_ps;
    sim->in_barrier++;
    if (sim->in_barrier < sim->size) {
        hk_sim_wait(rank, HK_WAIT_BARRIER, 0);
        return;
    }
    int rounds = 0;
    while (((int64_t)1 << rounds) < sim->size) {
        rounds++;
    }
    const uint64_t end_ps =
        sim->barrier_ps + hk_ps(sim->model->barrier_fixed_ns + rounds * sim->model->barrier_per_round_ns);
    sim->in_barrier = 0;
    sim->barrier_ps = 0;
    for (int i = 0; i < sim->size; i++) {
        sim->ranks[i].now_ps = end_ps;
        if (&sim->ranks[i] != rank) {
            hk_sim_wake(&sim->ranks[i]);
        }
    }
}

/* ---- costs ------------------------------------------------------------------------------------------------------- */

static int find_class(hk_sim_t *sim, hk_operation_t operation, uint32_t from, uint32_t to)
{
    const hk_model_t *model = sim->model;
    const bool same_node = from == to;
    const uint32_t switches = same_node ? 0 : hk_topology_switches(sim->topology, from, to);
    for (size_t i = 0; i < model->classes_count; i++) {
        const hk_class_t *class = &model->classes[i];
        if (class->operation == operation && (!class->same_node || same_node) && switches >= class->switches_min &&
            switches <= class->switches_max) {
            return (int)i;
        }
    }
    return 0; /* a model has a class for every pair */
}

static uint64_t cost_of(const hk_line_t *line, uint64_t bytes, uint64_t packet_bytes)
{
    const double packets = packet_bytes == 0 ? 0.0 : bytes == 0 ? 1.0 : ceil((double)bytes / (double)packet_bytes);
    return hk_ps(line->fixed_ns + line->per_byte_ns * (double)bytes + line->per_packet_ns * packets);
}

static hk_costs_t *make_costs(hk_sim_t *sim, int class, uint64_t bytes)
{
    const hk_segment_t *segment = &sim->model->segments[sim->model->classes[class].first_segment];
    while (segment->up_to_bytes < bytes) {
        segment++;
    }
    hk_costs_t *costs = calloc(1, sizeof *costs);
    if (costs == NULL) {
        return NULL;
    }
    costs->bytes = bytes;
    costs->protocol = segment->protocol;
    for (int k = 0; k < HK_COSTS; k++) {
        costs->ps[k] = cost_of(&segment->cost[k], bytes, segment->packet_bytes);
    }
    const uint64_t first_ps = hk_ps(segment->cost[HK_COST_REST].per_packet_ns);
    costs->ps[HK_COST_REST] -= costs->ps[HK_COST_REST] > first_ps ? first_ps : costs->ps[HK_COST_REST];
    costs->ps[HK_COST_BOTH] += costs->ps[HK_COST_BOTH] > 0 ? 0 : costs->ps[HK_COST_OUT];
    return costs;
}

const hk_costs_t *hk_sim_costs(hk_sim_t *sim, hk_operation_t operation, uint32_t from, uint32_t to, uint64_t bytes)
{
    const int only = sim->only_class[operation];
    const int class = only >= 0 ? only : find_class(sim, operation, sim->ranks[from].node, sim->ranks[to].node);
    hk_costs_t **first = &sim->costs[class];
    hk_costs_t **at = first;
    while (*at != NULL && (*at)->bytes != bytes) {
        at = &(*at)->next;
    }
    hk_costs_t *costs = *at;
    if (costs == NULL) {
        costs = make_costs(sim, class, bytes);
        if (costs == NULL) {
            sim->no_memory = true;
            return NULL;
        }
    } else if (at != first) {
        *at = costs->next;
    } else {
        return costs;
    }
    costs->next = *first;
    *first = costs;
    return costs;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

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

/* Ranks of a node that has fewer CPUs take turns. */
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
        sim->ranks[i] = (hk_sim_rank_t){.base = {&sim->tp, i, sim->size}, .sim = sim, .node = node_of(model, i)};
    }
    for (unsigned operation = 0; operation < HK_OPERATIONS; operation++) {
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
        fprintf(stderr, "hockney worker: model %s: it has room for %llu ranks, not for %d\n", model->name,
                (unsigned long long)model->ranks_max, size);
        return HK_ERR_ARGUMENT;
    }
    if (model->places_count > 0 && (size_t)size > model->places_count) {
        fprintf(stderr, "hockney worker: model %s: it has places for %zu ranks, not for %d\n", model->name,
                model->places_count, size);
        return HK_ERR_ARGUMENT;
    }
    hk_sim_t *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return HK_ERR_MEMORY;
    }
    sim->model = model;
    sim->size = size;
    for (int i = 0; i < size; i++) {
        const size_t node = node_of(model, i);
        sim->nodes_count = node >= sim->nodes_count ? node + 1 : sim->nodes_count;
    }
    hk_status_t status = hk_topology_open(model, sim->nodes_count, &sim->topology);
    status = status == HK_OK ? open_links(sim) : status;
    status = status == HK_OK ? open_ranks(sim) : status;
    status = status == HK_OK ? open_cpus(sim) : status;
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
    while (sim->blocks != NULL) {
        struct hk_block *block = sim->blocks;
        sim->blocks = block->next;
        free(block);
    }
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

static void free_all_messages(hk_sim_t *sim)
{
    sim->free_messages = NULL;
    for (struct hk_block *block = sim->blocks; block != NULL; block = block->next) {
        for (size_t i = 0; i < sizeof block->message / sizeof block->message[0]; i++) {
            block->message[i].next = sim->free_messages;
            sim->free_messages = &block->message[i];
        }
    }
}

hk_message_t *hk_message_new(hk_sim_t *sim)
{
    if (sim->free_messages == NULL) {
        struct hk_block *block = malloc(sizeof *block);
        if (block == NULL) {
            sim->no_memory = true;
            return NULL;
        }
        block->next = sim->blocks;
        sim->blocks = block;
        for (size_t i = sizeof block->message / sizeof block->message[0]; i-- > 0;) {
            block->message[i].next = sim->free_messages;
            sim->free_messages = &block->message[i];
        }
    }
    hk_message_t *message = sim->free_messages;
    sim->free_messages = message->next;
    return message;
}

void hk_sim_reset(hk_sim_t *sim, uint64_t seed)
{
    for (int i = 0; i < sim->size; i++) {
        hk_sim_rank_t *rank = &sim->ranks[i];
        *rank = (hk_sim_rank_t){
            .base = rank->base, .sim = sim, .node = rank->node, .cpu = rank->cpu, .cpus_left = rank->cpus_left};
        rank->random = (seed + 1) * 0xd1342543de82ef95u + (uint64_t)i * 0xa0761d6478bd642fu;
        (void)draw(&rank->random);
    }
    for (size_t i = 0; sim->cpus != NULL && i < sim->nodes_count; i++) {
        sim->cpus[i] = (hk_cpu_t){.idle = (uint32_t)sim->model->node_cpus};
    }
    memset(sim->nodes, 0, sim->nodes_count * sizeof *sim->nodes);
    memset(sim->link_free_ps, 0, hk_topology_links(sim->topology) * sizeof *sim->link_free_ps);
    hk_queue_clear(&sim->queue);
    free(sim->channels.place);
    sim->channels = (hk_channels_t){0};
    free_all_messages(sim);
    sim->now_ps = 0;
    sim->first_ready = NULL;
    sim->no_memory = false;
    sim->in_barrier = 0;
    sim->barrier_ps = 0;
    sim->messages = 0;
}
