/* Push farm (ATLAS Com-2.1): for each event the supervisor tells every sender which receiver it belongs to, every
 * sender pushes its fragment there, and the receiver reports to the supervisor when it has them all. Three hops. */
#include "farm.h"

static const hk_farm_kind_t pushfarm = {
    .per_sender = 1, .start = hk_farm_tell_senders, .serve = hk_farm_push, .take = hk_farm_take_fragments};

const hk_pattern_t hk_pattern_pushfarm = {
    .name = "pushfarm",
    .summary = "rank 0 tells all senders of an event, they push their parts to its receiver, which reports; per event",
    .needs = HK_CAP_SEND | HK_CAP_NONBLOCKING,
    .ranks_min = 3,
    .timed = HK_TIMED_ROOT,
    .law = HK_LAW_SENDERS,
    .stream = true,
    .senders = "senders",
    .own = &pushfarm,
    .option = {HK_FARM_OPTIONS},
    .fits = hk_farm_fits,
    .plan = hk_farm_plan,
    .prepare = hk_farm_prepare,
    .repeat = hk_farm_repeat,
    .expected = hk_farm_expected,
    .counter = hk_farm_counter,
};
