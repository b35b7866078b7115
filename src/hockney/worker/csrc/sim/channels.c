/* The channels of pairs of ranks with messages under way: a hash table that drops idle pairs. */
#include <stdlib.h>

#include "engine.h"

enum { FIRST_CHANNELS = 1024 };

static uint64_t key_of(uint32_t from, uint32_t to)
{
    return ((uint64_t)from << 32 | to) + 1;
}

static size_t place_of(uint64_t key, size_t room)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (room - 1);
}

static bool is_idle(const hk_channel_t *channel, uint64_t now_ps)
{
    return channel->first_message == NULL && channel->first_receive == NULL && channel->first_waiting == NULL &&
           channel->free_ps <= now_ps;
}

/* Only channels in use move to the new table. */
static bool rebuild(hk_channels_t *channels, uint64_t now_ps)
{
    size_t busy = 0;
    for (size_t i = 0; i < channels->room; i++) {
        busy += channels->place[i].key != 0 && !is_idle(&channels->place[i], now_ps);
    }
    size_t room = FIRST_CHANNELS;
    while (room < 4 * busy) {
        room *= 2;
    }
    hk_channel_t *place = calloc(room, sizeof *place);
    if (place == NULL) {
        return false;
    }
    for (size_t i = 0; i < channels->room; i++) {
        const hk_channel_t *channel = &channels->place[i];
        if (channel->key != 0 && !is_idle(channel, now_ps)) {
            size_t to = place_of(channel->key, room);
            while (place[to].key != 0) {
                to = (to + 1) & (room - 1);
            }
            place[to] = *channel;
        }
    }
    free(channels->place);
    *channels = (hk_channels_t){.place = place, .room = room, .used = busy};
    return true;
}

/* The entry of a key, or a place for it: an idle channel on the search path, because no search for another key needs
 * it. */
static hk_channel_t *look_up(const hk_channels_t *channels, uint64_t key, uint64_t now_ps)
{
    hk_channel_t *idle = NULL;
    for (size_t i = place_of(key, channels->room);; i = (i + 1) & (channels->room - 1)) {
        hk_channel_t *channel = &channels->place[i];
        if (channel->key == key) {
            return channel;
        }
        if (channel->key == 0) {
            return idle != NULL ? idle : channel;
        }
        if (idle == NULL && is_idle(channel, now_ps)) {
            idle = channel;
        }
    }
}

hk_channel_t *hk_channel_find(hk_channels_t *channels, uint32_t from, uint32_t to, uint64_t now_ps)
{
    const uint64_t key = key_of(from, to);
    for (;;) {
        hk_channel_t *channel = channels->room > 0 ? look_up(channels, key, now_ps) : NULL;
        if (channel != NULL && channel->key == key) {
            return channel;
        }
        if (channel != NULL && (channel->key != 0 || 2 * (channels->used + 1) <= channels->room)) {
            channels->used += channel->key == 0;
            *channel = (hk_channel_t){.key = key};
            return channel;
        }
        if (!rebuild(channels, now_ps)) {
            return NULL;
        }
    }
}
