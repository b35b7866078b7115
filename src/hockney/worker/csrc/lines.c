/* cold */
#include "lines.h"

#include <string.h>

#include <unistd.h>

#include "answer.h"
#include "io.h"
#include "registry.h"

/* Reads the next line of standard input without its line break. -1: end of input; -2: the line is too long. */
static int read_line(hk_lines_t *lines, char line[HK_LINE_MAX])
{
    for (;;) {
        const char *end = memchr(lines->text, '\n', lines->len);
        if (end != NULL) {
            size_t len = (size_t)(end - lines->text);
            memcpy(line, lines->text, len);
            lines->len -= len + 1;
            memmove(lines->text, end + 1, lines->len);
            len -= len > 0 && line[len - 1] == '\r';
            return (int)len;
        }
        if (lines->len == sizeof lines->text) {
            return -2;
        }
        const size_t got = hk_read_some(STDIN_FILENO, lines->text + lines->len, sizeof lines->text - lines->len);
        if (got == 0) {
            if (lines->len == 0) {
                return -1;
            }
            lines->text[lines->len++] = '\n'; /* accept a last line without a line break */
        } else {
            lines->len += got;
        }
    }
}

void hk_next_command(hk_lines_t *lines, hk_ctx_t *ctx, int ranks_here, hk_command_t *command)
{
    char line[HK_LINE_MAX];
    char error[HK_ERROR_MAX];
    for (;;) {
        const int len = read_line(lines, line);
        if (len < 0) {
            if (len == -2) {
                hk_answer_error(STDOUT_FILENO, 0, HK_ERR_ARGUMENT, "the line is too long");
            }
            *command = (hk_command_t){.verb = HK_VERB_QUIT};
            return;
        }
        if (hk_command_parse(line, (size_t)len, command, error) != HK_OK) {
            hk_answer_error(STDOUT_FILENO, command->id, HK_ERR_ARGUMENT, error);
            continue;
        }
        if (command->verb == HK_VERB_MEASURE && hk_patterns[command->pattern]->once) {
            command->samples = command->batch = 1;
            command->warmup = 0;
        }
        if (command->verb != HK_VERB_MEASURE || hk_point_fits(ctx, command, ranks_here, error)) {
            return;
        }
        hk_answer_error(STDOUT_FILENO, command->id, HK_ERR_UNSUPPORTED, error);
    }
}
