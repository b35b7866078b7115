/* The commands of the line protocol (docs/protocol.md). The parser is strict; every rank receives the same bytes. */
#ifndef HK_COMMAND_H
#define HK_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pattern.h"
#include "status.h"

enum { HK_LINE_MAX = 4096, HK_ERROR_MAX = 256 };

typedef enum hk_verb { HK_VERB_HELLO, HK_VERB_MEASURE, HK_VERB_FLOOR, HK_VERB_QUIT } hk_verb_t;

typedef struct hk_command {
    hk_verb_t verb;
    uint64_t id;
    uint64_t bytes;
    uint64_t batch; /* repetitions in one sample */
    uint64_t samples;
    uint64_t warmup; /* repetitions before the first sample */
    uint64_t timeout_s;
    uint64_t verify;       /* 0 or 1 */
    uint64_t abort_on_eof; /* 1: hello eof=abort: the end of standard input ends the job at once */
    uint64_t version;      /* of the protocol, from hello */
    uint32_t pattern;      /* index in hk_patterns */
    int64_t option[HK_OPTIONS_MAX];
    int32_t list[HK_LIST_MAX]; /* the numbers of the option that is a list */
} hk_command_t;

/* Parse one line without its line break. On success *command_p is complete, with defaults. HK_ERR_ARGUMENT: error
 * holds one sentence that names the offending word; only id of *command_p may have changed. */
hk_status_t hk_command_parse(const char *line, size_t len, hk_command_t *command_p, char error[HK_ERROR_MAX]);

#endif
