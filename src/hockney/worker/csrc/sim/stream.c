/* Byte streams between ranks. As long as a write fits into the buffer, it is taken completely or not at all. The
 * receiver's node drains writes one after another, and then they can be read. */
#include <stdlib.h>
#include <string.h>

#include "events.h"

typedef struct hk_write {
    struct hk_write *next;
    uint64_t bytes, readable_ps;
    uint64_t data_at; /* of the first of these bytes in `data` */
    bool has_data;
    unsigned char data[]; /* none, or all that was written */
} hk_write_t;

/* From one rank to another. */
struct hk_stream {
    struct hk_stream *next;
    uint32_t from, to;
    uint64_t free_bytes;      /* in the buffer */
    uint64_t drained_ps;      /* when the last write becomes readable */
    hk_write_t *first, *last; /* writes that are not read yet */
    hk_sim_rank_t *waiting;   /* for room in the buffer, or for bytes to read */
};

static uint64_t stream_ps(const hk_sim_rank_t *rank, uint32_t node, hk_stream_cost_t which, uint64_t bytes)
{
    const hk_line_t *line = &rank->sim->model->stream_cost[which];
    return hk_sim_at_node(rank->sim, node, hk_ps(line->fixed_ns + line->per_byte_ns * (double)bytes));
}

static hk_stream_t *stream_of(hk_sim_t *sim, uint32_t from, uint32_t to)
{
    hk_stream_t *stream = sim->streams;
    while (stream != NULL && (stream->from != from || stream->to != to)) {
        stream = stream->next;
    }
    if (stream == NULL && (stream = calloc(1, sizeof *stream)) != NULL) {
        *stream = (hk_stream_t){.next = sim->streams, .from = from, .to = to};
        stream->free_bytes = sim->model->stream_buffer_bytes;
        sim->streams = stream;
    }
    sim->no_memory = sim->no_memory || stream == NULL;
    return stream;
}

/* The waiting rank at the other end continues, not before at_ps. */
static void wake_other(hk_stream_t *stream, uint64_t at_ps)
{
    hk_sim_rank_t *rank = stream->waiting;
    stream->waiting = NULL;
    if (rank != NULL) {
        rank->now_ps = at_ps > rank->now_ps ? at_ps : rank->now_ps;
        hk_sim_wake(rank);
    }
}

static uint64_t stream_fitting(const hk_stream_t *stream, uint64_t bytes)
{
    const uint64_t most = stream->free_bytes;
    return bytes <= most ? bytes : stream->first == NULL ? most : 0;
}

static size_t stream_put(hk_sim_rank_t *rank, hk_stream_t *stream, const void *buf, uint64_t bytes)
{
    hk_sim_t *sim = rank->sim;
    hk_write_t *write = malloc(sizeof *write + (sim->carries ? bytes : 0));
    if (write == NULL) {
        sim->no_memory = true;
        return 0;
    }
    hk_sim_work(rank, stream_ps(rank, rank->node, HK_STREAM_WRITE, bytes));
    const uint64_t start_ps = rank->now_ps > stream->drained_ps ? rank->now_ps : stream->drained_ps;
    stream->drained_ps = hk_sum_ps(start_ps, stream_ps(rank, sim->ranks[stream->to].node, HK_STREAM_DRAIN, bytes));
    *write = (hk_write_t){.bytes = bytes, .readable_ps = stream->drained_ps, .has_data = sim->carries};
    if (write->has_data) {
        memcpy(write->data, buf, bytes);
    }
    if (stream->first == NULL) {
        stream->first = write;
    } else {
        stream->last->next = write;
    }
    stream->last = write;
    stream->free_bytes -= bytes;
    wake_other(stream, write->readable_ps);
    return (size_t)bytes;
}

static size_t stream_take(hk_sim_rank_t *rank, hk_stream_t *stream, unsigned char *buf, uint64_t bytes)
{
    uint64_t taken = 0;
    while (taken < bytes && stream->first != NULL && stream->first->readable_ps <= rank->now_ps) {
        hk_write_t *write = stream->first;
        const uint64_t part = write->bytes < bytes - taken ? write->bytes : bytes - taken;
        if (write->has_data) {
            memcpy(buf + taken, write->data + write->data_at, part);
            write->data_at += part;
        }
        write->bytes -= part;
        taken += part;
        if (write->bytes == 0) {
            stream->first = write->next;
            free(write);
        }
    }
    if (taken > 0) {
        hk_sim_work(rank, stream_ps(rank, rank->node, HK_STREAM_READ, taken));
        stream->free_bytes += taken;
        wake_other(stream, rank->now_ps);
    }
    return (size_t)taken;
}

/* A call that moves nothing. It represents all repeated calls until the next write becomes readable: they keep the
 * CPU busy, and the machine need not simulate each. */
static void stream_poll(hk_sim_rank_t *rank, const hk_stream_t *stream)
{
    const uint64_t poll_ps = stream_ps(rank, rank->node, HK_STREAM_POLL, 0);
    const uint64_t next_ps = stream->first != NULL ? stream->first->readable_ps : 0;
    const uint64_t polls = next_ps > rank->now_ps && poll_ps > 0 ? (next_ps - rank->now_ps + poll_ps - 1) / poll_ps : 1;
    hk_sim_work(rank, polls * poll_ps);
}

size_t hk_sim_write(hk_sim_rank_t *rank, int peer, const void *buf, uint64_t bytes, bool waits)
{
    hk_sim_step(rank);
    hk_stream_t *stream = stream_of(rank->sim, (uint32_t)rank->base.rank, (uint32_t)peer);
    if (stream == NULL) {
        return 0;
    }
    while (waits && stream_fitting(stream, bytes) == 0) {
        stream->waiting = rank;
        hk_sim_wait(rank, HK_WAIT_STREAM, peer);
    }
    const uint64_t some = stream_fitting(stream, bytes);
    if (some == 0) {
        stream_poll(rank, stream);
        return 0;
    }
    const size_t moved = stream_put(rank, stream, buf, some);
    rank->now_ps = hk_sum_ps(rank->now_ps, waits ? stream_ps(rank, rank->node, HK_STREAM_ACK, some) : 0);
    return moved;
}

size_t hk_sim_read(hk_sim_rank_t *rank, int peer, void *buf, uint64_t bytes, bool waits)
{
    hk_sim_step(rank);
    hk_stream_t *stream = stream_of(rank->sim, (uint32_t)peer, (uint32_t)rank->base.rank);
    if (stream == NULL) {
        return 0;
    }
    if (waits && stream->first == NULL) {
        stream->waiting = rank;
        hk_sim_wait(rank, HK_WAIT_STREAM, peer);
    }
    if (waits && stream->first != NULL && stream->first->readable_ps > rank->now_ps) {
        rank->now_ps = stream->first->readable_ps;
        hk_sim_step(rank);
    }
    const size_t moved = stream_take(rank, stream, buf, bytes);
    if (moved == 0) {
        stream_poll(rank, stream);
    }
    return moved;
}

void hk_sim_close_streams(hk_sim_t *sim)
{
    while (sim->streams != NULL) {
        hk_stream_t *stream = sim->streams;
        sim->streams = stream->next;
        while (stream->first != NULL) {
            hk_write_t *write = stream->first;
            stream->first = write->next;
            free(write);
        }
        free(stream);
    }
}
