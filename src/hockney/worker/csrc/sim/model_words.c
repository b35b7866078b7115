/* cold */
#include "model_words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hk_status_t hk_wrong_line(const hk_model_reader_t *reader, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "hockney worker: model %s, line %d: %s\n", reader->path, reader->line, text);
    return HK_ERR_ARGUMENT;
}

hk_status_t hk_number_at(const hk_model_reader_t *reader, size_t i, double min, double max, double *value_p)
{
    char *end = NULL;
    if (i >= reader->words) {
        return hk_wrong_line(reader, "'%s' needs more numbers", reader->word[0]);
    }
    errno = 0;
    const double value = strtod(reader->word[i], &end);
    if (end == reader->word[i] || *end != '\0' || !isfinite(value)) {
        return hk_wrong_line(reader, "'%s' is not a number", reader->word[i]);
    }
    if (value < min || value > max) {
        return hk_wrong_line(reader, "'%s' of %s must be from %.15g to %.15g", reader->word[i], reader->word[0], min,
                             max);
    }
    *value_p = value;
    return HK_OK;
}

hk_status_t hk_count_at(const hk_model_reader_t *reader, size_t i, double min, double max, uint64_t *value_p)
{
    double value = 0;
    const hk_status_t status = hk_number_at(reader, i, min, max, &value);
    if (status == HK_OK && value != floor(value)) {
        return hk_wrong_line(reader, "'%s' is not a whole number", reader->word[i]);
    }
    if (status == HK_OK) {
        *value_p = (uint64_t)value;
    }
    return status;
}

hk_status_t hk_choice_at(const hk_model_reader_t *reader, size_t i, const char *const *names, unsigned *value_p)
{
    const char *word = i < reader->words ? reader->word[i] : "";
    for (unsigned k = 0; names[k] != NULL; k++) {
        if (strcmp(names[k], word) == 0) {
            *value_p = k;
            return HK_OK;
        }
    }
    return hk_wrong_line(reader, "'%s' is no %s", word, reader->word[0]);
}

hk_status_t hk_copy_name(const hk_model_reader_t *reader, const char *word, char name[HK_MODEL_NAME_BYTES])
{
    if (strlen(word) >= HK_MODEL_NAME_BYTES) {
        return hk_wrong_line(reader, "the name '%.60s…' is too long", word);
    }
    memcpy(name, word, strlen(word) + 1);
    return HK_OK;
}

hk_status_t hk_want_words(const hk_model_reader_t *reader, size_t least, size_t most)
{
    if (reader->words < least || reader->words > most) {
        return hk_wrong_line(reader, "'%s' has %zu values, not %zu", reader->word[0], reader->words - 1, least - 1);
    }
    return HK_OK;
}

hk_status_t hk_make_place(const hk_model_reader_t *reader, void *list, size_t count, size_t *room, size_t bytes)
{
    if (count < *room) {
        return HK_OK;
    }
    const size_t more = *room == 0 ? 64 : 2 * *room;
    void *old;
    memcpy(&old, list, sizeof old);
    void *grown = realloc(old, more * bytes);
    if (grown == NULL) {
        (void)hk_wrong_line(reader, "no memory for the model");
        return HK_ERR_MEMORY;
    }
    memcpy(list, &grown, sizeof grown);
    *room = more;
    return HK_OK;
}
