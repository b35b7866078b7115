/* Payloads that identify their origin: the sending rank, the offset and a seed determine each byte. */
#ifndef HK_PAYLOAD_H
#define HK_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective.h"

/* Fill out[0..len) with rank's payload for this seed. */
void hk_payload_fill(unsigned char *out, size_t size_bytes, int rank, uint64_t seed);

/* The same, with rank's payload from from_offset on. */
void hk_payload_fill_part(unsigned char *out, size_t size_bytes, int rank, size_t from_offset, uint64_t seed);

/* Payload bytes 8 * index to 8 * index + 7, the first one lowest. */
uint64_t hk_payload_word(size_t index, int rank, uint64_t seed);

/* The payload byte at this offset. */
unsigned char hk_payload_byte(size_t offset, int rank, uint64_t seed);

/* Compare in[0..len) with rank's payload from from_offset on. False: *wrong_p is the first wrong index in `in`. */
bool hk_payload_check(const unsigned char *in, size_t size_bytes, int rank, size_t from_offset, uint64_t seed,
                      size_t *wrong_p);

/* A reduction of the payloads of ranks first to end - 1, element by element. */
typedef struct hk_reduced {
    hk_type_t type;
    hk_reduction_t reduction;
    int first, end;
} hk_reduced_t;

/* Fill out[0..size_bytes) with rank's elements for this reduction: the payload as it is, small integers for sums and
 * products of 8 and 16 bits, or floating-point numbers from -1 to 1 (near 1 for a product; with seed 0 then 1 or -1)
 * that the type holds exactly.
 * size_bytes: whole elements. */
void hk_payload_fill_type(unsigned char *out, size_t size_bytes, hk_type_t type, hk_reduction_t reduction, int rank,
                          uint64_t seed);

/* The same, with the elements from from_offset on, which is that of an element. */
void hk_payload_fill_elements(unsigned char *out, size_t size_bytes, hk_type_t type, hk_reduction_t reduction, int rank,
                              size_t from_offset, uint64_t seed);

/* hk_payload_check of a reduction, from the element at from_offset on. Sums and products of floating-point numbers may
 * be wrong by the rounding of as many operations as there are ranks, in any order; all else is exact. */
bool hk_payload_check_reduced(const unsigned char *in, size_t size_bytes, const hk_reduced_t *reduced,
                              size_t from_offset, uint64_t seed, size_t *wrong_p);

/* A byte of the exact result, rounded to the type. */
unsigned char hk_payload_reduced_byte(size_t offset, const hk_reduced_t *reduced, uint64_t seed);

#endif
