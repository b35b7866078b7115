/* See tcp.h. */
#include "tcp_flows.h"

#include "events.h"

enum { DUPLICATES = 3, BACKOFF_MAX = 6 };

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* How long a port needs for what it holds. */
static uint64_t tcp_backlog_ps(const hk_sim_t *sim, uint32_t link)
{
    const uint64_t free_ps = sim->link_free_ps[link];
    return free_ps > sim->now_ps ? free_ps - sim->now_ps : 0;
}

/* Whether the port that leads to this link has no room for so many more bytes. Times are whole ps, so a byte that is
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

/* A segment comes to its next link, the first of which leaves its host; or it is at its receiver. */
static void tcp_go_on(hk_sim_t *sim, hk_tcp_segment_t *segment)
{
    hk_flow_t *flow = segment->flow;
    const hk_hop_t hop = flow->route.hop[segment->hop];
    const uint64_t bytes = segment->end - segment->first + sim->model->tcp_header_bytes;
    if (segment->hop > 0 && tcp_is_full(sim, hop, bytes)) {
        sim->tcp->counts[flow->to].drops++;
        hk_tcp_segment_drop(sim->tcp, segment);
        return;
    }
    const uint64_t busy_ps = hk_whole_ps(sim->kind_ps_per_byte[hop.kind] * (double)bytes);
    const uint64_t left_ps = hk_sum_ps(sim->now_ps + tcp_backlog_ps(sim, hop.link), busy_ps);
    sim->link_free_ps[hop.link] = left_ps;
    segment->hop++;
    hk_queue_put(&sim->queue, hk_sum_ps(left_ps, sim->kind_latency_ps[hop.kind]), HK_EVENT_SEGMENT, segment);
}

/* ---- the sender -------------------------------------------------------------------------------------------------- */

static uint64_t tcp_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t tcp_in_flight(const hk_flow_t *flow)
{
    return flow->next - flow->acknowledged;
}

/* How many duplicate acknowledgements say that a segment is lost. With probes it is known by time: a quarter of a round
 * trip after one that was sent later, and here no segment overtakes another. */
static uint32_t tcp_duplicates(const hk_sim_t *sim)
{
    return sim->model->tcp_probe_ns > 0 ? 1 : DUPLICATES;
}

static void tcp_start_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    flow->has_timer = true;
    flow->timer_ps = flow->due_ps;
    hk_queue_put(&sim->queue, flow->due_ps, HK_EVENT_TIMER, flow);
}

/* Once, if a round trip is known, and nothing counts as lost of what is on its way; of one segment alone the
 * acknowledgement could be late (RFC 8985, section 7.2). */
static bool tcp_may_probe(const hk_sim_t *sim, const hk_flow_t *flow)
{
    return sim->model->tcp_probe_ns > 0 && tcp_in_flight(flow) > sim->model->tcp_mss_bytes && flow->trip_ps > 0 &&
           !flow->is_probed && !flow->is_recovering && flow->backoff == 0 && flow->duplicates == 0 &&
           flow->acknowledged >= flow->recover;
}

/* The timer that runs stays as it is, unless it would end too late: it is looked at when it ends. */
static void tcp_set_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    const double least_ps = sim->model->tcp_min_rto_ns * 1000.0;
    const double margin_ps = 4 * flow->deviation_ps > least_ps ? 4 * flow->deviation_ps : least_ps;
    const double probe_ps = 2 * flow->trip_ps + sim->model->tcp_probe_ns * 1000.0;
    double after_ps = (flow->trip_ps + margin_ps) * (double)(1u << flow->backoff);
    flow->will_probe = tcp_may_probe(sim, flow) && probe_ps < after_ps;
    after_ps = flow->will_probe ? probe_ps : after_ps;
    flow->due_ps = hk_sum_ps(sim->now_ps, hk_whole_ps(after_ps));
    if (!flow->has_timer || flow->due_ps < flow->timer_ps) {
        tcp_start_timer(sim, flow);
    }
}

static void tcp_transmit(hk_sim_t *sim, hk_flow_t *flow, uint64_t first, uint64_t end)
{
    const bool is_again = first < flow->most;
    hk_tcp_segment_t *segment = hk_tcp_segment_new(
        sim,
        &(hk_tcp_segment_t){.flow = flow, .first = first, .end = end, .sent_ps = sim->now_ps, .is_again = is_again});
    sim->tcp->counts[flow->to].again += is_again;
    flow->most = end > flow->most ? end : flow->most;
    if (segment != NULL) {
        tcp_go_on(sim, segment);
    }
}

static double tcp_window_of(const hk_sim_t *sim, const hk_flow_t *flow)
{
    const double most = (double)sim->model->tcp_window_bytes;
    return most > 0 && most < flow->window ? most : flow->window;
}

/* Send what the window allows. A segment is not cut short to fit into it. */
static void tcp_send_more(hk_sim_t *sim, hk_flow_t *flow)
{
    const double window = tcp_window_of(sim, flow);
    while (flow->next < flow->end) {
        const uint64_t bytes = tcp_smaller(sim->model->tcp_mss_bytes, flow->end - flow->next);
        if (tcp_in_flight(flow) > 0 && (double)(tcp_in_flight(flow) + bytes) > window) {
            break;
        }
        const bool is_first = tcp_in_flight(flow) == 0;
        tcp_transmit(sim, flow, flow->next, flow->next + bytes);
        flow->next += bytes;
        if (is_first || tcp_may_probe(sim, flow)) {
            tcp_set_timer(sim, flow);
        }
    }
}

/* Where the next bytes begin that the receiver lacks below others that it has, and were not sent again; 0: nowhere. */
static uint64_t tcp_next_gap(const hk_flow_t *flow, uint64_t *end_p)
{
    uint64_t at = flow->resent > flow->acknowledged ? flow->resent : flow->acknowledged;
    for (const hk_tcp_segment_t *kept = flow->ahead; kept != NULL; kept = kept->next) {
        if (at < kept->first) {
            *end_p = kept->first;
            return at;
        }
        at = kept->end > at ? kept->end : at;
    }
    return 0;
}

/* Selective acknowledgements tell all gaps; each acknowledgement sends two segments again (RFC 6937, slow start). */
static void tcp_fill_gaps(hk_sim_t *sim, hk_flow_t *flow)
{
    for (int i = 0; i < 2; i++) {
        uint64_t end = 0;
        const uint64_t first = tcp_next_gap(flow, &end);
        if (end == 0) {
            return;
        }
        flow->resent = tcp_smaller(first + sim->model->tcp_mss_bytes, end);
        tcp_transmit(sim, flow, first, flow->resent);
    }
}

static void tcp_send_missing(hk_sim_t *sim, hk_flow_t *flow)
{
    if (sim->model->tcp_probe_ns > 0 && flow->ahead != NULL) {
        tcp_fill_gaps(sim, flow);
        return;
    }
    tcp_transmit(sim, flow, flow->acknowledged,
                 tcp_smaller(flow->acknowledged + sim->model->tcp_mss_bytes, flow->most));
}

static void tcp_halve_threshold(const hk_sim_t *sim, hk_flow_t *flow)
{
    const double least = 2 * (double)sim->model->tcp_mss_bytes;
    const double half = (double)tcp_in_flight(flow) / 2;
    flow->threshold = half > least ? half : least;
}

static void tcp_take_trip(hk_flow_t *flow, double trip_ps)
{
    const double error_ps = trip_ps > flow->trip_ps ? trip_ps - flow->trip_ps : flow->trip_ps - trip_ps;
    const bool is_first = flow->trip_ps <= 0;
    flow->deviation_ps = is_first ? trip_ps / 2 : 0.75 * flow->deviation_ps + 0.25 * error_ps;
    flow->trip_ps = is_first ? trip_ps : 0.875 * flow->trip_ps + 0.125 * trip_ps;
}

/* New bytes are acknowledged. The window grows only if it was what held the sender back. */
static void tcp_move_on(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment)
{
    const double mss = (double)sim->model->tcp_mss_bytes;
    const uint64_t bytes = segment->acknowledged - flow->acknowledged;
    const bool was_full = (double)tcp_in_flight(flow) + mss > tcp_window_of(sim, flow);
    flow->acknowledged = segment->acknowledged;
    flow->next = flow->next > flow->acknowledged ? flow->next : flow->acknowledged;
    flow->duplicates = flow->backoff = 0;
    flow->is_probed = false;
    if (!segment->is_again) {
        tcp_take_trip(flow, (double)(sim->now_ps - segment->sent_ps));
    }
    if (flow->is_recovering && flow->acknowledged >= flow->recover) {
        flow->is_recovering = false;
        flow->window = flow->threshold;
    } else if (flow->is_recovering) {
        tcp_send_missing(sim, flow); /* the next of several losses */
        const double left = flow->window - (double)bytes + mss;
        flow->window = left > mss ? left : mss;
    } else if (was_full) {
        flow->window += flow->window < flow->threshold ? mss : mss * mss / flow->window;
    }
    tcp_set_timer(sim, flow);
}

static void tcp_take_acknowledgement(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment)
{
    if (segment->is_again && segment->end == flow->resent) {
        flow->resent = 0; /* nothing overtakes it, so what is missing below it was lost again */
    }
    if (segment->acknowledged > flow->acknowledged) {
        tcp_move_on(sim, flow, segment);
    } else if (segment->acknowledged == flow->acknowledged && tcp_in_flight(flow) > 0) {
        const double mss = (double)sim->model->tcp_mss_bytes;
        flow->duplicates++;
        flow->is_probed = false;
        if (flow->is_recovering) {
            flow->window += mss;
            if (sim->model->tcp_probe_ns > 0) {
                tcp_fill_gaps(sim, flow);
            }
        } else if (flow->duplicates == tcp_duplicates(sim) && flow->acknowledged >= flow->recover) {
            tcp_halve_threshold(sim, flow);
            flow->is_recovering = true;
            flow->recover = flow->most;
            flow->resent = flow->acknowledged;
            flow->window = flow->threshold + tcp_duplicates(sim) * mss;
            tcp_send_missing(sim, flow);
        }
    }
    tcp_send_more(sim, flow);
}

/* Send the last segment again: what was lost before it then shows as after duplicates. */
static void tcp_probe(hk_sim_t *sim, hk_flow_t *flow)
{
    const uint64_t bytes = tcp_smaller(sim->model->tcp_mss_bytes, tcp_in_flight(flow));
    flow->is_probed = true;
    tcp_set_timer(sim, flow);
    tcp_transmit(sim, flow, flow->next - bytes, flow->next);
}

static void tcp_run_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    if (!flow->has_timer || sim->now_ps != flow->timer_ps) {
        return; /* an earlier one took its place */
    }
    flow->has_timer = false;
    if (tcp_in_flight(flow) == 0) {
        return;
    }
    if (sim->now_ps < flow->due_ps) {
        tcp_start_timer(sim, flow);
        return;
    }
    if (flow->will_probe) {
        tcp_probe(sim, flow);
        return;
    }
    sim->tcp->counts[flow->to].timeouts++;
    tcp_halve_threshold(sim, flow);
    flow->window = (double)sim->model->tcp_mss_bytes;
    flow->next = flow->acknowledged;
    flow->duplicates = 0;
    flow->is_recovering = flow->is_probed = false;
    flow->recover = flow->most;
    flow->backoff += flow->backoff < BACKOFF_MAX;
    tcp_send_more(sim, flow);
}

void hk_tcp_send(hk_sim_t *sim, hk_message_t *message)
{
    hk_flow_t *flow = hk_tcp_flow_of(sim, message);
    if (flow == NULL) {
        sim->no_memory = true;
        return;
    }
    const uint64_t bytes = message->costs->bytes;
    flow->end += bytes > 0 ? bytes : 1; /* an empty message has a byte, too */
    message->end_byte = flow->end;
    message->next_waiting = NULL;
    *(flow->first_message == NULL ? &flow->first_message : &flow->last_message->next_waiting) = message;
    flow->last_message = message;
    tcp_send_more(sim, flow);
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
        tcp_run_timer(sim, what);
        return;
    }
    hk_tcp_segment_t *segment = what;
    if (segment->is_back) {
        tcp_take_acknowledgement(sim, segment->flow, segment);
        hk_tcp_segment_drop(sim->tcp, segment);
    } else if (segment->hop < segment->flow->route.count) {
        tcp_go_on(sim, segment);
    } else {
        tcp_take_segment(sim, segment);
    }
}

bool hk_tcp_counter(const hk_sim_rank_t *rank, size_t i, hk_counter_t *counter_p)
{
    const hk_tcp_t *tcp = rank->sim->tcp;
    if (tcp == NULL || i > 2) {
        return false;
    }
    const hk_tcp_counts_t *counts = &tcp->counts[rank->base.rank];
    *counter_p = i == 0   ? (hk_counter_t){"retransmits", (double)counts->again}
                 : i == 1 ? (hk_counter_t){"timeouts", (double)counts->timeouts}
                          : (hk_counter_t){"drops", (double)counts->drops};
    return true;
}
