/* Ends a rank in the middle of a wait, at no cost to the timed loop: at its time limit, or when standard input ends
 * because the control plane has died. */
#ifndef HK_WATCH_H
#define HK_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

typedef struct hk_watch hk_watch_t;

hk_status_t hk_watch_open(int rank, hk_watch_t **watch_p);
void hk_watch_close(hk_watch_t *watch);

/* Start a time limit of limit_s seconds for this process. Then it logs `doing`, which is copied, and soon exits
 * with HK_EXIT_TIMEOUT; its launcher ends the other ranks. A rank that has logged nothing does not answer. Ranks that
 * are threads share one limit, the first. */
void hk_watch_arm(hk_watch_t *watch, unsigned limit_s, const char *doing);
void hk_watch_disarm(hk_watch_t *watch);

/* Until hk_watch_disarm: at the time limit `ask` says in text[0..len) what this rank waits for, and returns its length.
 * It runs in a signal handler. */
void hk_watch_ask(hk_watch_t *watch, size_t (*ask)(const void *of, char *text, size_t len), const void *of);

/* This rank has done its part, and waits for others: what it logs at the time limit then says so. */
void hk_watch_done(hk_watch_t *watch, bool is_done);

/* End this process when the far end of fd closes; nothing needs to read fd. Call once. */
hk_status_t hk_watch_end_of(hk_watch_t *watch, int fd);

/* Once the watched descriptor has ended: lets its thread end the process. A rank that took its library down at the same
 * time would have unmapped the files that the thread removes. */
void hk_watch_give_way(const hk_watch_t *watch);

/* Remove the names of the files in shared memory that a library leaves if it is not closed. */
void hk_remove_shared_memory(void);

#endif
