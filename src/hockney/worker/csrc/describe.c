/* cold */
/* `--describe`: what this executable holds, for `hockney list` and for checking a plan before a run. */
#include "answer.h"
#include "registry.h"

static void put_pair(hk_answer_t *answer, const char *key, const char *value)
{
    hk_answer_key(answer, key);
    hk_answer_string(answer, value);
}

static void put_caps(hk_answer_t *answer, const char *key, uint32_t caps)
{
    hk_answer_key(answer, key);
    hk_answer_open(answer, '[');
    for (unsigned i = 0; i < HK_CAPS_COUNT; i++) {
        if ((caps & (1u << i)) != 0) {
            hk_answer_string(answer, hk_capabilities[i].name);
        }
    }
    hk_answer_close(answer, ']');
}

static void put_options(hk_answer_t *answer, const hk_pattern_t *pattern)
{
    hk_answer_key(answer, "options");
    hk_answer_open(answer, '[');
    for (unsigned i = 0; i < HK_OPTIONS_MAX && pattern->option[i].name != NULL; i++) {
        const hk_option_t *option = &pattern->option[i];
        hk_answer_open(answer, '{');
        put_pair(answer, "name", option->name);
        put_pair(answer, "choices", option->choices);
        hk_answer_key(answer, "default");
        hk_answer_signed(answer, option->fallback);
        hk_answer_key(answer, "min");
        hk_answer_signed(answer, option->min);
        hk_answer_key(answer, "max");
        hk_answer_signed(answer, option->max);
        put_pair(answer, "help", option->help);
        hk_answer_close(answer, '}');
    }
    hk_answer_close(answer, ']');
}

static void put_pattern(hk_answer_t *answer, const hk_pattern_t *pattern)
{
    static const char *const timed[] = {"root", "sources", "slowest", "mean"};
    static const char *const laws[] = {NULL, "messages", "rounds", "senders", "constant"};
    static const char *const links[] = {NULL, "ends", "halves", "ring", "round"};
    hk_answer_open(answer, '{');
    put_pair(answer, "name", pattern->name);
    put_pair(answer, "summary", pattern->summary);
    put_caps(answer, "needs", pattern->needs);
    hk_answer_key(answer, "ranks");
    hk_answer_open(answer, '[');
    hk_answer_signed(answer, pattern->ranks_min);
    hk_answer_signed(answer, pattern->ranks_max);
    hk_answer_signed(answer, pattern->ranks_step);
    hk_answer_close(answer, ']');
    hk_answer_key(answer, "stream");
    hk_answer_bool(answer, pattern->stream);
    put_pair(answer, "timed", timed[pattern->timed]);
    hk_answer_key(answer, "sized");
    hk_answer_bool(answer, pattern->sized);
    hk_answer_key(answer, "payload");
    hk_answer_bool(answer, pattern->expected != NULL || pattern->verdict != NULL);
    put_pair(answer, "law", laws[pattern->law]);
    put_pair(answer, "links", links[pattern->links]);
    put_pair(answer, "alone", pattern->alone);
    hk_answer_key(answer, "grain_bytes");
    hk_answer_unsigned(answer, pattern->grain_bytes);
    put_pair(answer, "senders", pattern->senders);
    put_pair(answer, "collective", pattern->collective);
    put_options(answer, pattern);
    hk_answer_close(answer, '}');
}

static void put_limits(hk_answer_t *answer, const hk_limit_t *limit)
{
    hk_answer_key(answer, "limits");
    hk_answer_open(answer, '[');
    for (; limit != NULL && limit->name != NULL; limit++) {
        hk_answer_open(answer, '{');
        put_pair(answer, "name", limit->name);
        hk_answer_key(answer, "bytes");
        hk_answer_unsigned(answer, limit->bytes);
        put_pair(answer, "fact", limit->fact);
        put_pair(answer, "meaning", limit->meaning);
        put_pair(answer, "see", limit->see);
        put_pair(answer, "source", limit->source);
        hk_answer_close(answer, '}');
    }
    hk_answer_close(answer, ']');
}

static void put_transport(hk_answer_t *answer, const hk_transport_t *tp)
{
    static const char *const carriers[] = {"nothing", "memory", "kernel", "library"};
    static const char *const collectives[] = {"barrier", "broadcast", "alltoall", "allreduce"};
    hk_answer_open(answer, '{');
    put_pair(answer, "name", tp->name);
    put_pair(answer, "summary", tp->summary);
    put_caps(answer, "caps", tp->caps);
    put_pair(answer, "carrier", carriers[tp->carrier]);
    put_pair(answer, "below", tp->below);
    put_pair(answer, "below_remote", tp->below_remote);
    put_limits(answer, tp->limits);
    hk_answer_key(answer, "max_bytes");
    hk_answer_unsigned(answer, tp->max_bytes);
    hk_answer_key(answer, "grain_bytes");
    hk_answer_unsigned(answer, tp->grain_bytes);
    hk_answer_key(answer, "native");
    hk_answer_open(answer, '[');
    for (unsigned i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        if (hk_has_collective(tp, collectives[i])) {
            hk_answer_string(answer, collectives[i]);
        }
    }
    hk_answer_close(answer, ']');
    hk_answer_close(answer, '}');
}

hk_status_t hk_describe(int fd)
{
    hk_answer_t answer;
    hk_answer_begin(&answer, "describe", 0);
    hk_answer_key(&answer, "patterns");
    hk_answer_open(&answer, '[');
    for (size_t i = 0; hk_patterns[i] != NULL; i++) {
        put_pattern(&answer, hk_patterns[i]);
    }
    hk_answer_close(&answer, ']');
    hk_answer_key(&answer, "transports");
    hk_answer_open(&answer, '[');
    for (size_t i = 0; hk_transports[i] != NULL; i++) {
        put_transport(&answer, hk_transports[i]);
    }
    hk_answer_close(&answer, ']');
    return hk_answer_send(&answer, fd);
}
