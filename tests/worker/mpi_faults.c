/* Preloaded into a job: an MPI with the fault that HOCKNEY_MPI_FAULT names.
 *
 *   level, slow        of the start: a lower level of threads; 0.3 s longer on every rank
 *   flip, lost, first  of MPI_Recv: thread 1 gets a wrong byte, or nothing; the first message takes 0.3 s longer
 *   flip               of MPI_Wait: a partitioned message is wrong once the rank has waited an odd number of times
 *   group, lock        rank 1 cannot make its second group; rank 0 does not get its first lock
 *   graph              rank 1 does not get its first communicator of neighbours
 *   wrong CALL RANK N  byte 3 is wrong in each message of N bytes or more that this call (Recv, Irecv, Sendrecv,
 *                      Sendrecv_replace; any: all with any tag) receives on this rank of MPI_COMM_WORLD; of a started
 *                      receive with its tag, once more are completed together than a ping-pong does
 *
 * Threads of patterns use the tags from 16 on, one for each thread if they share a communicator. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_OF_THREAD_1 = 17, STARTED_MAX = 1 << 14, FEW = 4 };

static unsigned char *started[STARTED_MAX];
static int started_count, completed_few = FEW;

/* What follows the name of the fault; NULL: there is another fault, or none. */
static const char *has(const char *fault)
{
    const char *words = getenv("HOCKNEY_MPI_FAULT");
    const size_t len = strlen(fault);
    return words != NULL && strncmp(words, fault, len) == 0 && strchr(" ", words[len]) != NULL ? words + len : NULL;
}

static int is_rank(long rank)
{
    int mine = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    return mine == rank;
}

/* Whether this call, of those that ask, is number `turn` of the rank. */
static int strikes(const char *fault, int rank, int turn)
{
    static int turns;
    return has(fault) && is_rank(rank) && ++turns == turn;
}

static int is_wrong(const char *call, int tag, int count, MPI_Datatype type)
{
    int bytes = 0;
    const char *name = tag == MPI_ANY_TAG ? "any" : call, *rest = has("wrong");
    const size_t len = strlen(name);
    if (rest == NULL || strncmp(rest + 1, name, len) != 0 || rest[1 + len] != ' ') {
        return 0;
    }
    char *end = NULL;
    const long rank = strtol(rest + 1 + len, &end, 10), least = strtol(end, NULL, 10);
    MPI_Type_size(type, &bytes);
    return is_rank(rank) && (long)count * bytes >= least;
}

static void spoil(const char *call, int tag, void *buf, int count, MPI_Datatype type)
{
    if (is_wrong(call, tag, count, type)) {
        ((unsigned char *)buf)[3] ^= 4;
    }
}

static void pass_300_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

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

int MPI_Init(int *argc, char ***argv)
{
    if (has("slow")) {
        pass_300_ms();
    }
    return PMPI_Init(argc, argv);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

int MPI_Recv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    static int received;
    while (has("lost") && tag == TAG_OF_THREAD_1) {
        (void)pause();
    }
    if (has("first") && received++ == 0) {
        pass_300_ms();
    }
    const int code = PMPI_Recv(buf, count, type, from, tag, comm, status);
    if (has("flip") && tag == TAG_OF_THREAD_1 && count > 5) {
        ((unsigned char *)buf)[5] ^= 1;
    }
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

#if MPI_VERSION >= 4
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

/* ---- groups and epochs ------------------------------------------------------------------------------------------- */

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *made)
{
    return strikes("group", 1, 2) ? MPI_ERR_NO_MEM : PMPI_Group_incl(group, count, ranks, made);
}

int MPI_Win_lock(int type, int rank, int assert, MPI_Win win)
{
    return strikes("lock", 0, 1) ? MPI_ERR_OTHER : PMPI_Win_lock(type, rank, assert, win);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int from_count, const int from[], const int from_weights[],
                                   int to_count, const int to[], const int to_weights[], MPI_Info info, int reorder,
                                   MPI_Comm *made)
{
    const int code = PMPI_Dist_graph_create_adjacent(comm, from_count, from, from_weights, to_count, to, to_weights,
                                                     info, reorder, made);
    return strikes("graph", 1, 1) ? MPI_ERR_OTHER : code;
}
