/* cold */
/* The worker's command line. Users can type it too:
 *   echo "measure pattern=pingpong bytes=8 batch=1000 samples=20" | worker -t shm -n 2 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "family.h"
#include "placement.h"
#include "registry.h"
#include "version.h"

enum { CPUS_MAX = 4096, START_LIMIT_S = 60, START_LIMIT_MAX_S = 86400 };

static const char usage[] =
    "usage: worker [-t TRANSPORT] [-n RANKS] [--bind CPU,CPU,…|core|socket|node] [--oversubscribed] [--start-limit "
    "SECONDS]\n"
    "       worker -t tcp -n RANKS --rank 0 --listen HOST | --rank R --join HOST:PORT [--here RANKS] [--interface "
    "NAME]\n"
    "       worker -t sim -n RANKS --model FILE [--seed N]\n"
    "       worker --describe | --fits | --version | --variables [PREFIX…]\n"
    "Commands are read from standard input, one a line: hello, measure, floor, quit (docs/protocol.md).\n";

static int refuse_start(const char *what, const char *culprit)
{
    fprintf(stderr, "hockney worker: %s '%s'\n%s", what, culprit, usage);
    return HK_EXIT_USAGE;
}

/* A whole number up to max, or -1. */
static int parse_number(const char *text, int max)
{
    char *end = NULL;
    const long value = strtol(text, &end, 10);
    return end == text || *end != '\0' || value < 0 || value > max ? -1 : (int)value;
}

static int parse_cpus(char *text, int *cpus, int *count_p)
{
    int count = 0;
    char *rest = NULL;
    hk_map_t map;
    if (hk_map_find(text, &map)) {
        *count_p = hk_map_own(map, cpus, CPUS_MAX);
        return 0;
    }
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        const int cpu = parse_number(word, CPUS_MAX);
        if (cpu < 0 || count == CPUS_MAX) {
            return -1;
        }
        cpus[count++] = cpu;
    }
    *count_p = count;
    return count > 0 ? 0 : -1;
}

/* Options that take a value; 0 if the value is right. */
static int take_value(hk_args_t *args, const char *option, char *value, int *cpus)
{
    if (strcmp(option, "-t") == 0) {
        args->tp = hk_transport_find(value);
        return args->tp != NULL ? 0 : refuse_start("unknown transport:", value);
    }
    if (strcmp(option, "-n") == 0) {
        args->size = parse_number(value, 1 << 20);
        return args->size > 0 ? 0 : refuse_start("not a number of ranks:", value);
    }
    if (strcmp(option, "--rank") == 0) {
        args->rank = parse_number(value, 1 << 20);
        return args->rank >= 0 ? 0 : refuse_start("not a rank:", value);
    }
    if (strcmp(option, "--here") == 0) {
        args->here = parse_number(value, 1 << 20);
        return args->here > 0 ? 0 : refuse_start("not a number of ranks:", value);
    }
    if (strcmp(option, "--bind") == 0) {
        args->cpus = cpus;
        return parse_cpus(value, cpus, &args->cpus_count) == 0 ? 0 : refuse_start("not a list of CPUs:", value);
    }
    if (strcmp(option, "--start-limit") == 0) {
        args->start_limit_s = parse_number(value, START_LIMIT_MAX_S);
        return args->start_limit_s > 0 ? 0 : refuse_start("not a number of seconds:", value);
    }
    if (strcmp(option, "--seed") == 0) {
        args->seed = parse_number(value, INT_MAX);
        return args->seed >= 0 ? 0 : refuse_start("not a seed:", value);
    }
    const char **text_p = strcmp(option, "--model") == 0       ? &args->model
                          : strcmp(option, "--listen") == 0    ? &args->listen
                          : strcmp(option, "--interface") == 0 ? &args->interface
                          : strcmp(option, "--join") == 0      ? &args->join
                                                               : NULL;
    if (text_p == NULL) {
        return refuse_start("unknown option:", option);
    }
    *text_p = value;
    return 0;
}

/* A socket of the job would take the number of a closed standard descriptor, and get its commands, answers or log. */
static void open_standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

int main(int argc, char **argv)
{
    int cpus[CPUS_MAX];
    hk_args_t args = {.tp = hk_transports[0], .rank = -1, .here = 1, .start_limit_s = START_LIMIT_S};
    open_standard_descriptors();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--describe") == 0) {
            return hk_describe(STDOUT_FILENO) == HK_OK ? HK_EXIT_OK : HK_EXIT_FAILED;
        }
        if (strcmp(argv[i], "--fits") == 0) {
            return hk_fits(stdin, STDOUT_FILENO) == HK_OK ? HK_EXIT_OK : HK_EXIT_FAILED;
        }
        if (strcmp(argv[i], "--variables") == 0) {
            if (hk_family.variables == NULL) {
                return refuse_start("has no library with control variables: the family", hk_family.name);
            }
            return hk_family.variables(argv + i + 1, STDOUT_FILENO) == HK_OK ? HK_EXIT_OK : HK_EXIT_FAILED;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("hockney worker %s, family %s\n", HK_WORKER_VERSION, hk_family.name);
            return HK_EXIT_OK;
        }
        if (strcmp(argv[i], "--oversubscribed") == 0) {
            args.oversubscribed = 1;
            continue;
        }
        if (i + 1 == argc) {
            return refuse_start("unknown option or missing value:", argv[i]);
        }
        const int wrong = take_value(&args, argv[i], argv[i + 1], cpus);
        if (wrong != 0) {
            return wrong;
        }
        i++;
    }
    if ((args.model != NULL) != hk_family.takes_model) {
        return refuse_start(args.model == NULL ? "needs --model FILE:" : "takes no --model:", args.tp->name);
    }
    if (args.rank < 0 && (args.listen != NULL || args.join != NULL)) {
        return refuse_start("needs --rank R:", args.listen != NULL ? "--listen" : "--join");
    }
    if (args.rank >= 0 && (args.tp->caps & HK_CAP_HOSTS) == 0) {
        return refuse_start("works within one host, so it takes no --rank:", args.tp->name);
    }
    if (args.rank > 0 && args.join == NULL) {
        return refuse_start("needs --join HOST:PORT: --rank", "above 0");
    }
    if (args.rank >= 0 && args.rank + args.here > args.size) {
        return refuse_start("there is no such rank among -n ranks: --rank and --here are", "too high");
    }
    signal(SIGPIPE, SIG_IGN); /* a closed peer is a status, not the end */
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, no end of a child would show */
    return hk_family.start(&args, argc, argv);
}
