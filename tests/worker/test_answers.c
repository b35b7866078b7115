/* The answer to a measurement: every figure of its result stands under its own name. */
#include <string.h>

#include "check.h"
#include "measured.h"

static char text[4096];

static void answer(void)
{
    const hk_transport_t tp = {.name = "scripted"};
    const hk_ctx_t ctx = {.tp = &tp, .rank = 0, .size = 2};
    const hk_command_t command = {.id = 7, .batch = 11, .samples = 2};
    const hk_result_t result = {.before = {.floor_ns = 1, .solo_ns = 3, .wake_ns = 6},
                                .after = {.floor_ns = 2, .solo_ns = 4, .wake_ns = 7},
                                .started_ns = 5,
                                .floor_kind = "line",
                                .counter_name = {"first", "second"}};
    const uint64_t elapsed_ns[] = {21, 22, 23, 24};
    const hk_account_t account[] = {
        {.cpu_user_ns = 31,
         .cpu_system_ns = 33,
         .wall_ns = 35,
         .pace_before_ns = 41,
         .pace_after_ns = 43,
         .counter = {51, 53},
         .verified = 1},
        {.cpu_user_ns = 32,
         .cpu_system_ns = 34,
         .wall_ns = 36,
         .pace_before_ns = 42,
         .pace_after_ns = 44,
         .counter = {52, 54},
         .verified = 1},
    };
    const hk_rows_t rows = {.count = 2, .account = account, .elapsed_ns = elapsed_ns};
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0 && close(ends[1]) == 0);
    CHECK(hk_answer_measured(&ctx, &command, &result, &rows) == HK_OK);
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
}

int main(void)
{
    static const char *const parts[] = {
        "\"id\":7,",
        "\"transport\":\"scripted\",\"size\":2,",
        "\"batch\":11,\"samples\":2,",
        "\"cpu_user_ns\":[31,32],\"cpu_system_ns\":[33,34],\"wall_ns\":[35,36],\"started_ns\":5,",
        "\"counters\":{\"first\":[51,52],\"second\":[53,54]},\"verified\":true,",
        "\"floor_kind\":\"line\",\"floor_ns\":[1,2],\"solo_ns\":[3,4],\"wake_ns\":[6,7],\"pace_ns\":[[41,42],[43,44]],",
        "\"elapsed_ns\":[[21,22],[23,24]]}",
    };
    answer();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        CHECK(strstr(text, parts[i]) != NULL);
    }
    return 0;
}
