/* cold */
#include "model_words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hk_wrong_line(hk_model_reader_t *reader, const char *format, ...)
{
    if (reader->status != HK_OK) {
        return;
    }
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "hockney worker: model %s, line %d: %s\n", reader->path, reader->line, text);
    reader->status = HK_ERR_ARGUMENT;
}

void hk_want_words(hk_model_reader_t *reader, size_t least, size_t most)
{
    if (reader->words < least || reader->words > most) {
        hk_wrong_line(reader, "'%s' has %zu values, not %zu", reader->word[0], reader->words - 1, least - 1);
    }
}

double hk_number_at(hk_model_reader_t *reader, size_t i, double min, double max)
{
    char *end = NULL;
    if (i >= reader->words) {
        hk_wrong_line(reader, "'%s' needs more numbers", reader->word[0]);
    }
    if (reader->status != HK_OK) {
        return 0;
    }
    const double value = strtod(reader->word[i], &end);
    if (end == reader->word[i] || *end != '\0' || !isfinite(value)) {
        hk_wrong_line(reader, "'%s' is not a number", reader->word[i]);
    } else if (value < min || value > max) {
        hk_wrong_line(reader, "'%s' of %s must be from %.15g to %.15g", reader->word[i], reader->word[0], min, max);
    }
    return reader->status == HK_OK ? value : 0;
}

uint64_t hk_count_at(hk_model_reader_t *reader, size_t i, double min, double max)
{
    const double value = hk_number_at(reader, i, min, max);
    if (value != floor(value)) {
        hk_wrong_line(reader, "'%s' is not a whole number", reader->word[i]);
    }
    return reader->status == HK_OK ? (uint64_t)value : 0;
}

unsigned hk_choice_at(hk_model_reader_t *reader, size_t i, const char *const *names, const char *what)
{
    const char *word = i < reader->words ? reader->word[i] : "";
    for (unsigned k = 0; names[k] != NULL; k++) {
        if (strcmp(names[k], word) == 0) {
            return k;
        }
    }
    hk_wrong_line(reader, "'%s' is no %s", word, what);
    return 0;
}

void hk_copy_name(hk_model_reader_t *reader, const char *word, char name[HK_MODEL_NAME_BYTES])
{
    if (strlen(word) >= HK_MODEL_NAME_BYTES) {
        hk_wrong_line(reader, "the name '%.60s…' is too long", word);
    } else {
        memcpy(name, word, strlen(word) + 1);
    }
}

bool hk_make_place(hk_model_reader_t *reader, void *list, size_t count, size_t *room, size_t bytes)
{
    if (reader->status != HK_OK || count < *room) {
        return reader->status == HK_OK;
    }
    const size_t more = *room == 0 ? 64 : 2 * *room;
    void *old;
    memcpy(&old, list, sizeof old);
    void *grown = realloc(old, more * bytes);
    if (grown == NULL) {
        hk_wrong_line(reader, "no memory for the model");
        reader->status = HK_ERR_MEMORY;
        return false;
    }
    memcpy(list, &grown, sizeof grown);
    *room = more;
    return true;
}
