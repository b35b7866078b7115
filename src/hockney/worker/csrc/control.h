/* Control messages between the ranks of a job: commands, samples, addresses. A star of stream sockets round rank 0,
 * so that a waiting rank sleeps and an idle worker costs no CPU. Never used in a timed part.
 *
 * Every family of workers but smpi uses this one star. Local ranks get it from their launcher as socket pairs; where a
 * library starts the ranks (MPI), they bootstrap it with one broadcast of that library. */
#ifndef HK_CONTROL_H
#define HK_CONTROL_H

#include <stddef.h>

#include "rendezvous.h"
#include "status.h"

/* Instead of the star, where ranks share one thread and none may sleep in a read. */
typedef struct hk_control_calls {
    hk_status_t (*gather)(int rank, const void *mine, size_t len_bytes, void *all);
    hk_status_t (*broadcast)(int rank, void *buf, size_t len_bytes);
} hk_control_calls_t;

typedef struct hk_control {
    int rank;
    int size;
    unsigned strangers;              /* connections without the token that this rank has refused */
    int *fds;                        /* rank 0: fds[r] leads to rank r; others: fds[0] leads to rank 0 */
    const hk_control_calls_t *calls; /* NULL: the star */
} hk_control_t;

/* Rank 0: take size - 1 ranks that know the token; strangers are refused and counted. Closes the listener.
 * HK_ERR_PEER if a rank hasn't come within the limit. */
hk_status_t hk_control_accept(int listener, const hk_address_t *address, int size, int limit_s,
                              hk_control_t *control_p);

/* Every other rank. */
hk_status_t hk_control_connect(const hk_address_t *address, int rank, int size, int limit_s, hk_control_t *control_p);

/* Hang up and free fds: for a star made by accept or connect. Ranks of a local job leave theirs to the launcher. */
void hk_control_close(hk_control_t *control);

/* All ranks call these with the same lengths. HK_ERR_PEER: a rank is gone; the star then hangs up, so that every rank
 * learns of it, and each later call fails too. */
hk_status_t hk_control_barrier(hk_control_t *control);
hk_status_t hk_control_broadcast(hk_control_t *control, void *buf, size_t len_bytes);                /* from rank 0 */
hk_status_t hk_control_gather(hk_control_t *control, const void *mine, size_t len_bytes, void *all); /* at rank 0 */
hk_status_t hk_control_allgather(hk_control_t *control, const void *mine, size_t len_bytes, void *all);

/* The worst status of all ranks, on every rank: nobody goes on alone. */
hk_status_t hk_control_agree(hk_control_t *control, hk_status_t mine);

#endif
