/* cold */
#include "model_words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096, VERTICES_MAX = 1 << 20 };

static const double COST_MAX_NS = 1e15; /* twelve days */

static const char *const cost_names[HK_COSTS] = {"send_cpu", "recv_cpu", "latency",   "transfer", "out",
                                                 "both",     "in",       "node",      "duplex",   "rest",
                                                 "exchange", "late",     "handshake", "ack"};
static const char *const protocol_names[] = {"eager", "rendezvous", "synchronous", NULL};
static const char *const noise_names[] = {"none", "lognormal", "exponential", NULL};
static const char *const shape_names[] = {"switch", "tree", "torus", "dragonfly", "graph", NULL};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* "8,8" after "down:" into numbers. */
static hk_status_t list_at(const hk_model_reader_t *reader, size_t i, const char *prefix, uint64_t *list, size_t count)
{
    const size_t len = strlen(prefix);
    if (i >= reader->words || strncmp(reader->word[i], prefix, len) != 0) {
        return hk_wrong_line(reader, "a tree needs '%s' and its numbers", prefix);
    }
    const char *at = reader->word[i] + len;
    for (size_t k = 0; k < count; k++) {
        char *end = NULL;
        const double value = strtod(at, &end);
        if (end == at || value < 1 || value > VERTICES_MAX || value != floor(value) ||
            *end != (k + 1 < count ? ',' : '\0')) {
            return hk_wrong_line(reader, "'%s' needs %zu whole numbers of 1 or more", reader->word[i], count);
        }
        list[k] = (uint64_t)value;
        at = end + 1;
    }
    return HK_OK;
}

static hk_status_t read_topology(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    unsigned shape = 0;
    hk_status_t status = hk_choice_at(reader, 1, shape_names, &shape);
    if (status != HK_OK) {
        return status;
    }
    reader->has_topology = true;
    model->shape = (hk_shape_t)shape;
    if (model->shape == HK_SHAPE_TREE) {
        uint64_t levels = 0;
        status = hk_count_at(reader, 2, 1, HK_MODEL_LEVELS_MAX, &levels);
        model->levels = (size_t)levels;
        status = status == HK_OK ? hk_want_words(reader, 5, 5) : status;
        status = status == HK_OK ? list_at(reader, 3, "down:", model->size, model->levels) : status;
        return status == HK_OK ? list_at(reader, 4, "width:", model->width, model->levels) : status;
    }
    static const size_t least[] = {0, 0, 1, 4, 2};
    static const size_t most[] = {0, 0, HK_MODEL_LEVELS_MAX, 4, 2};
    status = hk_want_words(reader, least[shape] + 2, most[shape] + 2);
    model->levels = status == HK_OK ? reader->words - 2 : 0;
    for (size_t k = 0; status == HK_OK && k < model->levels; k++) {
        const bool may_be_none = model->shape == HK_SHAPE_GRAPH && k == 0;
        status = hk_count_at(reader, k + 2, may_be_none ? 0 : 1, VERTICES_MAX, &model->size[k]);
    }
    return status;
}

static hk_status_t read_level(const hk_model_reader_t *reader, size_t first, hk_level_t *level_p)
{
    hk_level_t level = {0};
    hk_status_t status = hk_number_at(reader, first, 0, 1e18, &level.bytes_per_s);
    status = status == HK_OK ? hk_number_at(reader, first + 1, 0, COST_MAX_NS, &level.latency_ns) : status;
    if (status == HK_OK) {
        *level_p = level;
    }
    return status;
}

static hk_status_t read_link(hk_model_reader_t *reader)
{
    uint64_t place = 0;
    hk_status_t status = hk_want_words(reader, 4, 4);
    status = status == HK_OK ? hk_count_at(reader, 1, 0, HK_MODEL_LEVELS_MAX, &place) : status;
    status = status == HK_OK ? read_level(reader, 2, &reader->model->level[place]) : status;
    if (status == HK_OK) {
        reader->model->has_level[place] = true;
    }
    return status;
}

static hk_status_t read_edge(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    uint64_t a = 0, b = 0;
    hk_edge_t edge = {.has_own = reader->words > 3};
    if (model->shape != HK_SHAPE_GRAPH) {
        return hk_wrong_line(reader, "only a graph has edges");
    }
    const double last = (double)(model->size[0] + model->size[1]) - 1;
    hk_status_t status = hk_want_words(reader, edge.has_own ? 5 : 3, 5);
    status = status == HK_OK ? hk_count_at(reader, 1, 0, last, &a) : status;
    status = status == HK_OK ? hk_count_at(reader, 2, 0, last, &b) : status;
    status = status == HK_OK && edge.has_own ? read_level(reader, 3, &edge.own) : status;
    if (status == HK_OK && a == b) {
        status = hk_wrong_line(reader, "an edge needs two ends");
    }
    status = status == HK_OK
                 ? hk_make_place(reader, &model->edges, model->edges_count, &reader->edges_room, sizeof *model->edges)
                 : status;
    if (status == HK_OK) {
        edge.a = (uint32_t)a;
        edge.b = (uint32_t)b;
        model->edges[model->edges_count++] = edge;
    }
    return status;
}

/* via S D N1 N2 …: kept as S N1 N2 … D. */
static hk_status_t read_via(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    if (model->shape != HK_SHAPE_GRAPH) {
        return hk_wrong_line(reader, "only a graph has routes");
    }
    hk_status_t status = hk_want_words(reader, 4, HK_MODEL_WORDS_MAX);
    status = status == HK_OK
                 ? hk_make_place(reader, &model->vias, model->vias_count, &reader->vias_room, sizeof *model->vias)
                 : status;
    const hk_via_t via = {.first_vertex = model->vertices_count, .count = reader->words - 1};
    const double last = (double)(model->size[0] + model->size[1]) - 1;
    for (size_t k = 0; status == HK_OK && k < via.count; k++) {
        const size_t word = k == 0 ? 1 : k + 1 == via.count ? 2 : k + 2;
        uint64_t vertex = 0;
        status = hk_count_at(reader, word, 0, last, &vertex);
        status = status == HK_OK ? hk_make_place(reader, &model->vertices, model->vertices_count,
                                                 &reader->vertices_room, sizeof *model->vertices)
                                 : status;
        if (status == HK_OK) {
            model->vertices[model->vertices_count++] = (uint32_t)vertex;
        }
    }
    if (status == HK_OK) {
        model->vias[model->vias_count++] = via;
    }
    return status;
}

static hk_status_t read_place(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    uint64_t rank = 0, node = 0;
    hk_status_t status = hk_want_words(reader, 3, 3);
    status = status == HK_OK ? hk_count_at(reader, 1, 0, VERTICES_MAX, &rank) : status;
    status = status == HK_OK ? hk_count_at(reader, 2, 0, UINT32_MAX - 1, &node) : status;
    if (status == HK_OK && rank != model->places_count) {
        status = hk_wrong_line(reader, "the place of rank %zu is missing: they stand in order", model->places_count);
    }
    status = status == HK_OK ? hk_make_place(reader, &model->places, model->places_count, &reader->places_room,
                                             sizeof *model->places)
                             : status;
    if (status == HK_OK) {
        model->places[model->places_count++] = (uint32_t)node;
    }
    return status;
}

static hk_status_t read_condition(const hk_model_reader_t *reader, hk_class_t *class)
{
    const char *word = reader->words > 2 ? reader->word[2] : "";
    uint64_t least = 0, most = 0;
    if (strcmp(word, "any") == 0 && reader->words == 3) {
        return HK_OK;
    }
    if (strcmp(word, "same_node") == 0 && reader->words == 3) {
        class->same_node = true;
        return HK_OK;
    }
    if (strcmp(word, "switches") != 0) {
        return hk_wrong_line(reader, "a class is for same_node, switches LEAST MOST, or any");
    }
    hk_status_t status = hk_want_words(reader, 5, 5);
    status = status == HK_OK ? hk_count_at(reader, 3, 0, VERTICES_MAX, &least) : status;
    status = status == HK_OK ? hk_count_at(reader, 4, (double)least, VERTICES_MAX, &most) : status;
    class->switches_min = (uint32_t)least;
    class->switches_max = (uint32_t)most;
    return status;
}

static hk_status_t read_class(hk_model_reader_t *reader)
{
    static const char *const prefixes[HK_OPERATIONS] = {"", "put:", "get:"};
    hk_model_t *model = reader->model;
    hk_class_t class = {.switches_max = UINT32_MAX, .first_segment = model->segments_count};
    const char *name = reader->words > 1 ? reader->word[1] : "";
    for (unsigned k = HK_PUT; k < HK_OPERATIONS; k++) {
        if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0) {
            class.operation = (hk_operation_t)k;
        }
    }
    hk_status_t status = hk_copy_name(reader, name, class.name);
    status = status == HK_OK ? read_condition(reader, &class) : status;
    status = status == HK_OK ? hk_make_place(reader, &model->classes, model->classes_count, &reader->classes_room,
                                             sizeof *model->classes)
                             : status;
    if (status == HK_OK) {
        model->classes[model->classes_count++] = class;
    }
    return status;
}

static hk_status_t read_segment(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    unsigned protocol = 0;
    if (model->classes_count == 0) {
        return hk_wrong_line(reader, "a segment belongs to a class before it");
    }
    hk_class_t *class = &model->classes[model->classes_count - 1];
    hk_segment_t segment = {.packet_bytes = 0};
    hk_status_t status = hk_want_words(reader, 4, 4);
    status = status == HK_OK ? hk_count_at(reader, 1, 0, 9e15, &segment.up_to_bytes) : status;
    const char *kind = reader->word[0];
    reader->word[0] = "protocol";
    status = status == HK_OK ? hk_choice_at(reader, 2, protocol_names, &protocol) : status;
    reader->word[0] = kind;
    status = status == HK_OK ? hk_count_at(reader, 3, 0, 9e15, &segment.packet_bytes) : status;
    segment.protocol = (hk_protocol_t)protocol;
    segment.up_to_bytes = segment.up_to_bytes == 0 ? UINT64_MAX : segment.up_to_bytes;
    if (status == HK_OK && class->segments_count > 0 &&
        model->segments[model->segments_count - 1].up_to_bytes >= segment.up_to_bytes) {
        status = hk_wrong_line(reader, "the segments of class %s need growing sizes", class->name);
    }
    status = status == HK_OK ? hk_make_place(reader, &model->segments, model->segments_count, &reader->segments_room,
                                             sizeof *model->segments)
                             : status;
    if (status == HK_OK) {
        model->segments[model->segments_count++] = segment;
        class->segments_count++;
    }
    return status;
}

static hk_status_t read_cost(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    if (model->classes_count == 0 || model->classes[model->classes_count - 1].segments_count == 0) {
        return hk_wrong_line(reader, "a cost belongs to a segment before it");
    }
    hk_segment_t *segment = &model->segments[model->segments_count - 1];
    size_t which = 0;
    hk_status_t status = hk_want_words(reader, 5, 5);
    while (status == HK_OK && which < HK_COSTS && strcmp(cost_names[which], reader->word[1]) != 0) {
        which++;
    }
    if (status == HK_OK && which == HK_COSTS) {
        return hk_wrong_line(reader, "there is no cost '%s'", reader->word[1]);
    }
    hk_line_t line = {0};
    status = status == HK_OK ? hk_number_at(reader, 2, 0, COST_MAX_NS, &line.fixed_ns) : status;
    status = status == HK_OK ? hk_number_at(reader, 3, 0, COST_MAX_NS, &line.per_byte_ns) : status;
    status = status == HK_OK ? hk_number_at(reader, 4, 0, COST_MAX_NS, &line.per_packet_ns) : status;
    if (status == HK_OK && line.per_packet_ns > 0 && segment->packet_bytes == 0) {
        status = hk_wrong_line(reader, "a cost per packet needs the bytes of a packet in its segment");
    }
    if (status == HK_OK) {
        segment->cost[which] = line;
    }
    return status;
}

static hk_status_t read_noise(hk_model_reader_t *reader)
{
    unsigned noise = 0;
    hk_status_t status = hk_choice_at(reader, 1, noise_names, &noise);
    status = status == HK_OK ? hk_want_words(reader, noise == HK_NOISE_NONE ? 2 : 3, 3) : status;
    reader->model->noise = (hk_noise_t)noise;
    if (status == HK_OK && noise != HK_NOISE_NONE) {
        const double most = noise == HK_NOISE_LOGNORMAL ? 5.0 : COST_MAX_NS;
        status = hk_number_at(reader, 2, 0, most, &reader->model->noise_amount);
    }
    return status;
}

static hk_status_t read_two(const hk_model_reader_t *reader, double max, double *a_p, double *b_p)
{
    hk_status_t status = hk_want_words(reader, 3, 3);
    status = status == HK_OK ? hk_number_at(reader, 1, 0, COST_MAX_NS, a_p) : status;
    return status == HK_OK ? hk_number_at(reader, 2, 0, max, b_p) : status;
}

static hk_status_t read_alltoall(hk_model_reader_t *reader)
{
    reader->model->has_alltoall = true;
    const hk_status_t status = hk_want_words(reader, 2, 2);
    return status == HK_OK ? hk_number_at(reader, 1, 0, COST_MAX_NS, &reader->model->own_block_per_byte_ns) : status;
}

static hk_status_t read_stream(hk_model_reader_t *reader)
{
    reader->model->has_stream = true;
    const hk_status_t status = hk_want_words(reader, 2, 2);
    return status == HK_OK ? hk_count_at(reader, 1, 1, 9e15, &reader->model->stream_buffer_bytes) : status;
}

static hk_status_t read_stream_cost(hk_model_reader_t *reader)
{
    static const char *const names[] = {"write", "read", "poll", "drain", "ack", NULL};
    unsigned which = 0;
    hk_line_t line = {0};
    hk_status_t status = hk_want_words(reader, 4, 4);
    status = status == HK_OK ? hk_choice_at(reader, 1, names, &which) : status;
    status = status == HK_OK ? hk_number_at(reader, 2, 0, COST_MAX_NS, &line.fixed_ns) : status;
    status = status == HK_OK ? hk_number_at(reader, 3, 0, COST_MAX_NS, &line.per_byte_ns) : status;
    if (status == HK_OK) {
        reader->model->stream_cost[which] = line;
    }
    return status;
}

/* node_factor FACTOR NODE … */
static hk_status_t read_node_factor(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    double factor = 1;
    hk_status_t status = hk_want_words(reader, 3, HK_MODEL_WORDS_MAX);
    status = status == HK_OK ? hk_number_at(reader, 1, 0, 1e6, &factor) : status;
    for (size_t i = 2; status == HK_OK && i < reader->words; i++) {
        uint64_t node = 0;
        status = hk_count_at(reader, i, 0, VERTICES_MAX, &node);
        while (status == HK_OK && model->node_factors_count <= node) {
            status = hk_make_place(reader, &model->node_factors, model->node_factors_count, &reader->factors_room,
                                   sizeof *model->node_factors);
            if (status == HK_OK) {
                model->node_factors[model->node_factors_count++] = 1;
            }
        }
        if (status == HK_OK) {
            model->node_factors[node] = factor;
        }
    }
    return status;
}

static hk_status_t read_barrier(hk_model_reader_t *reader)
{
    reader->model->has_barrier = true;
    return read_two(reader, COST_MAX_NS, &reader->model->barrier_fixed_ns, &reader->model->barrier_per_round_ns);
}

static hk_status_t take_line(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    const char *kind = reader->word[0];
    if (strcmp(kind, "name") == 0) {
        const hk_status_t status = hk_want_words(reader, 2, 2);
        return status == HK_OK ? hk_copy_name(reader, reader->word[1], model->name) : status;
    }
    if (strcmp(kind, "compute") == 0) {
        return read_two(reader, 1e6, &model->compute_fixed_ns, &model->compute_factor);
    }
    if (strcmp(kind, "slice_ns") == 0) {
        return hk_number_at(reader, 1, 0, COST_MAX_NS, &model->slice_ns);
    }
    if (strcmp(kind, "flops_per_s") == 0) {
        return hk_number_at(reader, 1, 0, 1e18, &model->flops_per_s);
    }
    if (strcmp(kind, "turn") == 0) {
        return hk_number_at(reader, 1, 0, COST_MAX_NS, &model->turn_ns);
    }
    static const struct {
        const char *kind;
        hk_status_t (*read)(hk_model_reader_t *reader);
    } kinds[] = {
        {"noise", read_noise},       {"topology", read_topology},
        {"link", read_link},         {"edge", read_edge},
        {"via", read_via},           {"place", read_place},
        {"class", read_class},       {"segment", read_segment},
        {"cost", read_cost},         {"barrier", read_barrier},
        {"alltoall", read_alltoall}, {"node_factor", read_node_factor},
        {"stream", read_stream},     {"stream_cost", read_stream_cost},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) == 0) {
            return kinds[i].read(reader);
        }
    }
    const struct {
        const char *kind;
        double min;
        uint64_t *value_p;
    } counts[] = {{"ranks", 0, &model->ranks_max},
                  {"ranks_per_node", 1, &model->ranks_per_node},
                  {"node_cpus", 1, &model->node_cpus}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (strcmp(kind, counts[i].kind) == 0) {
            const hk_status_t status = hk_want_words(reader, 2, 2);
            return status == HK_OK ? hk_count_at(reader, 1, counts[i].min, UINT32_MAX - 1, counts[i].value_p) : status;
        }
    }
    return hk_wrong_line(reader, "there is no '%s' in a model", kind);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Every pair must fall into a class of an operation that the model has, at every size. */
static hk_status_t check_model(const hk_model_reader_t *reader)
{
    const hk_model_t *model = reader->model;
    if (!reader->has_topology) {
        return hk_wrong_line(reader, "the model has no topology");
    }
    bool is_complete[HK_OPERATIONS] = {false};
    for (size_t i = 0; i < model->classes_count; i++) {
        const hk_class_t *class = &model->classes[i];
        if (class->segments_count == 0 ||
            model->segments[class->first_segment + class->segments_count - 1].up_to_bytes != UINT64_MAX) {
            return hk_wrong_line(
                reader, "class %s says nothing of the longest messages: its last segment must be up to 0", class->name);
        }
        if (!class->same_node && class->switches_min == 0 && class->switches_max == UINT32_MAX) {
            is_complete[class->operation] = true;
        }
    }
    static const char *const names[HK_OPERATIONS] = {"messages", "puts", "gets"};
    for (unsigned k = 0; k < HK_OPERATIONS; k++) {
        if (!is_complete[k] && (k == HK_TWO_SIDED || hk_model_has(model, (hk_operation_t)k))) {
            return hk_wrong_line(reader, "no class of %s is for any pair", names[k]);
        }
    }
    return HK_OK;
}

static hk_status_t split_line(hk_model_reader_t *reader, char *line)
{
    char *rest = NULL;
    line[strcspn(line, "#\r\n")] = '\0';
    reader->words = 0;
    for (char *word = strtok_r(line, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        if (reader->words == HK_MODEL_WORDS_MAX) {
            return hk_wrong_line(reader, "the line has more than %d words", HK_MODEL_WORDS_MAX);
        }
        reader->word[reader->words++] = word;
    }
    return HK_OK;
}

static hk_status_t read_model(hk_model_reader_t *reader, FILE *file)
{
    char line[LINE_BYTES];
    bool has_version = false;
    while (fgets(line, sizeof line, file) != NULL) {
        reader->line++;
        if (strchr(line, '\n') == NULL && !feof(file)) {
            return hk_wrong_line(reader, "the line is too long");
        }
        hk_status_t status = split_line(reader, line);
        if (status == HK_OK && reader->words == 0) {
            continue;
        }
        if (status == HK_OK && !has_version) {
            has_version = strcmp(reader->word[0], "hockney-model") == 0 && reader->words == 2 &&
                          strcmp(reader->word[1], "1") == 0;
            status = has_version ? HK_OK : hk_wrong_line(reader, "a model begins with the line 'hockney-model 1'");
        } else if (status == HK_OK) {
            status = take_line(reader);
        }
        if (status != HK_OK) {
            return status;
        }
    }
    return has_version ? check_model(reader) : hk_wrong_line(reader, "the model is empty");
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
    const hk_status_t status = read_model(&reader, file);
    (void)fclose(file);
    if (status != HK_OK) {
        hk_model_free(&model);
        return status;
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

bool hk_model_has(const hk_model_t *model, hk_operation_t operation)
{
    for (size_t i = 0; i < model->classes_count; i++) {
        if (model->classes[i].operation == operation) {
            return true;
        }
    }
    return false;
}
