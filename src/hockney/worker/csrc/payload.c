#include "payload.h"

#include <string.h>

#include "mix.h"

/* The payloads of neighbouring bytes, ranks and seeds differ, so shifted, stale and swapped data are detected. */
uint64_t hk_payload_word(size_t index, int rank, uint64_t seed)
{
    return hk_mix(index + HK_MIX_STEP * (seed + 1) + ((uint64_t)(unsigned)rank << 40));
}

unsigned char hk_payload_byte(size_t offset, int rank, uint64_t seed)
{
    return (unsigned char)(hk_payload_word(offset / 8, rank, seed) >> (8 * (offset % 8)));
}

void hk_payload_fill_part(unsigned char *out, size_t size_bytes, int rank, size_t from_offset, uint64_t seed)
{
    size_t i = 0;
    while (i < size_bytes) {
        uint64_t bits = hk_payload_word((from_offset + i) / 8, rank, seed) >> (8 * ((from_offset + i) % 8));
        const size_t end = i + 8 - (from_offset + i) % 8;
        for (; i < size_bytes && i < end; i++, bits >>= 8) {
            out[i] = (unsigned char)bits;
        }
    }
}

void hk_payload_fill(unsigned char *out, size_t size_bytes, int rank, uint64_t seed)
{
    hk_payload_fill_part(out, size_bytes, rank, 0, seed);
}

bool hk_payload_check(const unsigned char *in, size_t size_bytes, int rank, size_t from_offset, uint64_t seed,
                      size_t *wrong_p)
{
    size_t i = 0;
    while (i < size_bytes) {
        uint64_t bits = hk_payload_word((from_offset + i) / 8, rank, seed) >> (8 * ((from_offset + i) % 8));
        const size_t end = i + 8 - (from_offset + i) % 8;
        for (; i < size_bytes && i < end; i++, bits >>= 8) {
            if (in[i] != (unsigned char)bits) {
                *wrong_p = i;
                return false;
            }
        }
    }
    return true;
}
