/* One answer: a JSON object on one line of standard output, after the prefix "@hk ". */
#ifndef HK_ANSWER_H
#define HK_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define HK_PROTOCOL_VERSION 1

/* Grows as needed. hk_answer_send reports a failed allocation. */
typedef struct hk_answer {
    char *text;
    size_t len, room;
    bool failed;
    bool comma; /* the next value needs a separator */
} hk_answer_t;

/* Starts {"v":1,"kind":KIND,"id":ID. */
void hk_answer_begin(hk_answer_t *answer, const char *kind, uint64_t id);

/* One value. Values of an object have a key; for values of an array key is NULL. */
void hk_answer_string(hk_answer_t *answer, const char *key, const char *value); /* NULL: null */
void hk_answer_unsigned(hk_answer_t *answer, const char *key, uint64_t value);
void hk_answer_signed(hk_answer_t *answer, const char *key, int64_t value);
void hk_answer_float(hk_answer_t *answer, const char *key, double value);
void hk_answer_bool(hk_answer_t *answer, const char *key, bool value);
void hk_answer_null(hk_answer_t *answer, const char *key);
void hk_answer_open(hk_answer_t *answer, const char *key, char bracket); /* '{' or '[' */
void hk_answer_close(hk_answer_t *answer, char bracket);                 /* '}' or ']' */

/* Ends the object, writes the line to fd in one write, and clears the answer. */
hk_status_t hk_answer_send(hk_answer_t *answer, int fd);

/* Sends a whole answer: {"kind":"error","code":…,"message":…}. */
hk_status_t hk_answer_error(int fd, uint64_t id, hk_status_t code, const char *message);

#endif
