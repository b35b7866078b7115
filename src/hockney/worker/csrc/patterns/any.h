/* Receives of a message from any rank, with any tag, or both: the last words of the option `receive`. */
#ifndef HK_ANY_H
#define HK_ANY_H

#include <stdio.h>

#include "../pattern.h"

/* Counted from the first of these words; below 0: another one. */
enum { HK_ANY_SOURCE, HK_ANY_TAG, HK_ANY_BOTH };
#define HK_ANY_WORDS "any-source|any-tag|any"

static inline bool hk_any_fits(const hk_run_t *run, int64_t any, char *why, size_t len)
{
    static const char *const words[] = {"any-source", "any-tag", "any"};
    if (any < 0 || (run->ctx->tp->caps & HK_CAP_MATCHING) != 0) {
        return true;
    }
    snprintf(why, len, "receive=%s needs receives from any rank or with any tag, which %s does not offer", words[any],
             run->ctx->tp->name);
    return false;
}

/* What to pass to recv_tagged. */
static inline int hk_any_source(const hk_run_t *run, int64_t any, int peer)
{
    return any == HK_ANY_TAG ? peer : run->ctx->tp->any_source;
}

static inline int hk_any_tag(const hk_run_t *run, int64_t any)
{
    return any == HK_ANY_SOURCE ? 0 : run->ctx->tp->any_tag;
}

#endif
