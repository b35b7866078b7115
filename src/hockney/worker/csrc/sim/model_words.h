/* The words of a line of a model's file. The first error is logged in one sentence and stored as the reader's
 * status. After it, all functions here do nothing and return 0, so only the end of a line needs a check. */
#ifndef HK_SIM_MODEL_WORDS_H
#define HK_SIM_MODEL_WORDS_H

#include "model.h"

enum { HK_MODEL_WORDS_MAX = 512 };

/* The state while reading a model's file. */
typedef struct hk_model_reader {
    const char *path;
    hk_model_t *model;
    hk_status_t status;
    int line;
    const char *word[HK_MODEL_WORDS_MAX]; /* of the line; the first is its kind */
    size_t words;
    bool has_topology;
    size_t places_room, factors_room, edges_room, vias_room, vertices_room, classes_room, segments_room;
} hk_model_reader_t;

__attribute__((format(printf, 2, 3))) void hk_wrong_line(hk_model_reader_t *reader, const char *format, ...);

/* The line must have `least` to `most` words. */
void hk_want_words(hk_model_reader_t *reader, size_t least, size_t most);

/* The i-th word as a number, or as a whole number. */
double hk_number_at(hk_model_reader_t *reader, size_t i, double min, double max);
uint64_t hk_count_at(hk_model_reader_t *reader, size_t i, double min, double max);

/* The index of the i-th word in `names`, which ends with NULL; `what` describes the names. */
unsigned hk_choice_at(hk_model_reader_t *reader, size_t i, const char *const *names, const char *what);

void hk_copy_name(hk_model_reader_t *reader, const char *word, char name[HK_MODEL_NAME_BYTES]);

/* Make room for one more element of `bytes` in *list. False: no memory, or an earlier error. */
bool hk_make_place(hk_model_reader_t *reader, void *list, size_t count, size_t *room, size_t bytes);

/* Adds a line to the model (model_lines.c). */
void hk_take_line(hk_model_reader_t *reader);

#endif
