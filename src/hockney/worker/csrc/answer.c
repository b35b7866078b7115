/* cold */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

static void put(hk_answer_t *answer, const char *text, size_t len)
{
    if (answer->failed) {
        return;
    }
    if (answer->len + len + 1 > answer->room) {
        const size_t room = 2 * (answer->len + len + 512);
        char *grown = realloc(answer->text, room);
        if (grown == NULL) {
            answer->failed = true;
            return;
        }
        answer->text = grown;
        answer->room = room;
    }
    memcpy(answer->text + answer->len, text, len);
    answer->len += len;
    answer->text[answer->len] = '\0';
}

static void put_text(hk_answer_t *answer, const char *text)
{
    put(answer, text, strlen(text));
}

static void put_quoted(hk_answer_t *answer, const char *value)
{
    put(answer, "\"", 1);
    for (const char *c = value; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        char escaped[8];
        if (byte == '"' || byte == '\\') {
            escaped[0] = '\\';
            escaped[1] = (char)byte;
            put(answer, escaped, 2);
        } else if (byte < 0x20 || byte >= 0x7f) {
            /* Bytes above ASCII become escapes of the same number, so the line stays valid for any text of a
             * library. */
            const int len = snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            put(answer, escaped, (size_t)len);
        } else {
            put(answer, c, 1);
        }
    }
    put(answer, "\"", 1);
}

/* The separator and key before a value. */
static void begin_value(hk_answer_t *answer, const char *key)
{
    if (answer->comma) {
        put(answer, ",", 1);
    }
    if (key != NULL) {
        put_quoted(answer, key);
        put(answer, ":", 1);
    }
    answer->comma = true;
}

void hk_answer_begin(hk_answer_t *answer, const char *kind, uint64_t id)
{
    *answer = (hk_answer_t){0};
    /* The line break ends any unfinished line of a library on standard output. */
    put_text(answer, "\n@hk {");
    hk_answer_unsigned(answer, "v", HK_PROTOCOL_VERSION);
    hk_answer_string(answer, "kind", kind);
    hk_answer_unsigned(answer, "id", id);
}

void hk_answer_string(hk_answer_t *answer, const char *key, const char *value)
{
    begin_value(answer, key);
    if (value == NULL) {
        put_text(answer, "null");
    } else {
        put_quoted(answer, value);
    }
}

void hk_answer_unsigned(hk_answer_t *answer, const char *key, uint64_t value)
{
    char text[24];
    begin_value(answer, key);
    put(answer, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
}

void hk_answer_signed(hk_answer_t *answer, const char *key, int64_t value)
{
    char text[24];
    begin_value(answer, key);
    put(answer, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void hk_answer_float(hk_answer_t *answer, const char *key, double value)
{
    char text[32];
    begin_value(answer, key);
    put(answer, text, (size_t)snprintf(text, sizeof text, "%.9g", value));
}

void hk_answer_bool(hk_answer_t *answer, const char *key, bool value)
{
    begin_value(answer, key);
    put_text(answer, value ? "true" : "false");
}

void hk_answer_null(hk_answer_t *answer, const char *key)
{
    hk_answer_string(answer, key, NULL);
}

void hk_answer_open(hk_answer_t *answer, const char *key, char bracket)
{
    begin_value(answer, key);
    put(answer, &bracket, 1);
    answer->comma = false;
}

void hk_answer_close(hk_answer_t *answer, char bracket)
{
    put(answer, &bracket, 1);
    answer->comma = true;
}

hk_status_t hk_answer_send(hk_answer_t *answer, int fd)
{
    put_text(answer, "}\n");
    const bool failed = answer->failed;
    char *text = answer->text;
    const size_t len = answer->len;
    *answer = (hk_answer_t){0};
    hk_status_t status = HK_ERR_MEMORY;
    if (failed) {
        hk_log(0, "no memory for an answer");
    } else {
        status = hk_write_all(fd, text, len);
    }
    free(text);
    return status;
}

hk_status_t hk_answer_error(int fd, uint64_t id, hk_status_t code, const char *message)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "error", id);
    hk_answer_string(&answer, "code", hk_status_name(code));
    hk_answer_string(&answer, "message", message);
    return hk_answer_send(&answer, fd);
}
