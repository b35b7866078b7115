/* cold */
#include "model_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

/* Every pair must have a class of each operation in the model, for all sizes. */
static void check_model(hk_model_reader_t *reader)
{
    const hk_model_t *model = reader->model;
    if (!reader->has_topology) {
        hk_wrong_line(reader, "the model has no topology");
    }
    bool is_complete[HK_TRAFFICS] = {false};
    for (size_t i = 0; i < model->classes_count; i++) {
        const hk_class_t *class = &model->classes[i];
        if (class->segments_count == 0 ||
            model->segments[class->first_segment + class->segments_count - 1].up_to_bytes != UINT64_MAX) {
            hk_wrong_line(reader, "class %s has no segment for the largest messages: its last segment must be up to 0",
                          class->name);
        }
        if (!class->same_node && class->switches_min == 0 && class->switches_max == UINT32_MAX) {
            is_complete[class->operation] = true;
        }
    }
    static const char *const names[HK_TRAFFICS] = {"messages", "puts", "gets"};
    for (unsigned k = 0; k < HK_TRAFFICS; k++) {
        if (!is_complete[k] && (k == HK_TWO_SIDED || hk_model_has(model, (hk_traffic_t)k))) {
            hk_wrong_line(reader, "no class of %s applies to any pair", names[k]);
        }
    }
}

static void split_line(hk_model_reader_t *reader, char *line)
{
    char *rest = NULL;
    line[strcspn(line, "#\r\n")] = '\0';
    reader->words = 0;
    for (char *word = strtok_r(line, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        if (reader->words == HK_MODEL_WORDS_MAX) {
            hk_wrong_line(reader, "the line has more than %d words", HK_MODEL_WORDS_MAX);
            return;
        }
        reader->word[reader->words++] = word;
    }
}

static void read_lines(hk_model_reader_t *reader, FILE *file)
{
    char line[LINE_BYTES];
    bool has_version = false;
    while (reader->status == HK_OK && fgets(line, sizeof line, file) != NULL) {
        reader->line++;
        if (strchr(line, '\n') == NULL && !feof(file)) {
            hk_wrong_line(reader, "the line is too long");
        }
        split_line(reader, line);
        if (reader->status != HK_OK || reader->words == 0) {
            continue;
        }
        if (has_version) {
            hk_take_line(reader);
            continue;
        }
        has_version =
            strcmp(reader->word[0], "hockney-model") == 0 && reader->words == 2 && strcmp(reader->word[1], "1") == 0;
        if (!has_version) {
            hk_wrong_line(reader, "a model begins with the line 'hockney-model 1'");
        }
    }
    if (!has_version) {
        hk_wrong_line(reader, "the model is empty");
    }
}

hk_status_t hk_model_read(const char *path, hk_model_t *model_p)
{
    hk_model_t model = {.ranks_per_node = 1, .node_cpus = 1, .compute_factor = 1};
    hk_model_reader_t reader = {.path = path, .model = &model};
    strcpy(model.name, "model");
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "hockney worker: cannot read the model %s: %s\n", path, strerror(errno));
        return HK_ERR_ARGUMENT;
    }
    read_lines(&reader, file);
    (void)fclose(file);
    check_model(&reader);
    if (reader.status != HK_OK) {
        hk_model_free(&model);
        return reader.status;
    }
    *model_p = model;
    return HK_OK;
}

void hk_model_free(hk_model_t *model)
{
    free(model->edges);
    free(model->vias);
    free(model->vertices);
    free(model->places);
    free(model->node_factors);
    free(model->classes);
    free(model->segments);
    *model = (hk_model_t){0};
}

bool hk_model_has(const hk_model_t *model, hk_traffic_t operation)
{
    for (size_t i = 0; i < model->classes_count; i++) {
        if (model->classes[i].operation == operation) {
            return true;
        }
    }
    return false;
}
