/* The two things that can end a rank in the middle of a wait, at no cost to the timed loop: its time limit, and the
 * end of standard input when the control plane has died. */
#ifndef HK_WATCH_H
#define HK_WATCH_H

#include "status.h"

typedef struct hk_watch hk_watch_t;

hk_status_t hk_watch_open(int rank, hk_watch_t **watch_p);
void hk_watch_close(hk_watch_t *watch);

/* From now on this process has limit_s seconds; then it says what it was doing and ends with HK_EXIT_TIMEOUT, and its
 * launcher ends the other ranks. `doing` is copied. Ranks that are threads share one process: the first limit counts.
 */
void hk_watch_arm(hk_watch_t *watch, unsigned limit_s, const char *doing);
void hk_watch_disarm(hk_watch_t *watch);

/* End this process as soon as descriptor fd is closed at its far end; it need not be read for that. Once. */
hk_status_t hk_watch_end_of(hk_watch_t *watch, int fd);

#endif
