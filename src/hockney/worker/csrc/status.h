/* Status codes and the log. The function that detects an error logs it, once; callers pass the status on. */
#ifndef HK_STATUS_H
#define HK_STATUS_H

typedef enum hk_status {
    HK_OK = 0,
    HK_ERR_ARGUMENT,    /* invalid request */
    HK_ERR_UNSUPPORTED, /* this transport or machine cannot do it; the point is skipped */
    HK_ERR_MEMORY,      /* an allocation failed */
    HK_ERR_SYSTEM,      /* a system call or a library call failed */
    HK_ERR_PEER,        /* another rank is gone, or a message failed: the job ends */
    HK_ERR_CORRUPT,     /* a payload differs from what was sent */
} hk_status_t;

/* Return the status of a call if it failed. For functions without clean-up; in a timed loop this is one comparison. */
#define HK_TRY(call)                                                                                                   \
    do {                                                                                                               \
        const hk_status_t hk_tried = (call);                                                                           \
        if (hk_tried != HK_OK) {                                                                                       \
            return hk_tried;                                                                                           \
        }                                                                                                              \
    } while (0)

/* Of messages that other ranks may still wait for: after an error this rank cannot go on with them, and must end. */
static inline hk_status_t hk_unless_broken(hk_status_t status)
{
    return status == HK_OK ? HK_OK : HK_ERR_PEER;
}

/* Exit codes of the worker, which the control plane reads. */
enum {
    HK_EXIT_OK = 0,
    HK_EXIT_FAILED = 1,
    HK_EXIT_USAGE = 2,
    HK_EXIT_TIMEOUT = 14,   /* a rank's time limit passed (the number of SIGALRM) */
    HK_EXIT_RANK_DIED = 15, /* the local launcher lost a rank */
};

/* The word for a status in answers: "ok", "argument", "unsupported", … */
const char *hk_status_name(hk_status_t status);

/* One line on standard error, "hockney worker: rank 1: …". Never called in a timed loop. */
void hk_log(int rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, and returns status. */
hk_status_t hk_fail(hk_status_t status, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
