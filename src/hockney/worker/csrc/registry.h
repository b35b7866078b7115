/* The lists of what this executable holds. Adding a pattern or a transport is one file and one line in registry.c. */
#ifndef HK_REGISTRY_H
#define HK_REGISTRY_H

#include <stdio.h>

#include "command.h"
#include "pattern.h"
#include "transport.h"

/* NULL-terminated. */
extern const hk_pattern_t *const hk_patterns[];
extern const hk_transport_t *const hk_transports[];

/* The capabilities, in the order of their flags. */
typedef struct hk_capability {
    const char *name, *words;
} hk_capability_t;
extern const hk_capability_t hk_capabilities[HK_CAPS_COUNT];

/* "root", "sources", …: the word for each hk_timed_t. */
extern const char *const hk_timed_names[];

const hk_transport_t *hk_transport_find(const char *name);

/* The first capability that is needed and not offered, in words; NULL if none. */
const char *hk_missing_cap(uint32_t needs, uint32_t caps);

/* "barrier", "broadcast", …: the word for each hk_collective_t; NULL for none. */
extern const char *const hk_collective_names[HK_COLLECTIVES];

/* Whether a transport has this collective of its own. */
bool hk_has_collective(const hk_transport_t *tp, hk_collective_t collective);

/* False, with a sentence in why, if a job of ctx->size ranks can't run the command's point, ranks_here of them on this
 * host; 0: that is not known. Of ctx only what a pattern may ask before `plan` is needed. */
bool hk_point_fits(hk_ctx_t *ctx, const hk_command_t *command, int ranks_here, char why[HK_ERROR_MAX]);

/* False, with a sentence in why: buffers are above the share of memory of one of ranks_here ranks; 0: not known.
 * Systems promise more memory than they have, and end some process when it is touched: so we look first. */
bool hk_memory_fits(size_t out_bytes, size_t in_bytes, int ranks_here, char why[HK_ERROR_MAX]);

/* `--fits`: for each line of in, "TRANSPORT RANKS RANKS_HERE measure ...", an answer on descriptor fd that says why the
 * point can't be measured, or null. */
hk_status_t hk_fits(FILE *in, int fd);

/* `--describe`: every pattern and transport of this executable as one answer on descriptor fd. */
hk_status_t hk_describe(int fd);

#endif
