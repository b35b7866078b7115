/* Payloads that say where they come from: each byte follows from the sending rank, its place and a seed. */
#ifndef HK_PAYLOAD_H
#define HK_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill out[0..len) as rank's payload under this seed. */
void hk_payload_fill(unsigned char *out, size_t len_bytes, int rank, uint64_t seed);

/* The byte at place offset. */
unsigned char hk_payload_byte(size_t offset, int rank, uint64_t seed);

/* Ranks whose payloads are added up, as words of 8 bytes: from first to end - 1. */
typedef struct hk_payload_ranks {
    int first, end;
} hk_payload_ranks_t;

/* A byte of the sum. */
unsigned char hk_payload_sum_byte(size_t offset, hk_payload_ranks_t ranks, uint64_t seed);

/* As hk_payload_check, of that sum. */
bool hk_payload_check_sum(const unsigned char *in, size_t len_bytes, hk_payload_ranks_t ranks, size_t from_offset,
                          uint64_t seed, size_t *wrong_p);

/* False if in[0..len) is not rank's payload from place from_offset on; then *wrong_p is the first wrong place in it. */
bool hk_payload_check(const unsigned char *in, size_t len_bytes, int rank, size_t from_offset, uint64_t seed,
                      size_t *wrong_p);

#endif
