/* cold */
#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "registry.h"

/* Part of the line; not terminated. */
typedef struct text {
    const char *at;
    size_t len;
} text_t;

typedef struct parser {
    char *error;
    hk_command_t command;
    const hk_pattern_t *pattern;
    uint32_t seen; /* bits of fields[], followed by those of the pattern's options */
} parser_t;

typedef struct field {
    const char *name;
    uint32_t verbs; /* bits of 1 << hk_verb_t */
    uint64_t min, max;
    size_t offset;       /* of a uint64_t in hk_command_t */
    const char *choices; /* NULL: a number */
} field_t;

enum {
    FOR_HELLO = 1u << HK_VERB_HELLO,
    FOR_MEASURE = 1u << HK_VERB_MEASURE,
    FOR_FLOOR = 1u << HK_VERB_FLOOR,
    FOR_QUIT = 1u << HK_VERB_QUIT,
    FOR_ALL = FOR_HELLO | FOR_MEASURE | FOR_FLOOR | FOR_QUIT,
};

/* All keys except pattern= and the options of patterns. */
static const field_t fields[] = {
    {"id", FOR_ALL, 0, UINT64_MAX, offsetof(hk_command_t, id), NULL},
    {"bytes", FOR_MEASURE, 0, (uint64_t)1 << 40, offsetof(hk_command_t, bytes), NULL},
    {"batch", FOR_MEASURE | FOR_FLOOR, 1, (uint64_t)1 << 40, offsetof(hk_command_t, batch), NULL},
    {"samples", FOR_MEASURE | FOR_FLOOR, 1, 1000000, offsetof(hk_command_t, samples), NULL},
    {"warmup", FOR_MEASURE, 0, (uint64_t)1 << 40, offsetof(hk_command_t, warmup), NULL},
    {"timeout_s", FOR_MEASURE | FOR_FLOOR, 1, 86400, offsetof(hk_command_t, timeout_s), NULL},
    {"verify", FOR_MEASURE, 0, 0, offsetof(hk_command_t, verify), "no|yes"},
    {"eof", FOR_HELLO, 0, 0, offsetof(hk_command_t, abort_on_eof), "finish|abort"},
    {"version", FOR_HELLO, 1, 1, offsetof(hk_command_t, version), NULL},
};
enum { FIELDS = sizeof fields / sizeof fields[0], BIT_PATTERN = FIELDS, BIT_OPTION };

static const char *const verbs[] = {"hello", "measure", "floor", "quit"};

static bool same(text_t text, const char *word)
{
    return strlen(word) == text.len && memcmp(word, text.at, text.len) == 0;
}

static hk_status_t refuse(parser_t *parser, const char *what, text_t culprit)
{
    const int len = culprit.len > 64 ? 64 : (int)culprit.len;
    snprintf(parser->error, HK_ERROR_MAX, "%s: '%.*s'", what, len, culprit.at);
    return HK_ERR_ARGUMENT;
}

static bool next_word(text_t *rest, text_t *word_p)
{
    while (rest->len > 0 && *rest->at == ' ') {
        rest->at++;
        rest->len--;
    }
    size_t len = 0;
    while (len < rest->len && rest->at[len] != ' ') {
        len++;
    }
    *word_p = (text_t){rest->at, len};
    rest->at += len;
    rest->len -= len;
    return len > 0;
}

/* Digits, then at most one of K, M, G (powers of 1024). */
static bool parse_unsigned(text_t text, uint64_t *value_p)
{
    uint64_t scale = 1;
    if (text.len > 1) {
        const char last = text.at[text.len - 1];
        scale = last == 'K' ? 1024 : last == 'M' ? 1024 * 1024 : last == 'G' ? 1024 * 1024 * 1024 : 1;
        text.len -= scale > 1;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = 10 * value + (uint64_t)(text.at[i] - '0');
    }
    if (text.len == 0 || value > UINT64_MAX / scale) {
        return false;
    }
    *value_p = value * scale;
    return true;
}

static hk_status_t take_once(parser_t *parser, unsigned bit, text_t key)
{
    if ((parser->seen & (1u << bit)) != 0) {
        return refuse(parser, "given twice", key);
    }
    parser->seen |= 1u << bit;
    return HK_OK;
}

/* The index of value in "a|b|c", or -1. */
static int64_t find_choice(const char *choices, text_t value)
{
    int64_t place = 0;
    for (const char *at = choices; *at != '\0'; place++) {
        const size_t len = strcspn(at, "|");
        if (len == value.len && memcmp(at, value.at, len) == 0) {
            return place;
        }
        at += len;
        at += *at == '|';
    }
    return -1;
}

/* Takes a number or a word. A key may occur once: `bit` is its place in `seen`. */
static hk_status_t take_field(parser_t *parser, unsigned bit, const field_t *field, text_t key, text_t value,
                              uint64_t *value_p)
{
    uint64_t number = 0;
    if (field->choices != NULL) {
        const int64_t place = find_choice(field->choices, value);
        if (place < 0) {
            snprintf(parser->error, HK_ERROR_MAX, "%s must be one of %s", field->name, field->choices);
            return HK_ERR_ARGUMENT;
        }
        number = (uint64_t)place;
    } else if (!parse_unsigned(value, &number)) {
        return refuse(parser, "not a number", value);
    } else if (number < field->min || number > field->max) {
        snprintf(parser->error, HK_ERROR_MAX, "%s must be from %" PRIu64 " to %" PRIu64, field->name, field->min,
                 field->max);
        return HK_ERR_ARGUMENT;
    }
    HK_TRY(take_once(parser, bit, key));
    *value_p = number;
    return HK_OK;
}

/* Numbers with signs, such as +1-1+64, none of them 0. */
static hk_status_t take_list(parser_t *parser, text_t value, int64_t *count_p)
{
    int64_t count = 0;
    for (size_t at = 0; at < value.len; count++) {
        const char sign = value.at[at++];
        text_t digits = {value.at + at, 0};
        uint64_t number = 0;
        for (; at < value.len && value.at[at] >= '0' && value.at[at] <= '9'; at++) {
            digits.len++;
        }
        if ((sign != '+' && sign != '-') || !parse_unsigned(digits, &number) || number < 1 || number > INT32_MAX ||
            count == HK_LIST_MAX) {
            return refuse(parser, "not up to 64 numbers with signs, such as +1-1", value);
        }
        parser->command.list[count] = sign == '-' ? -(int32_t)number : (int32_t)number;
    }
    *count_p = count;
    return HK_OK;
}

static bool is_list(const hk_option_t *option, text_t value)
{
    const char *last = option->choices != NULL ? strrchr(option->choices, '|') : NULL;
    return last != NULL && strcmp(last, HK_LIST) == 0 && value.len > 0 && (*value.at == '+' || *value.at == '-');
}

static hk_status_t take_option(parser_t *parser, text_t key, text_t value)
{
    const hk_option_t *options = parser->pattern->option;
    for (unsigned i = 0; i < HK_OPTIONS_MAX && options[i].name != NULL; i++) {
        if (same(key, options[i].name)) {
            const field_t field = {.name = options[i].name,
                                   .min = (uint64_t)options[i].min,
                                   .max = (uint64_t)options[i].max,
                                   .choices = options[i].choices};
            uint64_t number = 0;
            if (is_list(&options[i], value)) {
                HK_TRY(take_once(parser, BIT_OPTION + i, key));
                return take_list(parser, value, &parser->command.option[i]);
            }
            HK_TRY(take_field(parser, BIT_OPTION + i, &field, key, value, &number));
            parser->command.option[i] = (int64_t)number;
            return HK_OK;
        }
    }
    return refuse(parser, "unknown key", key);
}

static hk_status_t take_pattern(parser_t *parser, text_t key, text_t value)
{
    for (uint32_t i = 0; hk_patterns[i] != NULL; i++) {
        if (same(value, hk_patterns[i]->name)) {
            parser->pattern = hk_patterns[i];
            parser->command.pattern = i;
            for (unsigned k = 0; k < HK_OPTIONS_MAX; k++) {
                parser->command.option[k] = hk_patterns[i]->option[k].fallback;
            }
            return take_once(parser, BIT_PATTERN, key);
        }
    }
    return refuse(parser, "unknown pattern", value);
}

static hk_status_t take_pair(parser_t *parser, text_t word)
{
    const char *equals = memchr(word.at, '=', word.len);
    if (equals == NULL) {
        return refuse(parser, "expected key=value", word);
    }
    const text_t key = {word.at, (size_t)(equals - word.at)};
    const text_t value = {equals + 1, word.len - key.len - 1};
    const uint32_t verb = 1u << parser->command.verb;
    for (unsigned i = 0; i < FIELDS; i++) {
        if (same(key, fields[i].name) && (fields[i].verbs & verb) != 0) {
            uint64_t *target = (uint64_t *)(void *)((char *)&parser->command + fields[i].offset);
            return take_field(parser, i, &fields[i], key, value, target);
        }
    }
    if (same(key, "pattern") && verb == FOR_MEASURE) {
        return parser->pattern != NULL && (parser->seen & (1u << BIT_PATTERN)) != 0
                   ? HK_OK
                   : refuse(parser, "given twice", key);
    }
    return verb == FOR_MEASURE ? take_option(parser, key, value) : refuse(parser, "unknown key", key);
}

/* The options depend on the pattern, so find it first, in any position. */
static hk_status_t find_pattern(parser_t *parser, text_t rest)
{
    static const char key[] = "pattern=";
    const size_t key_len = sizeof key - 1;
    text_t word;
    while (next_word(&rest, &word)) {
        if (word.len >= key_len && memcmp(word.at, key, key_len) == 0) {
            const hk_status_t status =
                take_pattern(parser, (text_t){word.at, key_len - 1}, (text_t){word.at + key_len, word.len - key_len});
            if (status != HK_OK) {
                return status;
            }
        }
    }
    return parser->pattern != NULL ? HK_OK : refuse(parser, "measure needs pattern=", (text_t){"", 0});
}

hk_status_t hk_command_parse(const char *line, size_t len, hk_command_t *command_p, char error[HK_ERROR_MAX])
{
    parser_t parser = {.error = error,
                       .command = {.batch = 1, .samples = 10, .warmup = 1, .timeout_s = 60, .verify = 1}};
    command_p->id = 0;
    for (size_t i = 0; i < len; i++) {
        if (line[i] < ' ' || line[i] > '~') {
            snprintf(error, HK_ERROR_MAX, "byte %zu is not a printable ASCII character", i + 1);
            return HK_ERR_ARGUMENT;
        }
    }
    text_t rest = {line, len};
    text_t word;
    if (!next_word(&rest, &word)) {
        snprintf(error, HK_ERROR_MAX, "empty line: expected one of hello, measure, floor, quit");
        return HK_ERR_ARGUMENT;
    }
    unsigned verb = 0;
    while (verb <= HK_VERB_QUIT && !same(word, verbs[verb])) {
        verb++;
    }
    if (verb > HK_VERB_QUIT) {
        return refuse(&parser, "unknown command", word);
    }
    parser.command.verb = (hk_verb_t)verb;
    hk_status_t status = verb == HK_VERB_MEASURE ? find_pattern(&parser, rest) : HK_OK;
    while (status == HK_OK && next_word(&rest, &word)) {
        status = take_pair(&parser, word);
    }
    command_p->id = parser.command.id; /* an error answer carries the id too, if it was parsed */
    if (status == HK_OK) {
        *command_p = parser.command;
    }
    return status;
}
