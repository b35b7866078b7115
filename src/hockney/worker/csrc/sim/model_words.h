/* The words of a line of a model's file. Of what is wrong the first is said, in one sentence, and kept as the reader's
 * status: all that follows does nothing and returns 0, so whoever reads a line asks at its end. */
#ifndef HK_SIM_MODEL_WORDS_H
#define HK_SIM_MODEL_WORDS_H

#include "model.h"

enum { HK_MODEL_WORDS_MAX = 512 };

/* A model's file while it is read, line by line. */
typedef struct hk_model_reader {
    const char *path;
    hk_model_t *model;
    hk_status_t status;
    int line;
    const char *word[HK_MODEL_WORDS_MAX]; /* of the line, the first one being its kind */
    size_t words;
    bool has_topology;
    size_t places_room, factors_room, edges_room, vias_room, vertices_room, classes_room, segments_room;
} hk_model_reader_t;

__attribute__((format(printf, 2, 3))) void hk_wrong_line(hk_model_reader_t *reader, const char *format, ...);

/* The line has from `least` to `most` words. */
void hk_want_words(hk_model_reader_t *reader, size_t least, size_t most);

/* The i-th word as a number, or as a whole one. */
double hk_number_at(hk_model_reader_t *reader, size_t i, double min, double max);
uint64_t hk_count_at(hk_model_reader_t *reader, size_t i, double min, double max);

/* Its place among these names, which end with NULL; `what` is their kind. */
unsigned hk_choice_at(hk_model_reader_t *reader, size_t i, const char *const *names, const char *what);

void hk_copy_name(hk_model_reader_t *reader, const char *word, char name[HK_MODEL_NAME_BYTES]);

/* Room for one more of `bytes` each in *list. False: there is none, or something was wrong before. */
bool hk_make_place(hk_model_reader_t *reader, void *list, size_t count, size_t *room, size_t bytes);

/* What a line says, into the model (model_lines.c). */
void hk_take_line(hk_model_reader_t *reader);

#endif
