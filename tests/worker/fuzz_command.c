/* libFuzzer target: the parser refuses any input with a sentence, or returns a command within its limits.
 *
 *   clang -g -O1 -std=c17 -D_GNU_SOURCE -DHK_FAMILY_NONE -fsanitize=fuzzer,address,undefined -I CSRC fuzz_command.c \
 *         CSRC/command.c CSRC/registry.c CSRC/status.c CSRC/sync.c CSRC/machine.c … CSRC/patterns/…c
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_command_t command;
    char error[HK_ERROR_MAX];
    memset(&command, 0xa5, sizeof command);
    memset(error, 0, sizeof error);
    /* A copy of exactly this size, to detect reads beyond the line. */
    char *line = malloc(size == 0 ? 1 : size);
    demand(line != NULL);
    memcpy(line, data, size);
    const hk_status_t status = hk_command_parse(line, size, &command, error);
    free(line);
    if (status == HK_OK) {
        demand(command.verb <= HK_VERB_QUIT);
        demand(command.batch >= 1 && command.samples >= 1 && command.samples <= 1000000);
        demand(command.timeout_s >= 1 && command.timeout_s <= 86400);
        if (command.verb == HK_VERB_MEASURE) {
            uint32_t patterns = 0;
            while (hk_patterns[patterns] != NULL) {
                patterns++;
            }
            demand(command.pattern < patterns);
        }
    } else {
        demand(status == HK_ERR_ARGUMENT);
        demand(error[0] != '\0' && memchr(error, '\0', sizeof error) != NULL);
    }
    return 0;
}
