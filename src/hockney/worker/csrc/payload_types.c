/* cold */
/* Payloads of reductions: elements of all types, and their exact results. */
#include <math.h>
#include <string.h>

#include "payload.h"

/* Bits of the fraction and of the exponent. */
typedef struct real_format {
    int fraction, exponent;
} real_format_t;

static real_format_t format_of(hk_type_t type)
{
    return type == HK_FLOAT16    ? (real_format_t){10, 5}
           : type == HK_BFLOAT16 ? (real_format_t){7, 8}
           : type == HK_FLOAT32  ? (real_format_t){23, 8}
                                 : (real_format_t){52, 11};
}

/* IEEE 754 bits of a number in the type's normal range, rounded to nearest, and back. */
static uint64_t bits_of(double value, hk_type_t type)
{
    const real_format_t format = format_of(type);
    int exponent = 0;
    const double fraction = frexp(fabs(value), &exponent); /* from 0.5 to 1 */
    const int bias = (1 << (format.exponent - 1)) - 1;
    uint64_t bits = 0;
    if (value != 0) {
        /* A fraction that rounds up to 2 increments the exponent, as the sum has it. */
        const double scaled = nearbyint(ldexp(fraction, format.fraction + 1)) - ldexp(1.0, format.fraction);
        bits = ((uint64_t)(exponent - 1 + bias) << format.fraction) + (uint64_t)scaled;
    }
    return bits | (uint64_t)(value < 0) << (format.fraction + format.exponent);
}

static double real_of(uint64_t bits, hk_type_t type)
{
    const real_format_t format = format_of(type);
    const int bias = (1 << (format.exponent - 1)) - 1;
    const uint64_t fraction = bits & (((uint64_t)1 << format.fraction) - 1);
    const int exponent = (int)(bits >> format.fraction & (((uint64_t)1 << format.exponent) - 1));
    if (exponent == (1 << format.exponent) - 1) {
        return NAN; /* or infinite: no payload is */
    }
    const double size =
        exponent == 0 ? ldexp((double)fraction, 1 - bias - format.fraction)
                      : ldexp((double)(fraction | (uint64_t)1 << format.fraction), exponent - bias - format.fraction);
    return bits >> (format.fraction + format.exponent) != 0 ? -size : size;
}

/* Whether sums and products of random elements leave the range, where some libraries saturate and others wrap. */
static bool is_narrow(hk_type_t type, hk_reduction_t reduction)
{
    return hk_type_bytes[type] <= 2 && (reduction == HK_SUM || reduction == HK_PROD);
}

/* Sums and products of 4,096 ranks stay in 8 bits, and half of the elements of the first ranks count: of rank r 1 in 2
 * but not more than 9 in r adds one. A product changes its sign with 1 in 2; without signs, 1 in 2 (r + 1) doubles. */
static uint64_t narrow_element(size_t index, hk_type_t type, hk_reduction_t reduction, int rank, uint64_t seed)
{
    enum { HALF = 128, NINE = 9 * 256, FIRST = 18 };
    const int byte = hk_payload_byte(index, rank, seed);
    if (reduction == HK_SUM) {
        return byte < (rank < FIRST ? HALF : NINE / rank + 1);
    }
    const bool is_signed = type == HK_INT8 || type == HK_INT16;
    return byte >= (is_signed ? HALF : HALF / (rank + 1)) ? 1 : is_signed ? ~(uint64_t)0 : 2;
}

/* The bits of an element of rank's payload. A real number has as many random bits as the type holds: k / 2^fraction
 * with |k| up to 2^fraction. Of products it is 1 + k / 2^fraction with k 16 times smaller, or 64 times if the exponent
 * is narrow, so that those of thousands of ranks stay normal. With seed 0, of repetitions that are timed and not
 * verified, it is 1 or -1: a result that is multiplied again and again stays normal. */
static uint64_t element(size_t index, hk_type_t type, hk_reduction_t reduction, int rank, uint64_t seed)
{
    const size_t bytes = hk_type_bytes[type], at = index * bytes;
    if (!hk_is_real(type)) {
        const uint64_t bits = hk_payload_word(at / 8, rank, seed) >> (8 * (at % 8));
        return is_narrow(type, reduction) ? narrow_element(index, type, reduction, rank, seed)
                                          : bits & (~(uint64_t)0 >> (64 - 8 * bytes));
    }
    const real_format_t format = format_of(type);
    const uint64_t bits = hk_payload_word(index, rank, seed);
    if (reduction == HK_PROD && seed == 0) {
        return bits_of(bits % 2 == 0 ? 1 : -1, type);
    }
    const int fewer = reduction != HK_PROD ? 0 : format.exponent > 5 ? 4 : 6;
    const int random_bits = format.fraction - fewer;
    const double k = (double)(int64_t)(bits >> (63 - random_bits)) - ldexp(1.0, random_bits);
    return bits_of(ldexp(k, -format.fraction) + (reduction == HK_PROD ? 1 : 0), type);
}

/* Little-endian machines only, as everywhere here: bytes in memory are those of the number. */
static void store(unsigned char *at, uint64_t bits, size_t bytes)
{
    memcpy(at, &bits, bytes);
}

void hk_payload_fill_elements(unsigned char *out, size_t size_bytes, hk_type_t type, hk_reduction_t reduction, int rank,
                              size_t from_offset, uint64_t seed)
{
    const size_t bytes = hk_type_bytes[type];
    if (!hk_is_real(type) && !is_narrow(type, reduction)) {
        hk_payload_fill_part(out, size_bytes, rank, from_offset, seed);
        return;
    }
    for (size_t i = 0; i < size_bytes / bytes; i++) {
        store(out + i * bytes, element(from_offset / bytes + i, type, reduction, rank, seed), bytes);
    }
}

void hk_payload_fill_type(unsigned char *out, size_t size_bytes, hk_type_t type, hk_reduction_t reduction, int rank,
                          uint64_t seed)
{
    hk_payload_fill_elements(out, size_bytes, type, reduction, rank, 0, seed);
}

/* Sign-extended, if the type is signed. */
static int64_t whole_of(uint64_t bits, hk_type_t type)
{
    const int unused = 64 - 8 * (int)hk_type_bytes[type];
    const bool is_signed = type == HK_INT8 || type == HK_INT16 || type == HK_INT32 || type == HK_INT64;
    const uint64_t high = bits << unused;
    return is_signed ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

static bool is_less(uint64_t a, uint64_t b, hk_type_t type)
{
    return type == HK_UINT64 ? a < b : whole_of(a, type) < whole_of(b, type);
}

static uint64_t reduce_whole(size_t index, const hk_reduced_t *reduced, uint64_t seed)
{
    uint64_t result = 0;
    for (int rank = reduced->first; rank < reduced->end; rank++) {
        const uint64_t next = element(index, reduced->type, reduced->reduction, rank, seed);
        const bool is_first = rank == reduced->first;
        switch (reduced->reduction) {
        case HK_SUM:
            result += next;
            break;
        case HK_PROD:
            result = is_first ? next : result * next;
            break;
        case HK_MIN:
            result = is_first || is_less(next, result, reduced->type) ? next : result;
            break;
        case HK_MAX:
            result = is_first || is_less(result, next, reduced->type) ? next : result;
            break;
        case HK_BAND:
            result = is_first ? next : result & next;
            break;
        case HK_BOR:
            result |= next;
            break;
        case HK_BXOR:
        case HK_REDUCTIONS:
            result ^= next;
            break;
        }
    }
    return result;
}

typedef struct real_result {
    double value, error; /* the largest difference that rounding explains */
} real_result_t;

/* The sum of n numbers in any order is wrong by (n - 1) u times the sum of their sizes at most, a product of n by
 * (n - 1) u of itself, to first order in u, the unit roundoff (N. Higham, Accuracy and Stability of Numerical
 * Algorithms, 2002, chapters 3 and 4). Libraries may round once more to store. */
static real_result_t reduce_real(size_t index, const hk_reduced_t *reduced, uint64_t seed)
{
    const double roundoff = ldexp(1.0, -format_of(reduced->type).fraction - 1);
    const double operations = 1.01 * (reduced->end - reduced->first);
    double value = 0, sizes = 0;
    for (int rank = reduced->first; rank < reduced->end; rank++) {
        const double next = real_of(element(index, reduced->type, reduced->reduction, rank, seed), reduced->type);
        const bool is_first = rank == reduced->first;
        sizes += fabs(next);
        switch (reduced->reduction) {
        case HK_PROD:
            value = is_first ? next : value * next;
            break;
        case HK_MIN:
            value = is_first || next < value ? next : value;
            break;
        case HK_MAX:
            value = is_first || next > value ? next : value;
            break;
        default:
            value += next;
            break;
        }
    }
    const double scale = reduced->reduction == HK_SUM ? sizes : reduced->reduction == HK_PROD ? fabs(value) : 0;
    /* This sum is rounded, too. */
    return (real_result_t){value, operations * (roundoff + ldexp(1.0, -53)) * scale};
}

bool hk_payload_check_reduced(const unsigned char *in, size_t size_bytes, const hk_reduced_t *reduced,
                              size_t from_offset, uint64_t seed, size_t *wrong_p)
{
    const size_t bytes = hk_type_bytes[reduced->type];
    for (size_t at = 0; at < size_bytes; at += bytes) {
        const size_t index = (from_offset + at) / bytes;
        uint64_t found = 0;
        bool is_right = false;
        memcpy(&found, in + at, bytes);
        if (hk_is_real(reduced->type)) {
            const real_result_t exact = reduce_real(index, reduced, seed);
            is_right = fabs(real_of(found, reduced->type) - exact.value) <= exact.error; /* false for NaN */
        } else {
            const uint64_t exact = reduce_whole(index, reduced, seed);
            is_right = whole_of(found, reduced->type) == whole_of(exact, reduced->type);
        }
        if (!is_right) {
            *wrong_p = at;
            for (size_t i = 0; i < bytes; i++) { /* the first byte that differs, if one does */
                if (in[at + i] != hk_payload_reduced_byte(from_offset + at + i, reduced, seed)) {
                    *wrong_p = at + i;
                    break;
                }
            }
            return false;
        }
    }
    return true;
}

unsigned char hk_payload_reduced_byte(size_t offset, const hk_reduced_t *reduced, uint64_t seed)
{
    const size_t bytes = hk_type_bytes[reduced->type];
    const uint64_t bits = hk_is_real(reduced->type)
                              ? bits_of(reduce_real(offset / bytes, reduced, seed).value, reduced->type)
                              : reduce_whole(offset / bytes, reduced, seed);
    return (unsigned char)(bits >> (8 * (offset % bytes)));
}
