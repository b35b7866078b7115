/* Preloaded in MPI ranks: rank 1 prints a library's last words and aborts, in its fiftieth send. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    static int calls;
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 1 && ++calls == 50) {
        fputs("fabric: fatal error in the progress engine\n  queue pair 17 is in the state error\n"
              "  vendor syndrome 0x81: remote access\nAssertion failed at qp.c:99: qp->ok\n",
              stderr);
        abort();
    }
    return PMPI_Send(buf, count, type, dest, tag, comm);
}
