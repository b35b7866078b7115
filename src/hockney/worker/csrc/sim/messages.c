/* The path of a message: from its sender's CPU through its channel, ports of nodes and links to the receiver.
 * docs/machines.md has the rules. */
#include "events.h"
#include "tcp.h"

static const uint64_t UNKNOWN_PS = UINT64_MAX;

static uint64_t later(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps > b_ps ? a_ps : b_ps;
}

/* Whether it is accepted only when its receive is posted. */
static bool is_synchronous(const hk_message_t *message)
{
    return message->costs->protocol == HK_SYNCHRONOUS && message->kind == HK_TWO_SIDED;
}

static hk_channel_t *channel_of(hk_sim_t *sim, const hk_message_t *message)
{
    hk_channel_t *channel = hk_channel_find(&sim->channels, message->from, message->to, sim->now_ps);
    sim->no_memory = sim->no_memory || channel == NULL;
    return channel;
}

/* ---- completion -------------------------------------------------------------------------------------------------- */

void hk_req_complete(hk_sim_req_t *req, uint64_t done_ps, uint64_t cpu_ps)
{
    req->done_ps = done_ps;
    req->cpu_ps = cpu_ps;
    req->is_known = true;
    if (req->is_waited_for && --req->rank->unknown == 0) {
        hk_sim_wake(req->rank);
    }
}

/* Complete a receive whose message arrives at done_ps. */
static void complete_receive(hk_message_t *message, uint64_t done_ps)
{
    const uint64_t *cost_ps = message->costs->ps;
    hk_sim_req_t *req = message->recv;
    const uint64_t late_ps =
        message->costs->protocol == HK_EAGER && req->posted_ps >= done_ps ? cost_ps[HK_COST_LATE] : 0;
    hk_req_complete(req, done_ps, hk_sim_cpu_cost(req->rank, cost_ps[HK_COST_RECV_CPU] + late_ps));
}

/* ---- through the network ----------------------------------------------------------------------------------------- */

static void free_channel(hk_sim_t *sim, hk_channel_t *channel, uint64_t free_ps)
{
    channel->free_ps = free_ps;
    if (channel->first_waiting != NULL) {
        hk_queue_put(&sim->queue, free_ps, HK_EVENT_CHANNEL, channel->first_waiting);
    }
}

/* The receiver's node accepts a put or get. */
static void arrive_one_sided(hk_sim_t *sim, hk_message_t *message, uint64_t at_ps)
{
    const uint64_t *cost_ps = message->costs->ps;
    if (message->kind == HK_GET) {
        hk_req_complete(message->recv, at_ps, hk_sim_cpu_cost(message->recv->rank, cost_ps[HK_COST_RECV_CPU]));
        hk_message_drop(sim, message);
        return;
    }
    hk_sim_rank_t *from = &sim->ranks[message->from];
    const uint64_t done_ps = at_ps + cost_ps[HK_COST_ACK];
    from->puts_ps = done_ps > from->puts_ps ? done_ps : from->puts_ps;
    from->puts_open--;
    if (message->send != NULL) {
        hk_req_complete(message->send, done_ps, 0);
    }
    if (from->puts_open == 0 && from->wait == HK_WAIT_QUIET) {
        hk_sim_wake(from);
    }
    if (message->remote != NULL) {
        hk_queue_put(&sim->queue, at_ps, HK_EVENT_WRITE, message);
    } else {
        hk_message_drop(sim, message);
    }
}

/* The receiver's node has and accepts the whole eager or rendezvous message. */
static void arrive(hk_sim_t *sim, hk_message_t *message, uint64_t at_ps)
{
    if (message->kind != HK_TWO_SIDED) {
        arrive_one_sided(sim, message, at_ps);
        return;
    }
    message->ready_ps = at_ps;
    message->stage = HK_STAGE_ARRIVED;
    if (message->recv != NULL) {
        complete_receive(message, at_ps);
        hk_message_drop(sim, message);
    }
}

/* Complete a synchronous message and free its channel. */
static void take_in(hk_sim_t *sim, hk_message_t *message, uint64_t end_ps)
{
    hk_channel_t *channel = channel_of(sim, message);
    if (channel == NULL) {
        return;
    }
    complete_receive(message, end_ps);
    if (message->send != NULL) {
        message->send->taken = NULL;
        hk_req_complete(message->send, end_ps + message->costs->ps[HK_COST_ACK], 0);
    }
    free_channel(sim, channel, end_ps);
    hk_message_drop(sim, message);
}

/* The receiver's node has finished its work at node_ps. If the receive is late, only the first packet has arrived. */
static void let_in(hk_sim_t *sim, hk_message_t *message, uint64_t node_ps)
{
    uint64_t end_ps = later(message->ready_ps + message->transfer_ps, node_ps);
    if (!is_synchronous(message)) {
        arrive(sim, message, end_ps);
        return;
    }
    if (message->recv->posted_ps > message->ready_ps) {
        const uint64_t rest_ps = message->costs->ps[HK_COST_REST];
        end_ps = later(end_ps, message->recv->posted_ps + (rest_ps > 0 ? rest_ps : message->transfer_ps));
    }
    take_in(sim, message, end_ps);
}

static void enter_node(hk_sim_t *sim, hk_message_t *message)
{
    const uint32_t place = sim->ranks[message->to].node;
    const uint64_t in_ps = hk_sim_at_node(sim, place, message->costs->ps[HK_COST_IN]);
    const uint64_t both_ps = hk_sim_at_node(sim, place, message->costs->ps[HK_COST_NODE]);
    hk_node_t *node = &sim->nodes[place];
    if (message->kind == HK_TWO_SIDED && sim->ranks[message->to].sent_ps > message->left_ps) {
        message->ready_ps += message->costs->ps[HK_COST_EXCHANGE];
    }
    const uint64_t now_ps = later(sim->now_ps, message->ready_ps);
    const uint64_t at_ps = later(now_ps, later(in_ps > 0 ? node->in_ps : 0, both_ps > 0 ? node->both_ps : 0));
    node->in_ps = in_ps > 0 ? hk_sum_ps(at_ps, in_ps) : node->in_ps;
    node->both_ps = both_ps > 0 ? hk_sum_ps(at_ps, both_ps) : node->both_ps;
    const uint64_t busy_ps = later(in_ps, both_ps);
    let_in(sim, message, at_ps + (busy_ps < message->transfer_ps ? busy_ps : message->transfer_ps));
}

/* Its first byte arrives at at_ps. From then on it occupies the receiver's node: while the rest arrives, and for the
 * remaining work when the next message arrives. */
static void come_to_node(hk_sim_t *sim, hk_message_t *message, uint64_t at_ps)
{
    const uint64_t *cost_ps = message->costs->ps;
    if (cost_ps[HK_COST_IN] > 0 || cost_ps[HK_COST_NODE] > 0 || cost_ps[HK_COST_EXCHANGE] > 0) {
        hk_queue_put(&sim->queue, at_ps, HK_EVENT_ARRIVE, message);
    } else {
        let_in(sim, message, 0);
    }
}

/* Follow the route. The head waits for each busy link. A link is busy for as long as the message's bytes take. */
static uint64_t cross_links(hk_sim_t *sim, const hk_message_t *message, uint64_t *slowest_ps, uint64_t *waited_ps)
{
    const uint32_t from = sim->ranks[message->from].node;
    const uint32_t to = sim->ranks[message->to].node;
    uint64_t head_ps = sim->now_ps;
    uint64_t busy_ps = 0;
    uint32_t last_kind = UINT32_MAX;
    *waited_ps = 0;
    if (from == to) {
        return head_ps;
    }
    const hk_route_t *route = hk_topology_route(sim->topology, from, to);
    for (size_t i = 0; i < route->count; i++) {
        const hk_hop_t hop = route->hop[i];
        if (hop.kind != last_kind) {
            last_kind = hop.kind;
            busy_ps = hk_whole_ps(sim->kind_ps_per_byte[hop.kind] * (double)message->costs->bytes);
            *slowest_ps = later(*slowest_ps, busy_ps);
        }
        uint64_t *free_ps = &sim->link_free_ps[hop.link];
        if (*free_ps > head_ps && busy_ps > 0) {
            *waited_ps += *free_ps - head_ps;
            head_ps = *free_ps;
        }
        *free_ps = busy_ps > 0 ? hk_sum_ps(head_ps, busy_ps) : *free_ps;
        head_ps = hk_sum_ps(head_ps, sim->kind_latency_ps[hop.kind]);
    }
    return hk_sum_ps(head_ps, hk_whole_ps((double)route->turns * (double)sim->turn_ps));
}

/* Whether a message is on its way in the opposite direction. */
static bool meets_another(hk_sim_t *sim, const hk_message_t *message)
{
    const hk_channel_t *back = hk_channel_find(&sim->channels, message->to, message->from, sim->now_ps);
    return back != NULL && back->free_ps > sim->now_ps;
}

/* The connection takes the message. Its channel is free for the next one when the sender has passed on the bytes. */
static void launch_tcp(hk_sim_t *sim, hk_channel_t *channel, hk_message_t *message)
{
    const uint64_t *cost_ps = message->costs->ps;
    channel = channel != NULL ? channel : channel_of(sim, message);
    if (channel == NULL) {
        return;
    }
    message->transfer_ps = cost_ps[HK_COST_TRANSFER];
    message->left_ps = sim->now_ps;
    message->ready_ps = hk_sim_noisy(&sim->ranks[message->from], cost_ps[HK_COST_LATENCY]); /* from its last byte on */
    message->stage = HK_STAGE_LAUNCHED;
    sim->ranks[message->from].sent_ps = sim->now_ps + message->ready_ps;
    free_channel(sim, channel, sim->now_ps + message->transfer_ps);
    hk_tcp_send(sim, message);
}

void hk_message_delivered(hk_sim_t *sim, hk_message_t *message)
{
    const uint64_t passed_on_ps = message->left_ps + message->transfer_ps;
    message->ready_ps = hk_sum_ps(sim->now_ps, message->ready_ps);
    message->transfer_ps = passed_on_ps > sim->now_ps ? passed_on_ps - sim->now_ps : 0;
    if (message->costs->protocol == HK_RENDEZVOUS && message->kind == HK_TWO_SIDED) {
        hk_req_complete(message->send, later(sim->now_ps, passed_on_ps), 0);
    }
    come_to_node(sim, message, message->ready_ps);
}

/* channel: NULL if its place is not known. */
static void launch(hk_sim_t *sim, hk_channel_t *channel, hk_message_t *message)
{
    const uint64_t *cost_ps = message->costs->ps;
    uint64_t transfer_ps = cost_ps[HK_COST_TRANSFER];
    if (sim->tcp != NULL && sim->ranks[message->from].node != sim->ranks[message->to].node) {
        launch_tcp(sim, channel, message);
        return;
    }
    if (cost_ps[HK_COST_DUPLEX] > 0) {
        transfer_ps += meets_another(sim, message) ? cost_ps[HK_COST_DUPLEX] : 0;
        channel = NULL; /* the table may have moved */
    }
    uint64_t waited_ps = 0;
    uint64_t head_ps = cross_links(sim, message, &transfer_ps, &waited_ps);
    head_ps = hk_sum_ps(head_ps, hk_sim_noisy(&sim->ranks[message->from], cost_ps[HK_COST_LATENCY]));
    message->transfer_ps = transfer_ps;
    message->left_ps = sim->now_ps;
    message->ready_ps = head_ps;
    sim->ranks[message->from].sent_ps = head_ps;
    message->stage = HK_STAGE_LAUNCHED;
    if (is_synchronous(message)) {
        if (message->recv != NULL) {
            come_to_node(sim, message, later(head_ps, message->recv->posted_ps));
        }
        return;
    }
    const uint64_t left_ps = sim->now_ps + waited_ps + transfer_ps;
    channel = channel != NULL ? channel : channel_of(sim, message);
    if (channel == NULL) {
        return;
    }
    free_channel(sim, channel, left_ps);
    if (message->costs->protocol == HK_RENDEZVOUS && message->kind == HK_TWO_SIDED) {
        hk_req_complete(message->send, left_ps, 0);
    }
    come_to_node(sim, message, head_ps);
}

/* A channel takes a synchronous message. A rank that waits for several requests need not wait for its end. */
static void take_over(hk_sim_t *sim, hk_message_t *message)
{
    hk_sim_req_t *req = message->send;
    if (req->may_be_taken) {
        message->send = NULL;
        hk_req_complete(req, sim->now_ps, 0);
    } else {
        req->taken = message;
        req->done_ps = sim->now_ps;
    }
}

/* This message gets the channel. */
static void leave_node(hk_sim_t *sim, hk_channel_t *channel, hk_message_t *message)
{
    const uint32_t place = sim->ranks[message->from].node;
    const uint64_t out_ps =
        hk_sim_at_node(sim, place, message->costs->ps[message->has_receives ? HK_COST_BOTH : HK_COST_OUT]);
    const uint64_t both_ps = hk_sim_at_node(sim, place, message->costs->ps[HK_COST_NODE]);
    channel->free_ps = UNKNOWN_PS;
    if (is_synchronous(message)) {
        take_over(sim, message);
    }
    if (out_ps == 0 && both_ps == 0) {
        launch(sim, channel, message);
        return;
    }
    hk_node_t *node = &sim->nodes[place];
    const uint64_t at_ps = later(sim->now_ps, later(out_ps > 0 ? node->out_ps : 0, both_ps > 0 ? node->both_ps : 0));
    node->out_ps = out_ps > 0 ? hk_sum_ps(at_ps, out_ps) : node->out_ps;
    node->both_ps = both_ps > 0 ? hk_sum_ps(at_ps, both_ps) : node->both_ps;
    if (at_ps > sim->now_ps) {
        hk_queue_put(&sim->queue, at_ps, HK_EVENT_LAUNCH, message);
    } else {
        launch(sim, channel, message);
    }
}

static void come_to_channel(hk_sim_t *sim, hk_channel_t *channel, hk_message_t *message)
{
    if (channel->first_waiting == NULL && channel->free_ps <= sim->now_ps) {
        leave_node(sim, channel, message);
        return;
    }
    message->next_waiting = NULL;
    if (channel->first_waiting == NULL) {
        channel->first_waiting = message;
        if (channel->free_ps != UNKNOWN_PS) {
            hk_queue_put(&sim->queue, channel->free_ps, HK_EVENT_CHANNEL, message);
        }
    } else {
        channel->last_waiting->next_waiting = message;
    }
    channel->last_waiting = message;
}

/* Write a put word to its rank's memory. */
static void write_word(hk_sim_t *sim, hk_message_t *message)
{
    hk_sim_rank_t *to = &sim->ranks[message->to];
    *message->remote = message->word;
    to->word_ps = message->costs->ps[HK_COST_RECV_CPU];
    if (to->wait == HK_WAIT_WORD) {
        to->now_ps = sim->now_ps > to->now_ps ? sim->now_ps : to->now_ps;
        hk_sim_wake(to);
    }
    hk_message_drop(sim, message);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

void hk_message_meet(hk_sim_t *sim, hk_message_t *message, hk_sim_req_t *req)
{
    message->recv = req;
    if (message->has_data) {
        hk_data_give(sim, message, req);
    }
    if (message->costs->protocol == HK_RENDEZVOUS) {
        const uint64_t both_ps = later(message->ready_ps, req->posted_ps);
        hk_queue_put(&sim->queue, both_ps + message->costs->ps[HK_COST_HANDSHAKE], HK_EVENT_TRANSFER, message);
    } else if (message->stage == HK_STAGE_LAUNCHED && is_synchronous(message)) {
        come_to_node(sim, message, later(message->ready_ps, req->posted_ps));
    } else if (message->stage == HK_STAGE_ARRIVED) {
        complete_receive(message, message->ready_ps);
        hk_message_drop(sim, message);
    }
}

/* Take the oldest matching receive; NULL: there is none yet. */
static hk_sim_req_t *take_receive(hk_sim_t *sim, hk_channel_t *channel, const hk_message_t *message)
{
    hk_sim_rank_t *to = &sim->ranks[message->to];
    hk_sim_req_t *req = to->receive;
    if (req != NULL && to->receive_from == message->from) {
        to->receive = NULL;
        return req;
    }
    req = channel->first_receive;
    if (req != NULL) {
        channel->first_receive = req->next;
        to->held--;
    }
    return req;
}

static void start(hk_sim_t *sim, hk_message_t *message)
{
    hk_channel_t *channel = channel_of(sim, message);
    if (channel == NULL) {
        return;
    }
    message->next = NULL;
    message->stage = HK_STAGE_STARTED;
    if (message->kind != HK_TWO_SIDED) {
        come_to_channel(sim, channel, message);
        return;
    }
    hk_sim_req_t *req = take_receive(sim, channel, message);
    if (req != NULL) {
        __builtin_prefetch(req, 1); /* needed when the message has crossed the links */
        __builtin_prefetch(sim->ranks[message->to].place);
        hk_message_meet(sim, message, req);
    } else {
        *(channel->first_message == NULL ? &channel->first_message : &channel->last_message->next) = message;
        channel->last_message = message;
        sim->ranks[message->to].held++;
    }
    if (message->costs->protocol != HK_RENDEZVOUS) {
        come_to_channel(sim, channel, message);
    }
}

void hk_message_event(hk_sim_t *sim, hk_event_kind_t kind, hk_message_t *message)
{
    hk_channel_t *channel;
    switch (kind) {
    case HK_EVENT_START:
        start(sim, message);
        break;
    case HK_EVENT_TRANSFER:
        channel = channel_of(sim, message);
        if (channel != NULL) {
            come_to_channel(sim, channel, message);
        }
        break;
    case HK_EVENT_CHANNEL:
        channel = channel_of(sim, message);
        if (channel != NULL) {
            channel->first_waiting = message->next_waiting;
            leave_node(sim, channel, message);
        }
        break;
    case HK_EVENT_LAUNCH:
        launch(sim, NULL, message);
        break;
    case HK_EVENT_ARRIVE:
        enter_node(sim, message);
        break;
    case HK_EVENT_WRITE:
        write_word(sim, message);
        break;
    default: /* not an event of a message */
        break;
    }
}
