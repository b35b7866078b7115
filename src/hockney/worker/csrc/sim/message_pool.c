/* Memory for messages, which is released only when the machine closes. */
#include <stdlib.h>

#include "events.h"

enum { BLOCK_MESSAGES = 256 };

struct hk_block {
    struct hk_block *next;
    hk_message_t message[BLOCK_MESSAGES];
};

static void drop_block(hk_sim_t *sim, struct hk_block *block)
{
    for (size_t i = BLOCK_MESSAGES; i-- > 0;) {
        hk_message_drop(sim, &block->message[i]);
    }
}

hk_message_t *hk_message_new(hk_sim_t *sim)
{
    if (sim->free_messages == NULL) {
        struct hk_block *block = calloc(1, sizeof *block); /* without data */
        if (block == NULL) {
            sim->no_memory = true;
            return NULL;
        }
        block->next = sim->blocks;
        sim->blocks = block;
        drop_block(sim, block);
    }
    hk_message_t *message = sim->free_messages;
    sim->free_messages = message->next;
    return message;
}

void hk_message_drop(hk_sim_t *sim, hk_message_t *message)
{
    message->next = sim->free_messages;
    sim->free_messages = message;
}

void hk_messages_drop_all(hk_sim_t *sim)
{
    sim->free_messages = NULL;
    for (struct hk_block *block = sim->blocks; block != NULL; block = block->next) {
        for (size_t i = 0; i < BLOCK_MESSAGES; i++) {
            hk_data_drop(sim, &block->message[i]);
        }
        drop_block(sim, block);
    }
}

void hk_messages_free(hk_sim_t *sim)
{
    while (sim->blocks != NULL) {
        struct hk_block *block = sim->blocks;
        sim->blocks = block->next;
        free(block);
    }
}
