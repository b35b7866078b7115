/* Status codes and the log: whoever decides an error logs it, once; callers pass the status on. */
#ifndef HK_STATUS_H
#define HK_STATUS_H

typedef enum hk_status {
    HK_OK = 0,
    HK_ERR_ARGUMENT,    /* the caller asked for something that makes no sense */
    HK_ERR_UNSUPPORTED, /* this transport or machine can't do it: "skipped, because …" */
    HK_ERR_MEMORY,      /* an allocation failed */
    HK_ERR_SYSTEM,      /* a system call or a library call failed */
    HK_ERR_PEER,        /* another rank is gone */
    HK_ERR_CORRUPT,     /* a payload did not arrive as it was sent */
} hk_status_t;

/* Return what a call fails with. For functions that have nothing to put right; in a timed loop it is one compare. */
#define HK_TRY(call)                                                                                                   \
    do {                                                                                                               \
        const hk_status_t hk_tried = (call);                                                                           \
        if (hk_tried != HK_OK) {                                                                                       \
            return hk_tried;                                                                                           \
        }                                                                                                              \
    } while (0)

/* Exit codes of the worker; the control plane reads them. */
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

/* The same, and returns status: for whoever decides an error. */
hk_status_t hk_fail(hk_status_t status, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
