/* cold */
/* `--describe`: the patterns and transports of this executable, for `hockney list` and the check of a plan. */
#include "answer.h"
#include "registry.h"

static void put_caps(hk_answer_t *answer, const char *key, uint32_t caps)
{
    hk_answer_open(answer, key, '[');
    for (unsigned i = 0; i < HK_CAPS_COUNT; i++) {
        if ((caps & (1u << i)) != 0) {
            hk_answer_string(answer, NULL, hk_capabilities[i].name);
        }
    }
    hk_answer_close(answer, ']');
}

static void put_options(hk_answer_t *answer, const hk_pattern_t *pattern)
{
    hk_answer_open(answer, "options", '[');
    for (unsigned i = 0; i < HK_OPTIONS_MAX && pattern->option[i].name != NULL; i++) {
        const hk_option_t *option = &pattern->option[i];
        hk_answer_open(answer, NULL, '{');
        hk_answer_string(answer, "name", option->name);
        hk_answer_string(answer, "choices", option->choices);
        hk_answer_signed(answer, "default", option->fallback);
        hk_answer_signed(answer, "min", option->min);
        hk_answer_signed(answer, "max", option->max);
        hk_answer_string(answer, "help", option->help);
        hk_answer_close(answer, '}');
    }
    hk_answer_close(answer, ']');
}

static void put_pattern(hk_answer_t *answer, const hk_pattern_t *pattern)
{
    static const char *const kinds[] = {"point-to-point", "collectives", "one-sided", "farms",
                                        "applications",   "machine",     "threads",   "start-up"};
    static const char *const laws[] = {NULL, "messages", "rounds", "senders", "constant"};
    static const char *const links[] = {NULL, "ends", "halves", "ring", "round"};
    hk_answer_open(answer, NULL, '{');
    hk_answer_string(answer, "name", pattern->name);
    hk_answer_string(answer, "summary", pattern->summary);
    hk_answer_string(answer, "kind", kinds[pattern->kind]);
    put_caps(answer, "needs", pattern->needs);
    hk_answer_open(answer, "ranks", '[');
    hk_answer_signed(answer, NULL, pattern->ranks_min);
    hk_answer_signed(answer, NULL, pattern->ranks_max);
    hk_answer_signed(answer, NULL, pattern->ranks_step > 0 ? pattern->ranks_step : 1);
    hk_answer_close(answer, ']');
    hk_answer_bool(answer, "stream", pattern->stream);
    hk_answer_bool(answer, "events", pattern->events);
    hk_answer_bool(answer, "once", pattern->once);
    hk_answer_string(answer, "timed", hk_timed_names[pattern->timed]);
    hk_answer_bool(answer, "sized", !pattern->unsized);
    hk_answer_bool(answer, "payload", pattern->expected != NULL || pattern->check != NULL || pattern->verdict != NULL);
    hk_answer_string(answer, "law", laws[pattern->law]);
    hk_answer_string(answer, "links", links[pattern->links]);
    hk_answer_string(answer, "alone", pattern->alone);
    hk_answer_unsigned(answer, "grain_bytes", pattern->grain_bytes);
    hk_answer_string(answer, "senders", pattern->senders);
    hk_answer_string(answer, "collective", hk_operation_names[pattern->operation]);
    put_options(answer, pattern);
    hk_answer_close(answer, '}');
}

static void put_limits(hk_answer_t *answer, const hk_limit_t *limit)
{
    hk_answer_open(answer, "limits", '[');
    for (; limit != NULL && limit->name != NULL; limit++) {
        hk_answer_open(answer, NULL, '{');
        hk_answer_string(answer, "name", limit->name);
        hk_answer_unsigned(answer, "bytes", limit->bytes);
        hk_answer_string(answer, "fact", limit->fact);
        hk_answer_string(answer, "meaning", limit->meaning);
        hk_answer_string(answer, "see", limit->see);
        hk_answer_string(answer, "source", limit->source);
        hk_answer_close(answer, '}');
    }
    hk_answer_close(answer, ']');
}

static void put_presence(hk_answer_t *answer, const hk_transport_t *tp)
{
    char why[256] = "";
    const char *how = "";
    const bool is_here = tp->is_here == NULL || tp->is_here(tp, why, sizeof why, &how);
    hk_answer_string(answer, "absent", is_here ? NULL : why);
    hk_answer_string(answer, "remedy", is_here ? "" : how);
}

static void put_transport(hk_answer_t *answer, const hk_transport_t *tp)
{
    static const char *const carriers[] = {"nothing", "memory", "kernel", "library"};
    hk_answer_open(answer, NULL, '{');
    hk_answer_string(answer, "name", tp->name);
    hk_answer_string(answer, "summary", tp->summary);
    put_caps(answer, "caps", tp->caps);
    hk_answer_string(answer, "carrier", carriers[tp->carrier]);
    hk_answer_string(answer, "below", tp->below);
    hk_answer_string(answer, "below_remote", tp->below_remote);
    put_limits(answer, tp->limits);
    put_presence(answer, tp);
    hk_answer_unsigned(answer, "max_bytes", tp->max_bytes);
    hk_answer_open(answer, "native", '[');
    for (int i = HK_NO_OPERATION + 1; i < HK_OPERATIONS; i++) {
        if (hk_has_own(tp, (hk_operation_t)i)) {
            hk_answer_string(answer, NULL, hk_operation_names[i]);
        }
    }
    hk_answer_close(answer, ']');
    hk_answer_close(answer, '}');
}

hk_status_t hk_describe(int fd)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "describe", 0);
    hk_answer_open(&answer, "patterns", '[');
    for (size_t i = 0; hk_patterns[i] != NULL; i++) {
        put_pattern(&answer, hk_patterns[i]);
    }
    hk_answer_close(&answer, ']');
    hk_answer_open(&answer, "transports", '[');
    for (size_t i = 0; hk_transports[i] != NULL; i++) {
        put_transport(&answer, hk_transports[i]);
    }
    hk_answer_close(&answer, ']');
    return hk_answer_send(&answer, fd);
}
