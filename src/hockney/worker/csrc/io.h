/* Read and write descriptors, with retries after EINTR, EAGAIN and short counts. Never used in a timed part. */
#ifndef HK_IO_H
#define HK_IO_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* The most files that a process of a native job opens: two for each rank (control and, over TCP, messages; before the
 * fork, both ends of the control sockets), and some of every process. */
#define HK_FILES_OF_JOB(size) (2 * (uint64_t)(size) + 64)

/* Raises the soft limit of open files to `files`. Where the hard limit is lower, logs both: HK_ERR_UNSUPPORTED. */
hk_status_t hk_allow_files(const char *transport, int size, uint64_t files);

/* HK_ERR_PEER: the other end is closed. Sockets raise no SIGPIPE. */
hk_status_t hk_write_all(int fd, const void *buf, size_t size_bytes);
hk_status_t hk_read_all(int fd, void *buf, size_t size_bytes);

/* Reads what is available, at least one byte; 0 at the end of the stream or on failure. */
size_t hk_read_some(int fd, void *buf, size_t room_bytes);

/* Milliseconds since a fixed moment, for time limits. */
int64_t hk_now_ms(void);

/* The status for the errno of a failed read or write: HK_ERR_PEER or HK_ERR_SYSTEM. */
hk_status_t hk_io_status(void);

#endif
