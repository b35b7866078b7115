/* The words of a line of a model's file. What is wrong is said in one sentence: HK_ERR_ARGUMENT. For model.c. */
#ifndef HK_SIM_MODEL_WORDS_H
#define HK_SIM_MODEL_WORDS_H

#include "model.h"

enum { HK_MODEL_WORDS_MAX = 512 };

/* A model's file while it is read, line by line. */
typedef struct hk_model_reader {
    const char *path;
    hk_model_t *model;
    int line;
    const char *word[HK_MODEL_WORDS_MAX]; /* of the line, the first one being its kind */
    size_t words;
    bool has_topology;
    size_t places_room, factors_room, edges_room, vias_room, vertices_room, classes_room, segments_room;
} hk_model_reader_t;

__attribute__((format(printf, 2, 3))) hk_status_t hk_wrong_line(const hk_model_reader_t *reader, const char *format,
                                                                ...);

hk_status_t hk_number_at(const hk_model_reader_t *reader, size_t i, double min, double max, double *value_p);
hk_status_t hk_count_at(const hk_model_reader_t *reader, size_t i, double min, double max, uint64_t *value_p);

/* One of these names, which end with NULL. */
hk_status_t hk_choice_at(const hk_model_reader_t *reader, size_t i, const char *const *names, unsigned *value_p);

hk_status_t hk_copy_name(const hk_model_reader_t *reader, const char *word, char name[HK_MODEL_NAME_BYTES]);
hk_status_t hk_want_words(const hk_model_reader_t *reader, size_t least, size_t most);

/* Room for one more of `bytes` each in *list. */
hk_status_t hk_make_place(const hk_model_reader_t *reader, void *list, size_t count, size_t *room, size_t bytes);

#endif
