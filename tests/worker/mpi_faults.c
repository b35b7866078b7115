/* Preloaded into a job: an MPI with the fault that HOCKNEY_MPI_FAULT names.
 *
 *   level, slow        of the start: a lower level of threads; 0.3 s longer on every rank
 *   flip, lost, first  of MPI_Recv: thread 1 gets a wrong byte, or nothing; the first message takes 0.3 s longer
 *   flip               of MPI_Wait: a partitioned message is wrong once the rank has waited an odd number of times
 *   graph              rank 1 does not get its first communicator of neighbours
 *   fail CALL RANK N   this call is an error on this rank of MPI_COMM_WORLD the N-th time, and does nothing; a window
 *                      that is left at the end is named
 *   wrong CALL RANK N  byte 3 is wrong in each message of N bytes or more that this call (Recv, Irecv, Sendrecv,
 *                      Sendrecv_replace; any: all with any tag) receives on this rank of MPI_COMM_WORLD; of a started
 *                      receive with its tag, once more are completed together than a ping-pong does
 *
 * Threads of patterns use the tags from 16 on, one for each thread if they share a communicator. */
#include <mpi.h>
#include <stdio.h>
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

/* Whether the fault is `fault CALL RANK N` with this call and rank. */
static int is_of(const char *fault, const char *call, long *number_p)
{
    const char *rest = has(fault);
    const size_t len = strlen(call);
    int is_up = 0;
    MPI_Initialized(&is_up);
    if (!is_up || rest == NULL || strncmp(rest + 1, call, len) != 0 || rest[1 + len] != ' ') {
        return 0;
    }
    char *end = NULL;
    const long rank = strtol(rest + 1 + len, &end, 10);
    *number_p = strtol(end, NULL, 10);
    return is_rank(rank);
}

/* Only one call fails in a job, so one number counts its turns. */
static int fails(const char *call)
{
    static long turns;
    long turn = 0;
    return is_of("fail", call, &turn) && ++turns == turn;
}

static int is_wrong(const char *call, int tag, int count, MPI_Datatype type)
{
    int bytes = 0;
    long least = 0;
    MPI_Type_size(type, &bytes);
    return is_of("wrong", tag == MPI_ANY_TAG ? "any" : call, &least) && (long)count * bytes >= least;
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
    if (fails("Recv")) {
        return MPI_ERR_OTHER;
    }
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
    if (fails("Irecv")) {
        return MPI_ERR_OTHER;
    }
    if (is_wrong("Irecv", tag, count, type) && started_count < STARTED_MAX) {
        completed_few = tag == MPI_ANY_TAG ? 0 : FEW;
        started[started_count++] = buf;
    }
    return PMPI_Irecv(buf, count, type, from, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    if (fails("Waitall")) {
        return MPI_ERR_OTHER;
    }
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

/* ---- calls that fail --------------------------------------------------------------------------------------------- */

#define FAILS(call, parameters, arguments)                                                                             \
    int MPI_##call parameters                                                                                          \
    {                                                                                                                  \
        return fails(#call) ? MPI_ERR_OTHER : PMPI_##call arguments;                                                   \
    }

FAILS(Send, (const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buf, count, type, to, tag, comm))
FAILS(Barrier, (MPI_Comm comm), (comm))
FAILS(Group_incl, (MPI_Group group, int count, const int ranks[], MPI_Group *made), (group, count, ranks, made))
FAILS(Put,
      (const void *from, int sent, MPI_Datatype sent_type, int rank, MPI_Aint at, int got, MPI_Datatype got_type,
       MPI_Win win),
      (from, sent, sent_type, rank, at, got, got_type, win))
FAILS(Get,
      (void *to, int got, MPI_Datatype got_type, int rank, MPI_Aint at, int sent, MPI_Datatype sent_type, MPI_Win win),
      (to, got, got_type, rank, at, sent, sent_type, win))
FAILS(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
FAILS(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
      (base, size, unit, info, comm, win))
FAILS(Win_attach, (MPI_Win win, void *base, MPI_Aint size), (win, base, size))
FAILS(Win_complete, (MPI_Win win), (win))
FAILS(Win_fence, (int assert, MPI_Win win), (assert, win))
FAILS(Win_flush, (int rank, MPI_Win win), (rank, win))
FAILS(Win_flush_all, (MPI_Win win), (win))
FAILS(Win_flush_local, (int rank, MPI_Win win), (rank, win))
FAILS(Win_flush_local_all, (MPI_Win win), (win))
FAILS(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win))
FAILS(Win_lock_all, (int assert, MPI_Win win), (assert, win))
FAILS(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
FAILS(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
FAILS(Win_unlock, (int rank, MPI_Win win), (rank, win))
FAILS(Win_unlock_all, (MPI_Win win), (win))
FAILS(Win_wait, (MPI_Win win), (win))

/* Only hockney's memory for threads has this alignment. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    const int is_here = alignment == 128 && fails("aligned_alloc");
    return !is_here && posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

/* ---- what is made and freed by all ranks ------------------------------------------------------------------------- */

static int windows;

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    windows++;
    return PMPI_Win_create_dynamic(info, comm, win);
}

int MPI_Win_free(MPI_Win *win)
{
    windows--;
    return PMPI_Win_free(win);
}

int MPI_Finalize(void)
{
    if (windows > 0) { /* of other kinds only the ends are counted */
        printf("%d windows are left\n", windows);
    }
    return PMPI_Finalize();
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int from_count, const int from[], const int from_weights[],
                                   int to_count, const int to[], const int to_weights[], MPI_Info info, int reorder,
                                   MPI_Comm *made)
{
    static int made_count;
    const int code = PMPI_Dist_graph_create_adjacent(comm, from_count, from, from_weights, to_count, to, to_weights,
                                                     info, reorder, made);
    return has("graph") && is_rank(1) && made_count++ == 0 ? MPI_ERR_OTHER : code;
}
