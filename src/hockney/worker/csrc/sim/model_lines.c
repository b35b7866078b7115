/* cold */
/* Reads each kind of line in a model's file. */
#include "model_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERTICES_MAX = 1 << 20 };

static const double COST_MAX_NS = 1e15; /* twelve days */
static const double BYTES_MAX = 9e15;   /* the largest range in which a double is exact */

static const char *const cost_names[] = {"send_cpu", "recv_cpu", "latency",   "transfer", "out",
                                         "both",     "in",       "node",      "duplex",   "rest",
                                         "exchange", "late",     "handshake", "ack",      NULL};
static const char *const protocol_names[] = {"eager", "rendezvous", "synchronous", NULL};
static const char *const noise_names[] = {"none", "lognormal", "exponential", NULL};
static const char *const shape_names[] = {"switch", "tree", "torus", "dragonfly", "graph", NULL};
static const char *const stream_cost_names[] = {"write", "read", "poll", "drain", "ack", NULL};

_Static_assert(sizeof cost_names / sizeof cost_names[0] == HK_COSTS + 1, "a name for each cost");

static double ns_at(hk_model_reader_t *reader, size_t i)
{
    return hk_number_at(reader, i, 0, COST_MAX_NS);
}

static void read_name(hk_model_reader_t *reader)
{
    hk_want_words(reader, 2, 2);
    if (reader->status == HK_OK) {
        hk_copy_name(reader, reader->word[1], reader->model->name);
    }
}

/* ---- what connects ranks ----------------------------------------------------------------------------------------- */

/* Reads "8,8" after "down:" as numbers. */
static void read_list(hk_model_reader_t *reader, size_t i, const char *prefix, uint64_t *list, size_t count)
{
    const size_t len = strlen(prefix);
    if (i >= reader->words || strncmp(reader->word[i], prefix, len) != 0) {
        hk_wrong_line(reader, "a tree needs '%s' and its numbers", prefix);
        return;
    }
    const char *at = reader->word[i] + len;
    for (size_t k = 0; k < count && reader->status == HK_OK; k++) {
        char *end = NULL;
        const double value = strtod(at, &end);
        if (end == at || value < 1 || value > VERTICES_MAX || value != floor(value) ||
            *end != (k + 1 < count ? ',' : '\0')) {
            hk_wrong_line(reader, "'%s' needs %zu whole numbers of 1 or more", reader->word[i], count);
            return;
        }
        list[k] = (uint64_t)value;
        at = end + 1;
    }
}

static void read_topology(hk_model_reader_t *reader)
{
    static const size_t least[] = {0, 0, 1, 4, 2};
    static const size_t most[] = {0, 0, HK_MODEL_LEVELS_MAX, 4, 2};
    hk_model_t *model = reader->model;
    const unsigned shape = hk_choice_at(reader, 1, shape_names, "topology");
    if (reader->has_topology) { /* edges may be of the first one */
        hk_wrong_line(reader, "the model has a topology already");
    }
    reader->has_topology = true;
    model->shape = (hk_shape_t)shape;
    if (model->shape == HK_SHAPE_TREE) {
        model->levels = (size_t)hk_count_at(reader, 2, 1, HK_MODEL_LEVELS_MAX);
        hk_want_words(reader, 5, 5);
        read_list(reader, 3, "down:", model->size, model->levels);
        read_list(reader, 4, "width:", model->width, model->levels);
        return;
    }
    hk_want_words(reader, least[shape] + 2, most[shape] + 2);
    model->levels = reader->status == HK_OK ? reader->words - 2 : 0;
    for (size_t k = 0; k < model->levels; k++) {
        const bool may_be_none = model->shape == HK_SHAPE_GRAPH && k == 0;
        model->size[k] = hk_count_at(reader, k + 2, may_be_none ? 0 : 1, VERTICES_MAX);
    }
}

static hk_level_t level_at(hk_model_reader_t *reader, size_t first)
{
    const double bytes_per_s = hk_number_at(reader, first, 0, 1e18);
    return (hk_level_t){.bytes_per_s = bytes_per_s, .latency_ns = ns_at(reader, first + 1)};
}

static void read_link(hk_model_reader_t *reader)
{
    hk_want_words(reader, 4, 4);
    const size_t place = (size_t)hk_count_at(reader, 1, 0, HK_MODEL_LEVELS_MAX);
    reader->model->level[place] = level_at(reader, 2);
    reader->model->has_level[place] = true;
}

/* A node or a switch of a graph. */
static uint32_t vertex_at(hk_model_reader_t *reader, size_t i)
{
    return (uint32_t)hk_count_at(reader, i, 0, (double)(reader->model->size[0] + reader->model->size[1]) - 1);
}

static void read_edge(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    hk_edge_t edge = {.has_own = reader->words > 3};
    if (model->shape != HK_SHAPE_GRAPH) {
        hk_wrong_line(reader, "only a graph has edges");
    }
    hk_want_words(reader, edge.has_own ? 5 : 3, 5);
    edge.a = vertex_at(reader, 1);
    edge.b = vertex_at(reader, 2);
    if (edge.has_own) {
        edge.own = level_at(reader, 3);
    }
    if (edge.a == edge.b) {
        hk_wrong_line(reader, "an edge needs two ends");
    }
    if (hk_make_place(reader, &model->edges, model->edges_count, &reader->edges_room, sizeof edge)) {
        model->edges[model->edges_count++] = edge;
    }
}

/* via S D N1 N2 …: stored as S N1 N2 … D. */
static void read_via(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    if (model->shape != HK_SHAPE_GRAPH) {
        hk_wrong_line(reader, "only a graph has routes");
    }
    hk_want_words(reader, 4, HK_MODEL_WORDS_MAX);
    const hk_via_t via = {.first_vertex = model->vertices_count, .count = reader->words - 1};
    for (size_t k = 0; k < via.count; k++) {
        const size_t word = k == 0 ? 1 : k + 1 == via.count ? 2 : k + 2;
        const uint32_t vertex = vertex_at(reader, word);
        if (hk_make_place(reader, &model->vertices, model->vertices_count, &reader->vertices_room, sizeof vertex)) {
            model->vertices[model->vertices_count++] = vertex;
        }
    }
    if (hk_make_place(reader, &model->vias, model->vias_count, &reader->vias_room, sizeof via)) {
        model->vias[model->vias_count++] = via;
    }
}

static void read_place(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    hk_want_words(reader, 3, 3);
    const uint64_t rank = hk_count_at(reader, 1, 0, VERTICES_MAX);
    const uint32_t node = (uint32_t)hk_count_at(reader, 2, 0, UINT32_MAX - 1);
    if (rank != model->places_count) {
        hk_wrong_line(reader, "the place of rank %zu is missing: places must be in order", model->places_count);
    }
    if (hk_make_place(reader, &model->places, model->places_count, &reader->places_room, sizeof node)) {
        model->places[model->places_count++] = node;
    }
}

/* ---- what messages cost ------------------------------------------------------------------------------------------ */

static void read_condition(hk_model_reader_t *reader, hk_class_t *class)
{
    const char *word = reader->words > 2 ? reader->word[2] : "";
    if (strcmp(word, "any") == 0 && reader->words == 3) {
        return;
    }
    if (strcmp(word, "same_node") == 0 && reader->words == 3) {
        class->same_node = true;
        return;
    }
    if (strcmp(word, "switches") != 0) {
        hk_wrong_line(reader, "a class is for same_node, switches LEAST MOST, or any");
    }
    hk_want_words(reader, 5, 5);
    class->switches_min = (uint32_t)hk_count_at(reader, 3, 0, VERTICES_MAX);
    class->switches_max = (uint32_t)hk_count_at(reader, 4, class->switches_min, VERTICES_MAX);
}

static void read_class(hk_model_reader_t *reader)
{
    static const char *const prefixes[HK_TRAFFICS] = {"", "put:", "get:"};
    hk_model_t *model = reader->model;
    hk_class_t class = {.switches_max = UINT32_MAX, .first_segment = model->segments_count};
    const char *name = reader->words > 1 ? reader->word[1] : "";
    for (unsigned k = HK_PUT; k < HK_TRAFFICS; k++) {
        if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0) {
            class.operation = (hk_traffic_t)k;
        }
    }
    hk_copy_name(reader, name, class.name);
    read_condition(reader, &class);
    if (hk_make_place(reader, &model->classes, model->classes_count, &reader->classes_room, sizeof class)) {
        model->classes[model->classes_count++] = class;
    }
}

static void read_segment(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    if (model->classes_count == 0) {
        hk_wrong_line(reader, "a segment must follow its class");
        return;
    }
    hk_class_t *class = &model->classes[model->classes_count - 1];
    hk_segment_t segment = {.packet_bytes = 0};
    hk_want_words(reader, 4, 4);
    segment.up_to_bytes = hk_count_at(reader, 1, 0, BYTES_MAX);
    segment.up_to_bytes = segment.up_to_bytes == 0 ? UINT64_MAX : segment.up_to_bytes;
    segment.protocol = (hk_protocol_t)hk_choice_at(reader, 2, protocol_names, "protocol");
    segment.packet_bytes = hk_count_at(reader, 3, 0, BYTES_MAX);
    if (class->segments_count > 0 && model->segments[model->segments_count - 1].up_to_bytes >= segment.up_to_bytes) {
        hk_wrong_line(reader, "the segments of class %s need increasing sizes", class->name);
    }
    if (hk_make_place(reader, &model->segments, model->segments_count, &reader->segments_room, sizeof segment)) {
        model->segments[model->segments_count++] = segment;
        class->segments_count++;
    }
}

static void read_cost(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    if (model->classes_count == 0 || model->classes[model->classes_count - 1].segments_count == 0) {
        hk_wrong_line(reader, "a cost must follow its segment");
        return;
    }
    hk_segment_t *segment = &model->segments[model->segments_count - 1];
    hk_want_words(reader, 5, 5);
    hk_line_t *line = &segment->cost[hk_choice_at(reader, 1, cost_names, "cost")];
    line->fixed_ns = ns_at(reader, 2);
    line->per_byte_ns = ns_at(reader, 3);
    line->per_packet_ns = ns_at(reader, 4);
    if (line->per_packet_ns > 0 && segment->packet_bytes == 0) {
        hk_wrong_line(reader, "a cost per packet needs the bytes of a packet in its segment");
    }
}

static void read_noise(hk_model_reader_t *reader)
{
    const unsigned noise = hk_choice_at(reader, 1, noise_names, "noise");
    hk_want_words(reader, noise == HK_NOISE_NONE ? 2 : 3, 3);
    reader->model->noise = (hk_noise_t)noise;
    if (noise != HK_NOISE_NONE) {
        reader->model->noise_amount = hk_number_at(reader, 2, 0, noise == HK_NOISE_LOGNORMAL ? 5.0 : COST_MAX_NS);
    }
}

static void read_stream(hk_model_reader_t *reader)
{
    hk_want_words(reader, 2, 2);
    reader->model->has_stream = true;
    reader->model->stream_buffer_bytes = hk_count_at(reader, 1, 1, BYTES_MAX);
}

static void read_stream_cost(hk_model_reader_t *reader)
{
    hk_want_words(reader, 4, 4);
    hk_line_t *line = &reader->model->stream_cost[hk_choice_at(reader, 1, stream_cost_names, "stream_cost")];
    line->fixed_ns = ns_at(reader, 2);
    line->per_byte_ns = ns_at(reader, 3);
}

/* switch BUFFER_BYTES port|shared */
static void read_switch(hk_model_reader_t *reader)
{
    static const char *const whose[] = {"port", "shared", NULL};
    hk_want_words(reader, 3, 3);
    reader->model->switch_buffer_bytes = hk_count_at(reader, 1, 1, BYTES_MAX);
    reader->model->switch_is_shared = hk_choice_at(reader, 2, whose, "switch") == 1;
}

/* tcp MIN_RTO_NS WINDOW_BYTES MSS_BYTES HEADER_BYTES INITIAL_WINDOW [PROBE_NS [JITTER]] */
static void read_tcp(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    hk_want_words(reader, 6, 8);
    model->has_tcp = true;
    model->tcp_min_rto_ns = hk_number_at(reader, 1, 1, COST_MAX_NS);
    model->tcp_window_bytes = hk_count_at(reader, 2, 0, BYTES_MAX);
    model->tcp_mss_bytes = hk_count_at(reader, 3, 1, UINT32_MAX);
    model->tcp_header_bytes = hk_count_at(reader, 4, 0, UINT32_MAX);
    model->tcp_initial_window = hk_count_at(reader, 5, 1, UINT32_MAX);
    model->tcp_probe_ns = reader->words > 6 ? ns_at(reader, 6) : 0;
    model->tcp_jitter = reader->words > 7 ? hk_number_at(reader, 7, 0, 1) : 0;
    if (model->switch_buffer_bytes < model->tcp_mss_bytes + model->tcp_header_bytes) {
        hk_wrong_line(reader, "tcp must follow a switch whose buffer holds a segment");
    }
}

static void read_barrier(hk_model_reader_t *reader)
{
    hk_want_words(reader, 3, 3);
    reader->model->has_barrier = true;
    reader->model->barrier_fixed_ns = ns_at(reader, 1);
    reader->model->barrier_per_round_ns = ns_at(reader, 2);
}

static void read_alltoall(hk_model_reader_t *reader)
{
    hk_want_words(reader, 2, 2);
    reader->model->has_alltoall = true;
    reader->model->own_block_per_byte_ns = ns_at(reader, 1);
}

/* ---- nodes and their CPUs ---------------------------------------------------------------------------------------- */

/* node_factor FACTOR NODE … */
static void read_node_factor(hk_model_reader_t *reader)
{
    hk_model_t *model = reader->model;
    hk_want_words(reader, 3, HK_MODEL_WORDS_MAX);
    const double factor = hk_number_at(reader, 1, 0, 1e6);
    for (size_t i = 2; i < reader->words && reader->status == HK_OK; i++) {
        const size_t node = (size_t)hk_count_at(reader, i, 0, VERTICES_MAX);
        while (model->node_factors_count <= node &&
               hk_make_place(reader, &model->node_factors, model->node_factors_count, &reader->factors_room,
                             sizeof factor)) {
            model->node_factors[model->node_factors_count++] = 1;
        }
        if (reader->status == HK_OK) {
            model->node_factors[node] = factor;
        }
    }
}

static void read_compute(hk_model_reader_t *reader)
{
    hk_want_words(reader, 3, 3);
    reader->model->compute_fixed_ns = ns_at(reader, 1);
    reader->model->compute_factor = hk_number_at(reader, 2, 0, 1e6);
}

void hk_take_line(hk_model_reader_t *reader)
{
    static const struct {
        const char *kind;
        void (*read)(hk_model_reader_t *reader);
    } kinds[] = {
        {"name", read_name},         {"topology", read_topology},
        {"link", read_link},         {"edge", read_edge},
        {"via", read_via},           {"place", read_place},
        {"class", read_class},       {"segment", read_segment},
        {"cost", read_cost},         {"noise", read_noise},
        {"stream", read_stream},     {"stream_cost", read_stream_cost},
        {"barrier", read_barrier},   {"node_factor", read_node_factor},
        {"alltoall", read_alltoall}, {"compute", read_compute},
        {"switch", read_switch},     {"tcp", read_tcp},
    };
    hk_model_t *model = reader->model;
    const struct {
        const char *kind;
        double max;
        double *value_p;
    } numbers[] = {{"slice_ns", COST_MAX_NS, &model->slice_ns},
                   {"turn", COST_MAX_NS, &model->turn_ns},
                   {"flops_per_s", 1e18, &model->flops_per_s}};
    const struct {
        const char *kind;
        double min;
        uint64_t *value_p;
    } counts[] = {{"ranks", 0, &model->ranks_max},
                  {"ranks_per_node", 1, &model->ranks_per_node},
                  {"node_cpus", 1, &model->node_cpus}};
    const char *kind = reader->word[0];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) == 0) {
            kinds[i].read(reader);
            return;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(kind, numbers[i].kind) == 0) {
            *numbers[i].value_p = hk_number_at(reader, 1, 0, numbers[i].max);
            return;
        }
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (strcmp(kind, counts[i].kind) == 0) {
            hk_want_words(reader, 2, 2);
            *counts[i].value_p = hk_count_at(reader, 1, counts[i].min, UINT32_MAX - 1);
            return;
        }
    }
    hk_wrong_line(reader, "unknown keyword '%s'", kind);
}
