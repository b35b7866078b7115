/* The data of messages, in the repetition that is verified. */
#include <stdlib.h>
#include <string.h>

#include "events.h"

static bool has_copy(const hk_message_t *message)
{
    return message->has_data && message->costs->bytes > sizeof message->word;
}

void hk_data_take(hk_sim_t *sim, hk_message_t *message, const void *buf)
{
    const size_t bytes = message->costs->bytes;
    if (bytes <= sizeof message->word) {
        memcpy(&message->word, buf, bytes);
        message->has_data = true;
        return;
    }
    void *copy = bytes <= sim->data_most - sim->data_bytes ? malloc(bytes) : NULL;
    if (copy == NULL) {
        sim->no_memory = true;
        return;
    }
    memcpy(copy, buf, bytes);
    sim->data_bytes += bytes;
    message->copy = copy;
    message->has_data = true;
}

void hk_data_drop(hk_sim_t *sim, hk_message_t *message)
{
    if (has_copy(message)) {
        sim->data_bytes -= message->costs->bytes;
        free(message->copy);
    }
    message->has_data = false;
}

void hk_data_give(hk_sim_t *sim, hk_message_t *message, const hk_sim_req_t *req)
{
    const size_t bytes = message->costs->bytes;
    const size_t room_bytes = req->room_bytes;
    if (bytes != room_bytes && !sim->has_misfit) {
        hk_log((int)message->to, "a message of %zu B from rank %u met a receive of %zu B", bytes, message->from,
               room_bytes);
        sim->has_misfit = true;
    }
    memcpy(req->room, has_copy(message) ? message->copy : &message->word, bytes < room_bytes ? bytes : room_bytes);
    hk_data_drop(sim, message);
}
