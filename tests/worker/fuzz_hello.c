/* libFuzzer target: the rendezvous reads any bytes without harm, and refuses connections without the token.
 *
 *   clang -g -O1 -std=c17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -I CSRC fuzz_hello.c \
 *         CSRC/address.c CSRC/io.c CSRC/status.c */
#include <stdint.h>
#include <stdlib.h>

#include "rendezvous.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

enum { FIRST = 1, SIZE = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool knows_token(const uint8_t *data, size_t size, const unsigned char *token)
{
    return size >= HELLO_BYTES && get_word(data) == MAGIC && memcmp(data + 3 * WORD_BYTES, token, HK_TOKEN_BYTES) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char token[HK_TOKEN_BYTES] = "sixteen of these";
    int ends[2], fds[SIZE] = {-1, -1, -1, -1};
    demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    demand(send(ends[0], data, size, MSG_NOSIGNAL) == (ssize_t)size);
    demand(shutdown(ends[0], SHUT_WR) == 0);
    reception_t at = {.token = token, .first = FIRST, .size = SIZE, .fds = fds, .missing = SIZE - FIRST, .count = 1};
    at.guests[0] = (guest_t){.fd = ends[1], .until_ms = hk_now_ms() + GUEST_LIMIT_MS};
    while (at.count > 0) {
        read_hellos(&at);
    }
    /* A rank's hello is refused here too, because this is not a TCP socket. */
    demand(at.missing == SIZE - FIRST && fds[1] < 0 && fds[2] < 0 && fds[3] < 0);
    demand(at.strangers == (knows_token(data, size, token) ? 0 : 1));
    (void)close(ends[0]);
    return 0;
}
