/* Included before the sources of a worker for libfabric: messages of 1000 bytes or more have a byte more than their
 * receive, since a shorter one is no fault for libfabric. */
#include <rdma/fi_tagged.h>
#undef count_of /* of libfabric: hockney has another one */

enum { LONG_BYTES = 1000 };

static inline ssize_t long_tsend(struct fid_ep *ep, const void *buf, size_t size_bytes, void *desc, fi_addr_t to,
                                 uint64_t tag, void *context)
{
    return fi_tsend(ep, buf, size_bytes + (size_bytes >= LONG_BYTES), desc, to, tag, context);
}
#define fi_tsend long_tsend
