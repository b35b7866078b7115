/* cold */
/* A job over several hosts: one process per host starts the ranks of that host, and all join rank 0 over TCP. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "children.h"
#include "control.h"
#include "family.h"
#include "io.h"

/* The first line of standard input: "token " and 32 hexadecimal digits. Read byte by byte, so that the session gets
 * everything after it. */
static hk_status_t read_token(unsigned char token[HK_TOKEN_BYTES])
{
    static const char word[] = "token ";
    char line[sizeof word + 2 * HK_TOKEN_BYTES];
    size_t len = 0;
    char byte = '\0';
    while (len < sizeof line && hk_read_some(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
        line[len++] = byte;
    }
    bool right = len == sizeof word - 1 + 2 * HK_TOKEN_BYTES && memcmp(line, word, sizeof word - 1) == 0;
    for (size_t i = 0; right && i < HK_TOKEN_BYTES; i++) {
        const char *at = line + sizeof word - 1 + 2 * i;
        char digits[3] = {at[0], at[1], '\0'};
        right = isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]);
        token[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    if (!right) {
        hk_log(0, "the first line of standard input must be: token and 32 hexadecimal digits");
        return HK_ERR_ARGUMENT;
    }
    return HK_OK;
}

static hk_status_t parse_address(const char *text, hk_address_t *address)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    const unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);
    const size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    if (port == 0 || port > UINT16_MAX || *end != '\0' || len == 0 || len >= sizeof address->host) {
        hk_log(0, "--join takes HOST:PORT, not '%s'", text);
        return HK_ERR_ARGUMENT;
    }
    memcpy(address->host, text, len);
    address->host[len] = '\0';
    address->port = (uint16_t)port;
    return HK_OK;
}

static void print_address(const hk_address_t *address)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "listening", 0);
    hk_answer_string(&answer, "host", address->host);
    hk_answer_unsigned(&answer, "port", address->port);
    hk_answer_send(&answer, STDOUT_FILENO);
}

typedef struct remote_start {
    const hk_args_t *args;
    hk_address_t address; /* of rank 0 */
    int listener;         /* rank 0's, if it is on this host; otherwise -1 */
} remote_start_t;

static int run_remote(void *start, int rank)
{
    const remote_start_t *remote = start;
    const hk_args_t *args = remote->args;
    hk_control_t control;
    hk_status_t status;
    if (rank == 0) {
        status = hk_control_accept(remote->listener, &remote->address, args->size, args->start_limit_s, &control);
    } else {
        if (remote->listener >= 0) {
            (void)close(remote->listener);
        }
        status = hk_control_connect(&remote->address, rank, args->size, args->start_limit_s, &control);
    }
    if (status != HK_OK) {
        return status == HK_ERR_ARGUMENT ? HK_EXIT_USAGE : HK_EXIT_FAILED;
    }
    const hk_job_t job = {
        .rank = rank,
        .size = args->size,
        .control = &control,
        .oversubscribed = args->oversubscribed,
        .remote = 1,
        .interface = args->interface,
    };
    const int exit_code =
        hk_pin_separately(args, &control, -1) == HK_OK ? hk_rank_main(args->tp, &job) : HK_EXIT_FAILED;
    hk_control_close(&control);
    return exit_code;
}

static void leave_remote(void *start)
{
    const remote_start_t *remote = start;
    if (remote->listener >= 0) {
        (void)close(remote->listener);
    }
}

int hk_remote_start(const hk_args_t *args)
{
    static const hk_children_t remote_children = {.run = run_remote, .release = leave_remote};
    remote_start_t start = {.args = args, .listener = -1};
    unsigned char token[HK_TOKEN_BYTES];
    hk_status_t status = read_token(token);
    if (status == HK_OK && args->rank == 0) {
        const char *where = args->interface == NULL ? args->listen : args->interface;
        status = hk_address_listen(where, 0, &start.listener, &start.address);
    } else if (status == HK_OK) {
        status = parse_address(args->join, &start.address);
    }
    if (status != HK_OK) {
        return status == HK_ERR_ARGUMENT ? HK_EXIT_USAGE : HK_EXIT_FAILED;
    }
    memcpy(start.address.token, token, sizeof token);
    if (args->rank == 0) {
        print_address(&start.address);
    }
    return hk_run_children(args->rank, args->here, &remote_children, &start);
}
