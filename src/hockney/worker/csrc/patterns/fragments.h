/* Fragments of events: a size and data for each event, source and stream. */
#ifndef HK_FRAGMENTS_H
#define HK_FRAGMENTS_H

#include "../mix.h"
#include "../pattern.h"

/* Options, in this order, from place `first` on. */
enum { HK_FRAGMENT_SIZES, HK_FRAGMENT_SIGMA, HK_FRAGMENT_STREAMS, HK_FRAGMENT_OPTIONS_COUNT };

// clang-format off
#define HK_FRAGMENT_OPTIONS \
    {"fragment", "fixed" HK_LIST, 0, 0, 0, \
     "sizes: all alike; lognormal:SIGMA; or as the sizes in a file, scaled to the mean that --bytes names"}, \
    {"sigma_percent", NULL, 0, 0, 300, "sigma of lognormal sizes: fragment=lognormal:0.5 is 50; 0: fixed"}, \
    {"streams", NULL, 1, 1, 64, "fragments of each sender in an event, all under way at once"}
// clang-format on

enum { HK_FRAGMENT_MARKS = 8, HK_FRAGMENT_STEP_BYTES = 64 };

/* The sizes: `count` of them are equally likely. Their mean is the size of the point. */
typedef struct hk_fragments {
    size_t size[HK_LIST_MAX];
    size_t count, largest;
    int streams;
} hk_fragments_t;

/* Whether the options suit each other and the transport; if not, why[0..len) holds a sentence. */
bool hk_fragments_fit(const hk_run_t *run, size_t first, char *why, size_t len);
void hk_fragments_of(const hk_run_t *run, size_t first, hk_fragments_t *fragments_p);

/* The bytes of one fragment, which its sender and its receiver both know. */
static inline size_t hk_fragment_bytes(const hk_fragments_t *fragments, uint64_t event, int sender, int stream)
{
    const uint64_t number = (event << 18) + ((uint64_t)sender << 6) + (uint64_t)stream;
    return fragments->size[fragments->count == 1 ? 0 : hk_mix(number * HK_MIX_STEP) % fragments->count];
}

/* Where the fragment of an event begins in `out` of its sender: other data for the events before and after it, and for
 * each stream. */
static inline size_t hk_fragment_at(uint64_t event, uint64_t receivers, int stream)
{
    const uint64_t mark = (event / receivers + event % receivers) % HK_FRAGMENT_MARKS;
    return HK_FRAGMENT_STEP_BYTES * ((size_t)stream * HK_FRAGMENT_MARKS + (size_t)mark);
}

/* What `out` of a sender holds. */
static inline size_t hk_fragments_out_bytes(const hk_fragments_t *fragments)
{
    return fragments->largest + (size_t)(HK_FRAGMENT_STEP_BYTES * HK_FRAGMENT_MARKS * fragments->streams);
}

#endif
