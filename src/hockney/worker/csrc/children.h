/* Ranks that are child processes of this one. */
#ifndef HK_CHILDREN_H
#define HK_CHILDREN_H

typedef struct hk_children {
    int (*run)(void *start, int rank); /* in the child; returns its exit code */
    void (*release)(void *start); /* in the parent: close its copies of the ranks' descriptors, which would keep a dead
                                     rank's connections open */
} hk_children_t;

/* Start ranks first .. first+count-1 and wait for them. If one fails, the others are ended and the answer `lost`
 * names it. Returns the exit code of this process. */
int hk_run_children(int first, int count, const hk_children_t *hooks, void *start);

#endif
