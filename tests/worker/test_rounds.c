/* The rounds of a tournament: pairs are mutual, and after the last round every rank has met every other once. */
#include "check.h"
#include "pattern.h"
#include "registry.h"

/* The peer whose message rank expects in a round; -1: it is idle. */
static int peer_of(const hk_pattern_t *rounds, int size, int rank, int round)
{
    hk_ctx_t ctx = {.size = size, .rank = rank};
    hk_run_t run = {.ctx = &ctx, .option = {round}};
    hk_expected_t expected;
    return rounds->expected(&run, 0, &expected) ? expected.from_rank : -1;
}

static void check_tournament(const hk_pattern_t *rounds, int size)
{
    char why[200];
    const int last = size % 2 == 0 ? size - 1 : size;
    hk_ctx_t ctx = {.size = size};
    CHECK(rounds->fits(&(hk_run_t){.ctx = &ctx, .option = {last}}, why, sizeof why));
    CHECK(!rounds->fits(&(hk_run_t){.ctx = &ctx, .option = {last + 1}}, why, sizeof why));
    bool met[20][20] = {{false}};
    for (int round = 1; round <= last; round++) {
        int resting = 0;
        for (int rank = 0; rank < size; rank++) {
            const int peer = peer_of(rounds, size, rank, round);
            if (peer < 0) {
                resting++;
                continue;
            }
            CHECK(peer < size && peer != rank);
            CHECK(peer_of(rounds, size, peer, round) == rank);
            CHECK(!met[rank][peer]);
            met[rank][peer] = true;
        }
        CHECK(resting == size % 2);
    }
}

int main(void)
{
    extern const hk_pattern_t hk_pattern_rounds;
    for (int size = 2; size <= 20; size++) {
        check_tournament(&hk_pattern_rounds, size);
    }
    return 0;
}
