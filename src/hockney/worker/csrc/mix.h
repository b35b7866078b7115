/* SplitMix64 (Steele, Lea and Flood 2014): numbers that look random, the same on all machines. */
#ifndef HK_MIX_H
#define HK_MIX_H

#include <stdint.h>

#define HK_MIX_STEP 0x9e3779b97f4a7c15u

static inline uint64_t hk_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static inline uint64_t hk_mix_next(uint64_t *state)
{
    return hk_mix(*state += HK_MIX_STEP);
}

#endif
