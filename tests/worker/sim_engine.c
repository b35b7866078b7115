/* The engine of a simulated machine without its transport: deadlocks and coroutines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sim/engine.h"

static hk_segment_t segment = {.up_to_bytes = UINT64_MAX, .protocol = HK_SYNCHRONOUS};
static hk_class_t class = {.name = "all", .switches_max = UINT32_MAX, .segments_count = 1};

static hk_model_t model_of_one_class(void)
{
    return (hk_model_t){.name = "test",
                        .ranks_per_node = 1,
                        .node_cpus = 1,
                        .shape = HK_SHAPE_SWITCH,
                        .classes = &class,
                        .classes_count = 1,
                        .segments = &segment,
                        .segments_count = 1};
}

static void receive_from_next(hk_sim_rank_t *rank, void *arg)
{
    (void)arg;
    hk_sim_req_t req;
    const int next = (rank->base.rank + 1) % rank->base.size;
    hk_sim_recv(rank, next, NULL, 8, &req);
    hk_sim_finish(&req, HK_WAIT_RECV, next);
}

static void send_to_zero(hk_sim_rank_t *rank, void *arg)
{
    (void)arg;
    hk_sim_req_t req;
    if (rank->base.rank > 0) {
        hk_sim_send(rank, 0, NULL, 8, &req);
        hk_sim_finish(&req, HK_WAIT_SEND, 0);
    } else {
        hk_sim_barrier(rank);
    }
}

static void do_nothing(hk_sim_rank_t *rank, void *arg)
{
    (void)rank;
    ++*(int *)arg;
}

static void exchange(hk_sim_rank_t *rank, void *arg)
{
    (void)arg;
    hk_req_t reqs[2];
    const int peer = rank->base.rank ^ 1;
    for (int i = 0; i < 100; i++) {
        hk_sim_recv(rank, peer, NULL, 8, (hk_sim_req_t *)(void *)&reqs[0]);
        hk_sim_send(rank, peer, NULL, 8, (hk_sim_req_t *)(void *)&reqs[1]);
        hk_sim_finish_all(rank, reqs, 2);
    }
}

static void test_deadlocks(void)
{
    const hk_model_t model = model_of_one_class();
    char why[256];
    int began = 0;
    hk_sim_t *sim = NULL;
    CHECK(hk_sim_open(&model, 8, &sim) == HK_OK);
    hk_sim_reset(sim, 0);
    CHECK(!hk_sim_run(sim, receive_from_next, NULL, why, sizeof why));
    CHECK(strcmp(why, "deadlock: rank 0 waits for a message from rank 1, rank 1 waits for a message from rank 2, "
                      "rank 2 waits for a message from rank 3, rank 3 waits for a message from rank 4, rank 4 waits "
                      "for a message from rank 5, and 3 more ranks wait") == 0);
    hk_sim_reset(sim, 0);
    CHECK(!hk_sim_run(sim, send_to_zero, NULL, why, sizeof why));
    CHECK(strncmp(why, "deadlock: rank 0 waits in a barrier, rank 1 waits for rank 0 to receive, ", 70) == 0);
    hk_sim_reset(sim, 0);
    CHECK(hk_sim_run(sim, do_nothing, &began, why, sizeof why));
    CHECK(began == 8);
    CHECK(hk_sim_run(sim, exchange, NULL, why, sizeof why));
    CHECK(sim->messages == 800);
    hk_sim_close(sim);
}

static void test_queue_order(void)
{
    enum { EVENTS = 5000 };
    hk_queue_t queue = {0};
    unsigned state = 1;
    for (int i = 0; i < EVENTS; i++) {
        state = state * 1103515245u + 12345u;
        hk_queue_put(&queue, state >> 20, 0, NULL);
    }
    hk_event_t last = hk_queue_take(&queue);
    for (int i = 1; i < EVENTS; i++) {
        const hk_event_t event = hk_queue_take(&queue);
        CHECK(event.at_ps > last.at_ps || (event.at_ps == last.at_ps && event.number > last.number));
        last = event;
    }
    CHECK(queue.count == 0);
    hk_queue_free(&queue);
}

static void test_channels_disappear(void)
{
    hk_channels_t channels = {0};
    hk_message_t message = {0};
    hk_channel_find(&channels, 7, 9, 0)->first_message = &message;
    hk_channel_find(&channels, 8, 9, 0)->free_ps = UINT64_MAX;
    for (uint32_t i = 0; i < 100000; i++) {
        hk_channel_t *channel = hk_channel_find(&channels, i, i + 1000000, i);
        CHECK(channel != NULL && channel->free_ps == 0);
        channel->free_ps = i + 10;
    }
    CHECK(channels.room <= 4096);
    CHECK(hk_channel_find(&channels, 7, 9, 0)->first_message == &message);
    CHECK(hk_channel_find(&channels, 8, 9, 0)->free_ps == UINT64_MAX);
    free(channels.place);
}

int main(void)
{
    test_deadlocks();
    test_queue_order();
    test_channels_disappear();
    return 0;
}
