/* Child processes of a rank that only sleep, as in osu_latency_mp. After a fork the first write to a page copies it, so
 * that memory which a library has registered with a device may no longer be the rank's. */
#ifndef HK_FORKS_H
#define HK_FORKS_H

#include "../pattern.h"

enum { HK_FORKS_MAX = 64 };

// clang-format off
#define HK_OPTION_FORKS \
    {"forks", NULL, 0, 0, HK_FORKS_MAX, "child processes of each of the two ranks, which sleep"}
// clang-format on

typedef struct hk_forks {
    int count;
    int pid[HK_FORKS_MAX];
} hk_forks_t;

/* Whether the ranks are processes, if the option asks for forks. `place`: of the option. */
bool hk_forks_fit(const hk_run_t *run, size_t place, char *why, size_t len);

hk_status_t hk_forks_start(hk_ctx_t *ctx, int count, hk_forks_t *forks_p);
void hk_forks_end(hk_forks_t *forks);

#endif
