/* Preloaded into a job: an MPI with the fault that HOCKNEY_MPI_FAULT names. Threads of patterns use the tags from 16
 * on, one for each thread if they share a communicator. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_OF_THREAD_1 = 17 };

static int has(const char *fault)
{
    const char *asked = getenv("HOCKNEY_MPI_FAULT");
    return asked != NULL && strcmp(asked, fault) == 0;
}

static void pass(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* level: less than it was asked for. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)required;
    return PMPI_Init_thread(argc, argv, has("level") ? MPI_THREAD_SERIALIZED : required, provided);
}

int MPI_Query_thread(int *provided)
{
    const int code = PMPI_Query_thread(provided);
    *provided = has("level") ? MPI_THREAD_SERIALIZED : *provided;
    return code;
}

/* slow: the start of MPI takes 0.3 s longer on every rank. */
int MPI_Init(int *argc, char ***argv)
{
    if (has("slow")) {
        pass(0.3);
    }
    return PMPI_Init(argc, argv);
}

/* flip: thread 1 gets a wrong byte. lost: it gets nothing. first: the first message takes 0.3 s longer. */
int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    static int received;
    while (has("lost") && tag == TAG_OF_THREAD_1) {
        (void)pause();
    }
    if (has("first") && received++ == 0) {
        pass(0.3);
    }
    const int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
    if (has("flip") && tag == TAG_OF_THREAD_1 && count > 5) {
        ((unsigned char *)buf)[5] ^= 1;
    }
    return code;
}

/* group: rank 1 cannot make its second group. lock: rank 0 does not get its first lock. */
static int strikes(const char *fault, int rank, int turn)
{
    static int turns;
    int mine = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    return has(fault) && mine == rank && ++turns == turn;
}

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    return strikes("group", 1, 2) ? MPI_ERR_NO_MEM : PMPI_Group_incl(group, count, ranks, made);
}

int MPI_Win_lock(int type, int rank, int assert, MPI_Win win)
{
    return strikes("lock", 0, 1) ? MPI_ERR_OTHER : PMPI_Win_lock(type, rank, assert, win);
}

#if MPI_VERSION >= 4
/* flip: a partitioned message is wrong once the rank has waited an odd number of times since. */
static unsigned char *in;

int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request)
{
    in = buf;
    return PMPI_Precv_init(buf, partitions, count, type, source, tag, comm, info, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const int code = PMPI_Wait(request, status);
    if (has("flip") && in != NULL) {
        in[5] ^= 1;
    }
    return code;
}
#endif
