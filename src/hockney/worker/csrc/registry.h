/* The patterns and transports of this executable. A new one needs one file and one line in registry.c. */
#ifndef HK_REGISTRY_H
#define HK_REGISTRY_H

#include <stdio.h>

#include "command.h"
#include "pattern.h"
#include "transport.h"

/* Ends with NULL. */
extern const hk_pattern_t *const hk_patterns[];
extern const hk_transport_t *const hk_transports[];

/* The capabilities, in the order of their flags. */
typedef struct hk_capability {
    const char *name, *words;
} hk_capability_t;
extern const hk_capability_t hk_capabilities[HK_CAPS_COUNT];

/* "root", "sources", …: the word for each hk_timed_t. */
extern const char *const hk_timed_names[];

/* The ranks whose samples give the figure. */
hk_timed_t hk_timed_of(const hk_pattern_t *pattern, const hk_plan_t *plan);

const hk_transport_t *hk_transport_find(const char *name);

/* The first variant of a transport that offers these capabilities, such as mpi:rma for mpi; NULL if there is none. */
const hk_transport_t *hk_variant_with(const hk_transport_t *tp, uint32_t needs);

/* Describes the first capability that is needed and not offered; NULL if there is none. */
const char *hk_missing_cap(uint32_t needs, uint32_t caps);

/* Whether a job of ctx->size ranks can run the command's point; if not, why holds a sentence. ranks_here of the
 * ranks are on this host; 0: unknown. Uses only the parts of ctx that `plan` may use. */
bool hk_point_fits(hk_ctx_t *ctx, const hk_command_t *command, int ranks_here, char why[HK_ERROR_MAX]);

/* Whether the buffers fit into one rank's share of memory among ranks_here ranks (0: unknown); if not, why holds a
 * sentence. Systems promise more memory than they have and kill a process when it is touched. */
bool hk_memory_fits(size_t out_bytes, size_t in_bytes, int ranks_here, char why[HK_ERROR_MAX]);

/* `--fits`: for each input line "TRANSPORT RANKS RANKS_HERE measure ..." an answer on fd: why the point cannot be
 * measured, or null. */
hk_status_t hk_fits(FILE *in, int fd);

/* `--describe`: all patterns and transports of this executable as one answer on fd. */
hk_status_t hk_describe(int fd);

#endif
