/* A bare MPI ping-pong, the reference for the mpi worker: plain calls on a separate communicator, two page-aligned
 * buffers touched before use, and samples as in the worker (warm-up, then a barrier before each timed batch). So any
 * difference is due to the worker.
 *
 * The communicator matters: in Open MPI 4.1.4 any collective call before the ping-pong, such as the one that makes a
 * communicator, leaves other message fragments in use, and 1 KiB between distant CPUs takes 5 % longer from then on
 * (769 ns instead of 731). This affects every program with collectives.
 *
 *   mpiexec -n 2 mpi_bare CPU,CPU SAMPLES WARMUP BYTES:BATCH ...
 *
 * Prints a line for each size: bytes, median half round trip in ns. */
#include "bare.h"

#include <mpi.h>
#include <string.h>
#include <sys/mman.h>

enum { SAMPLES_MAX = 100000, TAG = 1 };

/* Before MPI_Init, as in the worker. */
static void pin_rank(const char *cpus)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *rank = getenv(names[i]);
        if (rank != NULL) {
            const char *second = strchr(cpus, ',');
            pin(atoi(atoi(rank) % 2 == 1 && second != NULL ? second + 1 : cpus));
            return;
        }
    }
}

static void *touched(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memset(memory, 1, size_bytes);
}

static void pingpong(MPI_Comm comm, int rank, char *out, char *in, int size_bytes, long reps)
{
    if (rank == 0) {
        for (long i = 0; i < reps; i++) {
            MPI_Send(out, size_bytes, MPI_BYTE, 1, TAG, comm);
            MPI_Recv(in, size_bytes, MPI_BYTE, 1, TAG, comm, MPI_STATUS_IGNORE);
        }
    } else {
        for (long i = 0; i < reps; i++) {
            MPI_Recv(in, size_bytes, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, size_bytes, MPI_BYTE, 0, TAG, comm);
        }
    }
}

static void measure(MPI_Comm comm, int rank, int size_bytes, long batch, int samples, long warmup)
{
    static double half_ns[SAMPLES_MAX];
    const size_t room = size_bytes > 0 ? (size_t)size_bytes : 1;
    char *out = touched(room);
    char *in = touched(room);
    if (out == NULL || in == NULL) {
        fprintf(stderr, "mpi_bare: no memory for %d bytes\n", size_bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(comm);
    pingpong(comm, rank, out, in, size_bytes, warmup);
    for (int i = 0; i < samples; i++) {
        MPI_Barrier(comm);
        const double start_ns = now_ns();
        pingpong(comm, rank, out, in, size_bytes, batch);
        half_ns[i] = (now_ns() - start_ns) / (2.0 * (double)batch);
    }
    MPI_Barrier(comm);
    if (rank == 0) {
        printf("%d %.2f\n", size_bytes, median_of(half_ns, (size_t)samples));
        fflush(stdout);
    }
    munmap(out, room);
    munmap(in, room);
}

int main(int argc, char **argv)
{
    int rank = 0;
    const int samples = argc > 4 ? atoi(argv[2]) : 0;
    if (samples < 1 || samples > SAMPLES_MAX) {
        fprintf(stderr, "usage: mpi_bare CPU,CPU SAMPLES WARMUP BYTES:BATCH ...\n");
        return 2;
    }
    pin_rank(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    for (int i = 4; i < argc; i++) {
        int size_bytes = 0;
        long batch = 0;
        if (sscanf(argv[i], "%d:%ld", &size_bytes, &batch) != 2 || size_bytes < 0 || batch < 1) {
            fprintf(stderr, "mpi_bare: not BYTES:BATCH: '%s'\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        measure(comm, rank, size_bytes, batch, samples, atol(argv[3]));
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
