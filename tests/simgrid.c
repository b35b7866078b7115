/* Patterns of hockney as a plain MPI program, for a machine that SimGrid simulates. Built with smpicc.
 * Five arguments are a point, PATTERN BYTES FROM TO WINDOW (at most 16); its time is printed, in ns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPS = 10, WINDOW_MAX = 16 };

typedef struct point {
    const char *pattern;
    int bytes, from, to, window;
    int rank, size;
    char *out, *in;
} point_t;

/* All ranks continue at the same moment: MPI_Barrier would release them one after another. */
static void meet(void)
{
    double last_s = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, &last_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const long wait_ns = (long)((last_s + 0.5 - MPI_Wtime()) * 1e9);
    const struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    nanosleep(&wait, NULL); /* smpicc turns it into simulated time */
}

static void send_to(const point_t *point, int peer)
{
    MPI_Send(point->out, point->bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static void receive_from(const point_t *point, int peer)
{
    MPI_Recv(point->in, point->bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pingpong(const point_t *point)
{
    if (point->rank == point->from) {
        send_to(point, point->to);
        receive_from(point, point->to);
    } else if (point->rank == point->to) {
        receive_from(point, point->from);
        send_to(point, point->from);
    }
}

static void oneway(const point_t *point)
{
    MPI_Request requests[WINDOW_MAX];
    if (point->window == 1 && point->rank == point->from) {
        send_to(point, point->to);
    } else if (point->window == 1 && point->rank == point->to) {
        receive_from(point, point->from);
    } else if (point->rank == point->from) {
        for (int i = 0; i < point->window; i++) {
            MPI_Isend(point->out, point->bytes, MPI_BYTE, point->to, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(point->window, requests, MPI_STATUSES_IGNORE);
    } else if (point->rank == point->to) {
        for (int i = 0; i < point->window; i++) {
            MPI_Irecv(point->in, point->bytes, MPI_BYTE, point->from, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(point->window, requests, MPI_STATUSES_IGNORE);
    }
}

static void exchange(const point_t *point, int to, int from)
{
    MPI_Request requests[2];
    MPI_Irecv(point->in, point->bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(point->out, point->bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void repeat(const point_t *point)
{
    if (strcmp(point->pattern, "pingpong") == 0) {
        pingpong(point);
    } else if (strcmp(point->pattern, "oneway") == 0) {
        oneway(point);
    } else {
        const int last = strcmp(point->pattern, "ring") == 0 ? 1 : point->size - 1; /* else a pairwise all-to-all */
        for (int step = 1; step <= last; step++) {
            exchange(point, (point->rank + step) % point->size, (point->rank - step + point->size) % point->size);
        }
    }
}

/* The time of a repetition by the pattern's definition, at rank 0: the source's, or that of the slowest rank. */
static double time_ns(const point_t *point)
{
    meet();
    const double start_s = MPI_Wtime();
    for (int i = 0; i < REPS; i++) {
        repeat(point);
    }
    if (strcmp(point->pattern, "oneway") == 0) { /* the acknowledgement */
        const point_t back = {.bytes = 0, .out = point->out, .in = point->in};
        if (point->rank == point->from) {
            receive_from(&back, point->to);
        } else if (point->rank == point->to) {
            send_to(&back, point->from);
        }
    }
    const int is_of_two = strcmp(point->pattern, "pingpong") == 0 || strcmp(point->pattern, "oneway") == 0;
    double mine_s = is_of_two && point->rank != point->from ? 0.0 : MPI_Wtime() - start_s, slowest_s = 0.0;
    MPI_Reduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const int divisor = strcmp(point->pattern, "pingpong") == 0 ? 2 : point->window;
    return slowest_s * 1e9 / REPS / divisor;
}

static int number(const char *word)
{
    return (int)strtol(word, NULL, 10);
}

int main(int argc, char **argv)
{
    point_t point = {.window = 1};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &point.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &point.size);
    for (int i = 1; i + 4 < argc; i += 5) {
        point.pattern = argv[i];
        point.bytes = number(argv[i + 1]);
        point.from = number(argv[i + 2]);
        point.to = number(argv[i + 3]);
        point.window = number(argv[i + 4]);
        point.out = calloc((size_t)point.bytes + 1, 1);
        point.in = calloc((size_t)point.bytes + 1, 1);
        const double ns = point.out == NULL || point.in == NULL ? -1.0 : time_ns(&point);
        if (point.rank == 0) {
            printf("%.6f\n", ns);
        }
        free(point.out);
        free(point.in);
    }
    return MPI_Finalize();
}
