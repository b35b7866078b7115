/* Payloads that identify their origin: the sending rank, the offset and a seed determine each byte. */
#ifndef HK_PAYLOAD_H
#define HK_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill out[0..len) with rank's payload for this seed. */
void hk_payload_fill(unsigned char *out, size_t size_bytes, int rank, uint64_t seed);

/* The payload byte at this offset. */
unsigned char hk_payload_byte(size_t offset, int rank, uint64_t seed);

/* Ranks whose payloads are added, in words of 8 bytes: first to end - 1. */
typedef struct hk_payload_ranks {
    int first, end;
} hk_payload_ranks_t;

/* A byte of the sum. */
unsigned char hk_payload_sum_byte(size_t offset, hk_payload_ranks_t ranks, uint64_t seed);

/* hk_payload_check for the sum. */
bool hk_payload_check_sum(const unsigned char *in, size_t size_bytes, hk_payload_ranks_t ranks, size_t from_offset,
                          uint64_t seed, size_t *wrong_p);

/* Compare in[0..len) with rank's payload from from_offset on. False: *wrong_p is the first wrong index in `in`. */
bool hk_payload_check(const unsigned char *in, size_t size_bytes, int rank, size_t from_offset, uint64_t seed,
                      size_t *wrong_p);

#endif
