/* Memory that other ranks access, for libraries that want an address and a key for it: ucx:put and ofi:write. */
#ifndef HK_REGIONS_H
#define HK_REGIONS_H

#include <stdatomic.h>
#include <stdlib.h>

#include "../control.h"
#include "../transport.h"

enum { HK_REGIONS_MAX = 16, HK_REGION_PAGE_BYTES = 4096, HK_WORD_POLLS = 16 /* between two calls of the library */ };

/* Where a region is on one rank. key: a number or a pointer, as the library has it. */
typedef struct hk_spot {
    uint64_t begin, key;
} hk_spot_t;

/* One allocation, on all ranks. */
typedef struct hk_region {
    void *handle;          /* the library's */
    unsigned char *memory; /* this rank's, page-aligned */
    size_t room_bytes;     /* more than was asked for: a put of nothing lies within, too */
    hk_spot_t *spot;       /* [size] */
} hk_region_t;

typedef struct hk_regions {
    size_t count;
    size_t last; /* the last used one */
    hk_region_t region[HK_REGIONS_MAX];
} hk_regions_t;

/* A rank's part of making a region. make: fails on all ranks or on none. */
typedef struct hk_region_kind {
    hk_status_t (*make)(hk_ctx_t *ctx, hk_region_t *region);
    void (*drop)(hk_ctx_t *ctx, hk_region_t *region); /* also of one that is not complete */
} hk_region_kind_t;

static inline bool hk_region_has(const hk_region_t *region, const void *address)
{
    return (uintptr_t)address - (uintptr_t)region->memory < region->room_bytes;
}

/* The region of an address: usually the last used one, else one of two or three. */
static inline const hk_region_t *hk_region_at(hk_regions_t *regions, const void *address)
{
    if (__builtin_expect(!hk_region_has(&regions->region[regions->last], address), 0)) {
        for (regions->last = 0; !hk_region_has(&regions->region[regions->last], address); regions->last++) {
        }
    }
    return &regions->region[regions->last];
}

static inline uint64_t hk_region_place(const hk_region_t *region, int peer, const void *address)
{
    return region->spot[peer].begin + (uint64_t)((const unsigned char *)address - region->memory);
}

static inline void hk_region_end(hk_ctx_t *ctx, const hk_region_kind_t *kind, hk_region_t *region)
{
    kind->drop(ctx, region);
    free(region->spot);
    *region = (hk_region_t){.room_bytes = 0};
}

/* The hook alloc. */
static inline void *hk_region_alloc(hk_ctx_t *ctx, hk_regions_t *regions, hk_control_t *control,
                                    const hk_region_kind_t *kind, size_t size_bytes)
{
    if (regions->count == HK_REGIONS_MAX) {
        hk_log(ctx->rank, "%s: no room for more than %d regions of memory", ctx->tp->name, HK_REGIONS_MAX);
        return NULL;
    }
    hk_region_t *made = &regions->region[regions->count];
    made->room_bytes = (size_bytes / HK_REGION_PAGE_BYTES + 1) * HK_REGION_PAGE_BYTES;
    made->spot = hk_control_calloc(control, (size_t)ctx->size, sizeof *made->spot);
    if (made->spot == NULL || kind->make(ctx, made) != HK_OK) {
        hk_region_end(ctx, kind, made);
        return NULL;
    }
    regions->count++;
    return made->memory;
}

/* The hook free. No rank frees what a peer may still access. */
static inline void hk_region_free(hk_ctx_t *ctx, hk_regions_t *regions, hk_control_t *control,
                                  const hk_region_kind_t *kind)
{
    if (ctx->tp->quiet(ctx) != HK_OK) {
        hk_control_close(control); /* the job ends: what was started may still use memory of the next point */
    }
    (void)hk_control_barrier(control);
    regions->last = 0;
    hk_region_end(ctx, kind, &regions->region[--regions->count]);
}

/* Whether a word has the value within some looks at it. */
static inline bool hk_word_is(const uint64_t *word, uint64_t value)
{
    const _Atomic uint64_t *seen = (const _Atomic uint64_t *)(const void *)word;
    for (int i = 0; i < HK_WORD_POLLS; i++) {
        if (atomic_load_explicit(seen, memory_order_acquire) == value) {
            return true;
        }
    }
    return false;
}

#endif
