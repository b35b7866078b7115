/* See tcp.h. */
#include "tcp_flows.h"

#include "../mix.h"
#include "events.h"

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* How long a port needs to send all that it holds. */
static uint64_t tcp_backlog_ps(const hk_sim_t *sim, uint32_t link)
{
    const uint64_t free_ps = sim->link_free_ps[link];
    return free_ps > sim->now_ps ? free_ps - sim->now_ps : 0;
}

/* Whether the port that leads to this link has no room for these bytes. Times are whole ps, so a byte that is
 * sent to less than half counts as gone. */
static bool tcp_is_full(const hk_sim_t *sim, hk_hop_t hop, uint64_t bytes)
{
    const hk_tcp_t *tcp = sim->tcp;
    const hk_hop_t *ports = sim->model->switch_is_shared ? tcp->port : &hop;
    const size_t count = sim->model->switch_is_shared ? tcp->ports : 1;
    double held = (double)bytes;
    for (size_t i = 0; i < count; i++) {
        const double ps_per_byte = sim->kind_ps_per_byte[ports[i].kind];
        held += ps_per_byte > 0 ? (double)tcp_backlog_ps(sim, ports[i].link) / ps_per_byte : 0;
    }
    return held >= (double)sim->model->switch_buffer_bytes + 0.5;
}

/* When a segment that leaves its host at this time is at the switch, but for the latency: late by a random part of its
 * time on the link, as hosts are. With equal clocks the same senders would find a full port each time (S. Floyd, V.
 * Jacobson, On traffic phase effects in packet-switched gateways, 1992). None of a connection overtakes another. */
static uint64_t tcp_leave(hk_sim_t *sim, hk_flow_t *flow, uint64_t left_ps, uint64_t busy_ps)
{
    const double part = (double)(hk_mix_next(&sim->tcp->state) >> 11) * 0x1p-53;
    const uint64_t at_ps = hk_sum_ps(left_ps, (uint64_t)(part * sim->model->tcp_jitter * (double)busy_ps));
    flow->left_ps = at_ps > flow->left_ps ? at_ps : flow->left_ps;
    return flow->left_ps;
}

/* A segment comes to its next link, the first of which leaves its host; or it is at its receiver. */
void hk_tcp_go_on(hk_sim_t *sim, hk_tcp_segment_t *segment)
{
    hk_flow_t *flow = segment->flow;
    const hk_hop_t hop = flow->route.hop[segment->hop];
    const uint64_t bytes = segment->end - segment->first + sim->model->tcp_header_bytes;
    if (segment->hop > 0 && tcp_is_full(sim, hop, bytes)) {
        sim->tcp->counts[flow->to].drops++;
        sim->tcp->counts[flow->to].inner_drops += segment->hop + 1 < flow->route.count;
        hk_tcp_segment_drop(sim->tcp, segment);
        return;
    }
    const uint64_t busy_ps = hk_whole_ps(sim->kind_ps_per_byte[hop.kind] * (double)bytes);
    const uint64_t left_ps = hk_sum_ps(sim->now_ps + tcp_backlog_ps(sim, hop.link), busy_ps);
    sim->link_free_ps[hop.link] = left_ps;
    const uint64_t at_ps = segment->hop > 0 ? left_ps : tcp_leave(sim, flow, left_ps, busy_ps);
    segment->hop++;
    hk_queue_put(&sim->queue, hk_sum_ps(at_ps, sim->kind_latency_ps[hop.kind]), HK_EVENT_SEGMENT, segment);
}

/* ---- the receiver ------------------------------------------------------------------------------------------------ */

/* Keep bytes that come before others. */
static void tcp_keep(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment)
{
    hk_tcp_segment_t **place = &flow->ahead;
    while (*place != NULL && (*place)->first < segment->first) {
        place = &(*place)->next;
    }
    hk_tcp_segment_t *kept = hk_tcp_segment_new(sim, segment);
    if (kept != NULL) {
        kept->next = *place;
        *place = kept;
    }
}

static void tcp_take_segment(hk_sim_t *sim, hk_tcp_segment_t *segment)
{
    hk_flow_t *flow = segment->flow;
    if (segment->first > flow->missing) {
        tcp_keep(sim, flow, segment);
    } else if (segment->end > flow->missing) {
        flow->missing = segment->end;
    }
    while (flow->ahead != NULL && flow->ahead->first <= flow->missing) {
        hk_tcp_segment_t *next = flow->ahead;
        flow->missing = next->end > flow->missing ? next->end : flow->missing;
        flow->ahead = next->next;
        hk_tcp_segment_drop(sim->tcp, next);
    }
    segment->is_back = true;
    segment->acknowledged = flow->missing;
    hk_queue_put(&sim->queue, hk_sum_ps(sim->now_ps, flow->back_ps), HK_EVENT_SEGMENT, segment);
    while (flow->first_message != NULL && flow->first_message->end_byte <= flow->missing) {
        hk_message_t *message = flow->first_message;
        flow->first_message = message->next_waiting;
        hk_message_delivered(sim, message);
    }
}

void hk_tcp_event(hk_sim_t *sim, hk_event_kind_t kind, void *what)
{
    if (kind == HK_EVENT_TIMER) {
        hk_tcp_run_timer(sim, what);
        return;
    }
    hk_tcp_segment_t *segment = what;
    if (segment->is_back) {
        hk_tcp_take_acknowledgement(sim, segment->flow, segment);
        hk_tcp_segment_drop(sim->tcp, segment);
    } else if (segment->hop < segment->flow->route.count) {
        hk_tcp_go_on(sim, segment);
    } else {
        tcp_take_segment(sim, segment);
    }
}

bool hk_tcp_counter(const hk_sim_rank_t *rank, size_t i, hk_counter_t *counter_p)
{
    const hk_tcp_t *tcp = rank->sim->tcp;
    if (tcp == NULL || i > 3) {
        return false;
    }
    const hk_tcp_counts_t *counts = &tcp->counts[rank->base.rank];
    *counter_p = i == 0   ? (hk_counter_t){"retransmits", (double)counts->again}
                 : i == 1 ? (hk_counter_t){"timeouts", (double)counts->timeouts}
                 : i == 2 ? (hk_counter_t){"drops", (double)counts->drops}
                          : (hk_counter_t){"inner_drops", (double)counts->inner_drops};
    return true;
}
