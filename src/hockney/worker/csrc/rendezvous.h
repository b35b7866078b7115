/* How ranks find each other over TCP and refuse other programs. The control star (control.c) and the connections of tcp
 * use it. Never used in a timed part.
 *
 * A connecting rank sends a hello of fixed size with the token, and the other side replies with one byte. A program
 * without the token can neither join nor delay the ranks, and learns only that its token is wrong. */
#ifndef HK_RENDEZVOUS_H
#define HK_RENDEZVOUS_H

#include "address.h"

/* Rank `rank` accepts ranks first .. size-1 into fds[first .. size-1], as blocking sockets with TCP_NODELAY. Leaves
 * the listener open. On error all these fds are closed. HK_ERR_PEER if a rank has not joined within limit_s. Adds
 * the number of refused connections without the token to *strangers_p. */
hk_status_t hk_rendezvous_accept(int listener, const hk_address_t *address, int rank, int first, int size, int limit_s,
                                 int *fds, unsigned *strangers_p);

/* Connect to the listener at address; retries until limit_s has passed. from: the numeric address of this end; NULL:
 * the system chooses. */
hk_status_t hk_rendezvous_connect(const hk_address_t *address, const char *from, int rank, int size, int limit_s,
                                  int *fd_p);

#endif
