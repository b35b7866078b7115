/* Control messages between the ranks of a job: commands, samples, addresses. A star of stream sockets around rank 0: a
 * waiting rank sleeps, so an idle worker uses no CPU. Never used in a timed part.
 *
 * Local ranks get socket pairs from their launcher. Where a library starts the ranks (MPI), one broadcast of that
 * library distributes rank 0's address. */
#ifndef HK_CONTROL_H
#define HK_CONTROL_H

#include <stddef.h>

#include "rendezvous.h"
#include "status.h"

struct hk_ctx;

typedef struct hk_control {
    int rank;
    int size;
    unsigned strangers; /* refused connections without the token */
    int *fds;           /* rank 0: fds[r] connects to rank r; others: fds[0] connects to rank 0 */

    /* Some libraries carry messages only within their calls. What `open` of such a transport sets here is called while
     * this rank waits for the others, which may need it to finish. NULL: the rank sleeps. */
    void (*progress)(struct hk_ctx *ctx);
    struct hk_ctx *ctx;
} hk_control_t;

/* Rank 0: accept size - 1 ranks that know the token; other connections are refused and counted. Closes the listener.
 * HK_ERR_PEER if a rank has not joined within the limit. */
hk_status_t hk_control_accept(int listener, const hk_address_t *address, int size, int limit_s,
                              hk_control_t *control_p);

/* All other ranks. */
hk_status_t hk_control_connect(const hk_address_t *address, int rank, int size, int limit_s, hk_control_t *control_p);

/* The numeric address of this rank's sockets between hosts: the interface's, or with NULL the one at which this host
 * reaches rank 0, because that connection works. */
hk_status_t hk_control_address(const hk_control_t *control, const char *interface, char host[64]);

/* Close the star and free fds, after accept or connect. The launcher of a local job closes its ranks' descriptors. */
void hk_control_close(hk_control_t *control);

/* All ranks call these with the same sizes. HK_ERR_PEER: a rank is gone. The star then closes, so that every rank
 * notices, and later calls fail too. */
hk_status_t hk_control_barrier(hk_control_t *control);
hk_status_t hk_control_broadcast(hk_control_t *control, void *buf, size_t size_bytes);                /* from rank 0 */
hk_status_t hk_control_gather(hk_control_t *control, const void *mine, size_t size_bytes, void *all); /* at rank 0 */
hk_status_t hk_control_allgather(hk_control_t *control, const void *mine, size_t size_bytes, void *all);

/* From rank 0, which alone has `all`, a part for each rank. Only over the star. */
hk_status_t hk_control_scatter(hk_control_t *control, const void *all, size_t size_bytes, void *mine);

/* The most severe status of all ranks, on every rank. */
hk_status_t hk_control_agree(hk_control_t *control, hk_status_t mine);

/* Memory of zeros, on all ranks; or NULL on all, where one has none. */
void *hk_control_calloc(hk_control_t *control, size_t count, size_t size_bytes);

/* An allgather of what may differ in size, such as addresses: each rank's begins *stride_bytes_p after that of the rank
 * before. The caller frees *all_p. On all ranks or on none. */
hk_status_t hk_control_share(hk_control_t *control, const void *mine, size_t size_bytes, unsigned char **all_p,
                             size_t *stride_bytes_p);

#endif
