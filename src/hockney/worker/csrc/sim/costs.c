/* Costs from the model, and their noise. */
#include <math.h>
#include <stdlib.h>

#include "../mix.h"
#include "events.h"

/* A number between 0 and 1, both excluded. */
static double draw(uint64_t *state)
{
    return ((double)(hk_mix_next(state) >> 11) + 0.5) / 9007199254740992.0;
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
    return hk_whole_ps((double)cost_ps * exp(model->noise_amount * normal));
}

uint64_t hk_sim_cpu_cost(hk_sim_rank_t *rank, uint64_t cost_ps)
{
    return hk_sim_noisy(rank, hk_sim_at_node(rank->sim, rank->node, cost_ps));
}

void hk_sim_seed(hk_sim_rank_t *rank, uint64_t seed)
{
    rank->random = (seed + 1) * 0xd1342543de82ef95u + (uint64_t)rank->base.rank * 0xa0761d6478bd642fu;
    (void)draw(&rank->random);
}

static int find_class(hk_sim_t *sim, hk_traffic_t operation, uint32_t from, uint32_t to)
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

const hk_costs_t *hk_sim_costs(hk_sim_t *sim, hk_traffic_t operation, uint32_t from, uint32_t to, uint64_t bytes)
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
