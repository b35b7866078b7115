/* A wrong byte in what MPI's calls receive, for a worker that is linked with this: HOCKNEY_WRONG="CALL RANK BYTES"
 * names the call (Recv, Irecv, Sendrecv, Sendrecv_replace; any: all that receive any tag), the rank in MPI_COMM_WORLD,
 * and the smallest message. Byte 3 of each such message is wrong. Of a started receive with its tag it is so once more
 * receives have been completed together than a ping-pong does. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STARTED_MAX = 1 << 14, FEW = 4 };

static unsigned char *started[STARTED_MAX];
static int started_count, completed_few = FEW;

static int is_wrong(const char *call, int tag, int count, MPI_Datatype type)
{
    int mine = 0, bytes = 0;
    const char *asked = getenv("HOCKNEY_WRONG"); /* "CALL RANK LEAST" */
    PMPI_Comm_rank(MPI_COMM_WORLD, &mine);
    PMPI_Type_size(type, &bytes);
    const char *name = tag == MPI_ANY_TAG ? "any" : call;
    const size_t len = strlen(name);
    if (asked == NULL || strncmp(asked, name, len) != 0 || asked[len] != ' ') {
        return 0;
    }
    char *rest = NULL;
    const long rank = strtol(asked + len, &rest, 10), least = strtol(rest, NULL, 10);
    return rank == mine && (long)count * bytes >= least;
}

static void spoil(const char *call, int tag, void *buf, int count, MPI_Datatype type)
{
    if (is_wrong(call, tag, count, type)) {
        ((unsigned char *)buf)[3] ^= 4;
    }
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    const int code = PMPI_Recv(buf, count, type, from, tag, comm, status);
    spoil("Recv", tag, buf, count, type);
    return code;
}

int MPI_Sendrecv(const void *out, int sent, MPI_Datatype out_type, int to, int out_tag, void *in, int got,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    const int code = PMPI_Sendrecv(out, sent, out_type, to, out_tag, in, got, in_type, from, in_tag, comm, status);
    spoil("Sendrecv", in_tag, in, got, in_type);
    return code;
}

int MPI_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    const int code = PMPI_Sendrecv_replace(buf, count, type, to, out_tag, from, in_tag, comm, status);
    spoil("Sendrecv_replace", in_tag, buf, count, type);
    return code;
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is_wrong("Irecv", tag, count, type) && started_count < STARTED_MAX) {
        completed_few = tag == MPI_ANY_TAG ? 0 : FEW;
        started[started_count++] = buf;
    }
    return PMPI_Irecv(buf, count, type, from, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    const int code = PMPI_Waitall(count, requests, statuses);
    while (count > completed_few && started_count > 0) {
        started[--started_count][3] ^= 4;
    }
    return code;
}
