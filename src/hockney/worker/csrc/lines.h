/* Commands from standard input. */
#ifndef HK_LINES_H
#define HK_LINES_H

#include "command.h"
#include "pattern.h"

/* Buffered input. */
typedef struct hk_lines {
    char text[HK_LINE_MAX + 1];
    size_t len;
} hk_lines_t;

/* The next valid command, or quit at the end of input. Wrong commands get an error answer here. ranks_here: see
 * hk_point_fits. */
void hk_next_command(hk_lines_t *lines, hk_ctx_t *ctx, int ranks_here, hk_command_t *command);

#endif
