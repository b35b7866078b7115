/* Commands from standard input. */
#ifndef HK_LINES_H
#define HK_LINES_H

#include "command.h"
#include "pattern.h"

/* Input that is not yet taken, with its ends of line. */
typedef struct hk_lines {
    char text[HK_LINE_MAX + 1];
    size_t len;
} hk_lines_t;

/* The next command that this job can carry out, quit at the end of input; wrong ones are answered here. ranks_here: as
 * hk_point_fits has it. */
void hk_next_command(hk_lines_t *lines, hk_ctx_t *ctx, int ranks_here, hk_command_t *command);

#endif
