/* cold */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

const char *hk_status_name(hk_status_t status)
{
    switch (status) {
    case HK_OK:
        return "ok";
    case HK_ERR_ARGUMENT:
        return "argument";
    case HK_ERR_UNSUPPORTED:
        return "unsupported";
    case HK_ERR_MEMORY:
        return "memory";
    case HK_ERR_SYSTEM:
        return "system";
    case HK_ERR_PEER:
        return "peer";
    case HK_ERR_CORRUPT:
        return "corrupt";
    }
    return "unknown";
}

static void put_line(int rank, const char *format, va_list args)
{
    char line[2048]; /* an MPI's error stack has up to 1 KiB */
    int len = snprintf(line, sizeof line, "hockney worker: rank %d: ", rank);
    len += vsnprintf(line + len, sizeof line - (size_t)len - 1, format, args);
    if (len > (int)sizeof line - 2) {
        len = (int)sizeof line - 2;
    }
    for (char *at = line; (at = memchr(at, '\n', (size_t)(line + len - at))) != NULL;) {
        *at = ' '; /* a message is one line, whatever a library's text has */
    }
    line[len] = '\n';
    /* One write, so that lines of several ranks do not mix. */
    const ssize_t written = write(STDERR_FILENO, line, (size_t)len + 1);
    (void)written; /* an error cannot be reported */
}

void hk_log(int rank, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(rank, format, args);
    va_end(args);
}

hk_status_t hk_fail(hk_status_t status, int rank, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(rank, format, args);
    va_end(args);
    return status;
}
