/* How one-sided operations complete: the option `sync`, for patterns whose operations are started. */
#ifndef HK_EPOCH_H
#define HK_EPOCH_H

#include "../onesided.h"
#include "../pattern.h"

/* The values of `sync` are those of hk_epoch_kind_t. */
// clang-format off
#define HK_SYNC_WORD(name, word) "|" word
#define HK_SYNC_STARTED (&"" HK_EPOCHS_(HK_SYNC_WORD)[1])
#define HK_SYNC_HELP "how operations complete: each by its call, or those of a window together, by this synchronisation"
#define HK_EPOCH_OPTION_SYNC {"sync", "blocking" HK_EPOCHS_(HK_SYNC_WORD), HK_NO_EPOCH, 0, 0, HK_SYNC_HELP}
// clang-format on

/* Whether the transport has started operations and such epochs; else why[0..len) holds a sentence. */
bool hk_epoch_fits(const hk_run_t *run, hk_epoch_kind_t kind, char *why, size_t len);

/* Before the first repetition, and after the last one, if it was made. Without an epoch, `end` is the transport's
 * quiet. */
hk_status_t hk_epoch_make(hk_ctx_t *ctx, hk_epoch_t *epoch);
hk_status_t hk_epoch_drop(hk_ctx_t *ctx, hk_epoch_t *epoch);

/* Returns status; if that is an error, the epoch is dropped. */
hk_status_t hk_epoch_keep(hk_ctx_t *ctx, hk_epoch_t *epoch, hk_status_t status);

/* Whether this rank has something to do in such epochs. */
static inline bool hk_takes_part(const hk_epoch_t *epoch)
{
    const bool is_accessed = hk_is_active(epoch->kind) && epoch->from_count > 0;
    return epoch->to_count > 0 || is_accessed || epoch->kind == HK_EPOCH_FENCE || epoch->kind == HK_EPOCH_FENCES;
}

#endif
