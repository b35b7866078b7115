/* A pairwise all-to-all of 64 B for SimGrid, to compare simulated machines with. Built with smpicc. */
#include <mpi.h>

enum { BYTES = 64 };

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    int rank = 0, size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 1; step < size; step++) {
        MPI_Sendrecv(out, BYTES, MPI_CHAR, (rank + step) % size, 0, in, BYTES, MPI_CHAR, (rank - step + size) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return MPI_Finalize();
}
