/* Push farm (ATLAS Com-2.1): for each event the supervisor sends a message to every sender. Every sender sends its
 * fragment to the event's receiver, which reports to the supervisor once it has all fragments. Three hops. */
#include "farm.h"

static const hk_farm_kind_t pushfarm = {
    .per_sender = 1, .start = hk_farm_notify_senders, .serve = hk_farm_push, .take = hk_farm_take_fragments};

const hk_pattern_t hk_pattern_pushfarm = {
    .name = "pushfarm",
    .kind = HK_KIND_FARM,
    .summary =
        "rank 0 notifies all senders of an event, they send fragments to its receiver, which reports; time per event",
    .law = HK_LAW_SENDERS,
    .own = &pushfarm,
    .option = {HK_FARM_OPTIONS},
    .expected = hk_farm_expected,
    HK_FARM_FIXED,
};
