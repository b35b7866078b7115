/* Preloaded into a job: an MPI with one slow collective. HOCKNEY_SLOW="CALL LEAST MOST TIMES" names the call, without
 * MPI_, that takes TIMES as long, 1 or more, where a rank's block or vector has LEAST to MOST bytes. The call is made
 * again so many times: in a part of the calls where TIMES is no whole number, the same on all ranks. Its result is
 * right. A call that changes its input (MPI_IN_PLACE) must not be slowed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char call[32];
    int least, most;
    double times;
} plant_t;

/* Read once: reading takes as long as a short call. */
static const plant_t *planted(void)
{
    static plant_t plant;
    if (plant.times == 0) {
        const char *asked = getenv("HOCKNEY_SLOW");
        const size_t len = asked != NULL ? strcspn(asked, " ") : 0;
        plant = (plant_t){.times = 1};
        if (len > 0 && len < sizeof plant.call) {
            char *rest = NULL;
            memcpy(plant.call, asked, len);
            plant.least = (int)strtol(asked + len, &rest, 10);
            plant.most = (int)strtol(rest, &rest, 10);
            plant.times = strtod(rest, NULL);
        }
    }
    return &plant;
}

/* How often this call is made: the sum over all calls follows their number. */
static int times_of(const char *call, int count, MPI_Datatype type)
{
    static long calls;
    int bytes = 0;
    const plant_t *const plant = planted();
    if (strcmp(plant->call, call) != 0) {
        return 1;
    }
    PMPI_Type_size(type, &bytes);
    if (count * bytes < plant->least || count * bytes > plant->most) {
        return 1;
    }
    calls++;
    return (int)((double)calls * plant->times) - (int)((double)(calls - 1) * plant->times);
}

#define REPEATED(call, count, type, made)                                                                              \
    int code = MPI_SUCCESS;                                                                                            \
    for (int left = times_of(call, count, type); left > 0 && code == MPI_SUCCESS; left--) {                            \
        code = (made);                                                                                                 \
    }                                                                                                                  \
    return code

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    REPEATED("Bcast", count, type, PMPI_Bcast(buf, count, type, root, comm));
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    REPEATED("Reduce", count, type, PMPI_Reduce(in, out, count, type, op, root, comm));
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    REPEATED("Allreduce", count, type, PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    REPEATED("Scan", count, type, PMPI_Scan(in, out, count, type, op, comm));
}

int MPI_Reduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    REPEATED("Reduce_scatter_block", count, type, PMPI_Reduce_scatter_block(in, out, count, type, op, comm));
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int each, MPI_Datatype to, MPI_Comm comm)
{
    REPEATED("Allgather", each, to, PMPI_Allgather(in, count, type, out, each, to, comm));
}

int MPI_Alltoall(const void *in, int count, MPI_Datatype type, void *out, int each, MPI_Datatype to, MPI_Comm comm)
{
    REPEATED("Alltoall", each, to, PMPI_Alltoall(in, count, type, out, each, to, comm));
}
