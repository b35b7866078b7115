/* Reading and writing descriptors, going on after EINTR, EAGAIN and short counts. Never used in a timed part. */
#ifndef HK_IO_H
#define HK_IO_H

#include <stddef.h>

#include "status.h"

/* HK_ERR_PEER: the other end is closed. A dead reader raises no SIGPIPE on a socket. */
hk_status_t hk_write_all(int fd, const void *buf, size_t len_bytes);
hk_status_t hk_read_all(int fd, void *buf, size_t len_bytes);

/* What is there, at least one byte; 0 at the end of the stream or when it fails. */
size_t hk_read_some(int fd, void *buf, size_t room_bytes);

/* What the errno of a failed read or write means: HK_ERR_PEER or HK_ERR_SYSTEM. */
hk_status_t hk_io_status(void);

#endif
