/* How ranks find each other over TCP and keep strangers out: the control star (control.c) and the tcp transport's mesh
 * both stand on this. Never used in a timed part.
 *
 * A connecting rank sends a hello of fixed length with the token; the other side answers with one byte. Without the
 * token a program can neither join nor delay the others, and learns only that its token is wrong. */
#ifndef HK_RENDEZVOUS_H
#define HK_RENDEZVOUS_H

#include "address.h"

/* Rank `rank` takes ranks first .. size-1 into fds[first .. size-1]; blocking sockets with TCP_NODELAY. Leaves the
 * listener open. On error none of these fds is open. HK_ERR_PEER if one hasn't come within limit_s. Adds to
 * *strangers_p how many connections it refused as they did not know the token. */
hk_status_t hk_rendezvous_accept(int listener, const hk_address_t *address, int rank, int first, int size, int limit_s,
                                 int *fds, unsigned *strangers_p);

/* Connect to the listener at address; tries again while nobody listens there yet, until limit_s have passed. */
hk_status_t hk_rendezvous_connect(const hk_address_t *address, int rank, int size, int limit_s, int *fd_p);

#endif
