/* The senders of tcp.h: what they send when, and what they take for lost. */
#include "events.h"
#include "tcp_flows.h"

enum { BACKOFF_MAX = 6, RECOVERY_SEGMENTS = 2 };

static uint64_t tcp_bytes(const hk_tcp_segment_t *segment)
{
    return segment->end - segment->first;
}

static double tcp_window_of(const hk_sim_t *sim, const hk_flow_t *flow)
{
    const double most = (double)sim->model->tcp_window_bytes;
    return most > 0 && most < flow->window ? most : flow->window;
}

static bool tcp_waits(const hk_flow_t *flow)
{
    return flow->acknowledged < flow->next;
}

/* ---- the timer --------------------------------------------------------------------------------------------------- */

static void tcp_start_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    flow->has_timer = true;
    flow->timer_ps = flow->due_ps;
    hk_queue_put(&sim->queue, flow->due_ps, HK_EVENT_TIMER, flow);
}

/* Once, if a round trip is known, and nothing counts as lost of what is on its way. */
static bool tcp_may_probe(const hk_sim_t *sim, const hk_flow_t *flow)
{
    return sim->model->tcp_probe_ns > 0 && flow->sent != NULL && flow->trip_ps > 0 && !flow->is_probed &&
           !flow->is_recovering && flow->backoff == 0;
}

/* The timer that runs stays as it is, unless it would end too late: it is looked at when it ends. A probe of one
 * segment alone waits longer, as its acknowledgement could be late (RFC 8985, section 7.2). */
static void tcp_set_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    const double least_ps = sim->model->tcp_min_rto_ns * 1000.0;
    const double margin_ps = 4 * flow->deviation_ps > least_ps ? 4 * flow->deviation_ps : least_ps;
    const bool is_alone = flow->next - flow->acknowledged <= sim->model->tcp_mss_bytes;
    const double probe_ps = 2 * flow->trip_ps + (is_alone ? least_ps : sim->model->tcp_probe_ns * 1000.0);
    double after_ps = (flow->trip_ps + margin_ps) * (double)(1u << flow->backoff);
    flow->will_probe = tcp_may_probe(sim, flow);
    after_ps = flow->will_probe && probe_ps < after_ps ? probe_ps : after_ps;
    flow->due_ps = hk_sum_ps(sim->now_ps, hk_whole_ps(after_ps));
    if (!flow->has_timer || flow->due_ps < flow->timer_ps) {
        tcp_start_timer(sim, flow);
    }
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Send the bytes of a record, which is then the last that was sent. */
static void tcp_transmit(hk_sim_t *sim, hk_flow_t *flow, hk_tcp_segment_t *record)
{
    record->next = NULL;
    record->number = ++flow->number;
    record->sent_ps = sim->now_ps;
    sim->tcp->counts[flow->to].again += record->is_again;
    *(flow->sent == NULL ? &flow->sent : &flow->last_sent->next) = record;
    flow->last_sent = record;
    flow->pipe += tcp_bytes(record);
    hk_tcp_segment_t *segment = hk_tcp_segment_new(sim, record);
    if (segment != NULL) {
        hk_tcp_go_on(sim, segment);
    }
}

/* A record of these bytes; NULL: no memory. */
static hk_tcp_segment_t *tcp_record(hk_sim_t *sim, hk_flow_t *flow, uint64_t first, uint64_t end, bool is_again)
{
    return hk_tcp_segment_new(sim, &(hk_tcp_segment_t){.flow = flow, .first = first, .end = end, .is_again = is_again});
}

/* The next segment that was never sent; NULL: there is none, or no memory. */
static hk_tcp_segment_t *tcp_new_record(hk_sim_t *sim, hk_flow_t *flow)
{
    const uint64_t left = flow->end - flow->next;
    const uint64_t bytes = left < sim->model->tcp_mss_bytes ? left : sim->model->tcp_mss_bytes;
    hk_tcp_segment_t *record = bytes > 0 ? tcp_record(sim, flow, flow->next, flow->next + bytes, false) : NULL;
    flow->next += record != NULL ? bytes : 0;
    return record;
}

static hk_tcp_segment_t *tcp_lost_record(hk_flow_t *flow)
{
    hk_tcp_segment_t *record = flow->lost;
    if (record != NULL) {
        flow->lost = record->next;
        record->is_again = true;
    }
    return record;
}

/* Send what the window allows, first what was lost. A segment is not cut short to fit into it. While a fast recovery
 * lasts each call sends two segments at most (RFC 6937, slow start). */
static void tcp_send_more(hk_sim_t *sim, hk_flow_t *flow)
{
    const double window = tcp_window_of(sim, flow);
    const bool is_fast = flow->is_recovering && !flow->is_slow;
    for (int i = 0; !is_fast || i < RECOVERY_SEGMENTS; i++) {
        const uint64_t left = flow->end - flow->next;
        const uint64_t fresh = left < sim->model->tcp_mss_bytes ? left : sim->model->tcp_mss_bytes;
        const uint64_t bytes = flow->lost != NULL ? tcp_bytes(flow->lost) : fresh;
        if (bytes == 0 || (flow->pipe > 0 && (double)(flow->pipe + bytes) > window)) {
            return;
        }
        const bool is_first = !tcp_waits(flow);
        hk_tcp_segment_t *record = flow->lost != NULL ? tcp_lost_record(flow) : tcp_new_record(sim, flow);
        if (record == NULL) {
            return;
        }
        tcp_transmit(sim, flow, record);
        if (is_first || tcp_may_probe(sim, flow)) {
            tcp_set_timer(sim, flow);
        }
    }
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

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static void tcp_lose(hk_flow_t *flow, hk_tcp_segment_t *record)
{
    const bool is_last = flow->lost != NULL && flow->last_lost->first < record->first;
    hk_tcp_segment_t **place = is_last ? &flow->last_lost->next : &flow->lost;
    while (*place != NULL && (*place)->first < record->first) {
        place = &(*place)->next;
    }
    record->next = *place;
    *place = record;
    flow->last_lost = record->next == NULL ? record : flow->last_lost;
}

/* Take the record that was sent first out of those on their way. */
static hk_tcp_segment_t *tcp_oldest(hk_flow_t *flow)
{
    hk_tcp_segment_t *record = flow->sent;
    flow->sent = record->next;
    flow->pipe -= tcp_bytes(record);
    return record;
}

static void tcp_halve(const hk_sim_t *sim, hk_flow_t *flow)
{
    const double least = 2 * (double)sim->model->tcp_mss_bytes;
    flow->threshold = flow->window / 2 > least ? flow->window / 2 : least;
}

static void tcp_probe(hk_sim_t *sim, hk_flow_t *flow)
{
    hk_tcp_segment_t *record = tcp_new_record(sim, flow);
    if (record == NULL) {
        record = tcp_record(sim, flow, flow->last_sent->first, flow->last_sent->end, true);
    }
    if (record != NULL) {
        flow->is_probed = true;
        tcp_transmit(sim, flow, record);
        tcp_set_timer(sim, flow);
    }
}

void hk_tcp_run_timer(hk_sim_t *sim, hk_flow_t *flow)
{
    if (!flow->has_timer || sim->now_ps != flow->timer_ps) {
        return; /* an earlier one took its place */
    }
    flow->has_timer = false;
    if (!tcp_waits(flow)) {
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
    if (!flow->is_recovering) {
        tcp_halve(sim, flow);
    }
    while (flow->sent != NULL) {
        tcp_lose(flow, tcp_oldest(flow));
    }
    flow->window = (double)sim->model->tcp_mss_bytes;
    flow->is_recovering = flow->is_slow = true;
    flow->is_probed = false;
    flow->recover = flow->next;
    flow->backoff += flow->backoff < BACKOFF_MAX;
    tcp_send_more(sim, flow);
    tcp_set_timer(sim, flow);
}

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

static void tcp_take_trip(hk_flow_t *flow, double trip_ps)
{
    const double error_ps = trip_ps > flow->trip_ps ? trip_ps - flow->trip_ps : flow->trip_ps - trip_ps;
    const bool is_first = flow->trip_ps <= 0;
    flow->deviation_ps = is_first ? trip_ps / 2 : 0.75 * flow->deviation_ps + 0.25 * error_ps;
    flow->trip_ps = is_first ? trip_ps : 0.875 * flow->trip_ps + 0.125 * trip_ps;
}

/* What begins here was slow, not lost: the timer was too early. */
static void tcp_find(hk_sim_t *sim, hk_flow_t *flow, uint64_t first)
{
    hk_tcp_segment_t *before = NULL;
    for (hk_tcp_segment_t **place = &flow->lost; *place != NULL; place = &before->next) {
        hk_tcp_segment_t *record = *place;
        if (record->first == first) {
            *place = record->next;
            flow->last_lost = record->next == NULL ? before : flow->last_lost;
            hk_tcp_segment_drop(sim->tcp, record);
            return;
        }
        before = record;
    }
}

/* Nothing overtakes, so all that was sent before the acknowledged segment is there or lost (RFC 8985). Returns whether
 * something was lost; that a probe has replaced it, *repaired_p. */
static bool tcp_confirm(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment, bool *repaired_p)
{
    bool is_lost = false;
    while (flow->sent != NULL && flow->sent->number <= segment->number) {
        hk_tcp_segment_t *record = tcp_oldest(flow);
        const bool is_same = record->first == segment->first;
        if (is_same || record->end <= flow->acknowledged) {
            *repaired_p = *repaired_p || (is_same && record->number < segment->number);
            hk_tcp_segment_drop(sim->tcp, record);
        } else {
            tcp_lose(flow, record);
            is_lost = true;
        }
    }
    if (flow->is_slow) {
        tcp_find(sim, flow, segment->first);
    }
    return is_lost;
}

/* All that was sent is there, perhaps more than once. */
static void tcp_forget(hk_sim_t *sim, hk_flow_t *flow)
{
    while (flow->sent != NULL) {
        hk_tcp_segment_drop(sim->tcp, tcp_oldest(flow));
    }
    while (flow->lost != NULL) {
        hk_tcp_segment_drop(sim->tcp, tcp_lost_record(flow));
    }
}

/* The window grows only if it was what held the sender back; in slow start up to twice of what was on its way. */
static void tcp_grow(const hk_sim_t *sim, hk_flow_t *flow, uint64_t pipe)
{
    const double mss = (double)sim->model->tcp_mss_bytes;
    const bool is_slow_start = flow->window < flow->threshold;
    if ((double)pipe + mss > tcp_window_of(sim, flow) || (is_slow_start && flow->window < 2 * (double)pipe)) {
        flow->window += is_slow_start ? mss : mss * mss / flow->window;
    }
}

void hk_tcp_take_acknowledgement(hk_sim_t *sim, hk_flow_t *flow, const hk_tcp_segment_t *segment)
{
    const uint64_t pipe = flow->pipe;
    const bool is_new = segment->acknowledged > flow->acknowledged;
    bool is_repaired = false;
    if (is_new) {
        flow->acknowledged = segment->acknowledged;
        flow->backoff = 0;
        flow->is_probed = false;
    }
    const bool is_lost = tcp_confirm(sim, flow, segment, &is_repaired);
    if (!segment->is_again) {
        tcp_take_trip(flow, (double)(sim->now_ps - segment->sent_ps));
    }
    if (!tcp_waits(flow)) {
        tcp_forget(sim, flow);
    }
    if (flow->is_recovering && flow->acknowledged >= flow->recover) {
        flow->window = flow->is_slow ? flow->window : flow->threshold;
        flow->is_recovering = flow->is_slow = false;
    }
    const bool begins = (is_lost || is_repaired) && !flow->is_recovering;
    if (begins) {
        tcp_halve(sim, flow);
        flow->window = flow->threshold;
        flow->is_recovering = tcp_waits(flow) && flow->lost != NULL;
        flow->recover = flow->next;
        if (flow->lost != NULL) {
            tcp_transmit(sim, flow, tcp_lost_record(flow));
        }
    } else if (!flow->is_recovering || flow->is_slow) {
        tcp_grow(sim, flow, pipe);
    }
    if (is_new || begins) {
        tcp_set_timer(sim, flow);
    }
    tcp_send_more(sim, flow);
}
