/* UDP's handling of early, late and lost datagrams, which a network produces only by chance. */
#define hk_udp_get_blocking tested_get_blocking
#define hk_udp_get_spinning tested_get_spinning
#define hk_udp_get_yielding tested_get_yielding
#define hk_transport_udp tested_transport_udp
#define hk_transport_udp_spin tested_transport_udp_spin
#include "transports/udp.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

#include "check.h"

enum { LEN = 4 };

static unsigned char held[HK_UDP_MAX_BYTES];
static hk_udp_peer_t peers[2];

/* Rank 0; the next receive from rank 1 is message 5. */
static hk_udp_t begin(void)
{
    peers[1] = (hk_udp_peer_t){.known = 5, .held = held};
    return (hk_udp_t){.base = {.tp = &hk_transport_udp, .size = 2}, .peer = peers};
}

static void test_what_comes_after_its_turn_is_late_and_not_lost(void)
{
    hk_udp_t udp = begin();
    unsigned char buf[LEN] = {1, 2, 3, 4};
    CHECK(!take_other(&udp, &peers[1], 5, 3, LEN, buf, LEN));
    CHECK(udp.late == 1 && udp.lost == 0);
    CHECK(!peers[1].is_held && peers[1].known == 5);
}

static void test_what_comes_before_its_turn_is_kept_and_those_before_it_are_lost(void)
{
    hk_udp_t udp = begin();
    unsigned char buf[LEN] = {1, 2, 3, 4};
    CHECK(take_other(&udp, &peers[1], 5, 6, LEN, buf, LEN));
    CHECK(peers[1].is_held && peers[1].known == 7);
    CHECK(settle(&udp, 1, 5, buf, LEN) == HK_OK);
    CHECK(udp.lost == 1 && udp.late == 0 && buf[0] == 0 && buf[LEN - 1] == 0);
    CHECK(settle(&udp, 1, 6, buf, LEN) == HK_OK);
    CHECK(udp.lost == 1 && buf[0] == 1 && buf[LEN - 1] == 4 && !peers[1].is_held);
}

static void test_a_kept_message_of_another_length_is_refused(void)
{
    hk_udp_t udp = begin();
    unsigned char buf[LEN] = {1, 2, 3, 4};
    CHECK(take_other(&udp, &peers[1], 5, 5 + 1, 2, buf, LEN));
    CHECK(settle(&udp, 1, 6, buf, LEN) == HK_ERR_SYSTEM);
}

static void test_a_refusal_says_what_came_and_then_what_was_awaited(void)
{
    hk_udp_t udp = begin();
    char said[200] = "";
    FILE *file = tmpfile();
    const int kept = dup(STDERR_FILENO);
    CHECK(file != NULL && kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    CHECK(refuse_length(&udp, 1, 17, 5) == HK_ERR_SYSTEM);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    rewind(file);
    CHECK(fread(said, 1, sizeof said - 1, file) > 0);
    const char *came = strstr(said, "17 B"), *awaited = strstr(said, " 5 B");
    CHECK(came != NULL && awaited != NULL && came < awaited);
    (void)fclose(file);
    (void)close(kept);
}

static void test_an_answer_says_how_many_were_sent(void)
{
    hk_udp_t udp = begin();
    unsigned char buf[LEN] = {0};
    CHECK(!take_other(&udp, &peers[1], 5, HK_UDP_MARK | 5, 0, buf, LEN)); /* not sent yet */
    CHECK(take_other(&udp, &peers[1], 5, HK_UDP_MARK | 6, 0, buf, LEN));
    CHECK(!take_other(&udp, &peers[1], 6, HK_UDP_MARK | 4, 0, buf, LEN)); /* an older answer changes nothing */
    CHECK(peers[1].known == 6 && udp.late == 0 && udp.lost == 0);
}

int main(void)
{
    test_what_comes_after_its_turn_is_late_and_not_lost();
    test_what_comes_before_its_turn_is_kept_and_those_before_it_are_lost();
    test_a_kept_message_of_another_length_is_refused();
    test_a_refusal_says_what_came_and_then_what_was_awaited();
    test_an_answer_says_how_many_were_sent();
    return 0;
}
