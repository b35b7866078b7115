/* mpi:startup: a launch that measures its own start. Right after MPI_Init each pair of ranks exchanges messages, before
 * anything else is sent. Then it is like mpi. */
#include <mpi.h>
#include <stdlib.h>

#include "../startup.h"
#include "mpi_hooks.h"

/* The lower rank sends and receives, the higher one receives and answers. *took_ns_p: how long that took here. Returns
 * MPI's code. */
static int startup_exchange(int rank, int peer, const uint64_t *out, uint64_t *in, uint64_t *took_ns_p)
{
    const uint64_t start_ns = hk_startup_now_ns();
    int code = rank < peer ? MPI_Send(out, sizeof *out, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        code = MPI_Recv(in, sizeof *in, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS && rank > peer) {
        code = MPI_Send(out, sizeof *out, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD);
    }
    *took_ns_p = hk_startup_now_ns() - start_ns;
    return code;
}

/* Two exchanges, and three more in which ranks learn their times. The first one begins when both ranks are there: a
 * higher rank that came late needed less than the lower one, which waited for it. Then its time counts, and the way of
 * the answer, which is half a second exchange. */
static int startup_meet(int rank, int peer, hk_startup_t *startup)
{
    enum { FIRST, SECOND, OTHERS_FIRST, TRUE_FIRST, TRUE_SECOND, EXCHANGES };
    uint64_t took_ns[EXCHANGES] = {0}, in[EXCHANGES] = {0};
    int code = MPI_SUCCESS;
    uint64_t out = 0, first_ns = 0;
    for (int i = 0; i < EXCHANGES && code == MPI_SUCCESS; i++) {
        if (i == OTHERS_FIRST) {
            out = took_ns[FIRST];
        } else if (i == TRUE_FIRST) {
            const uint64_t since_ns = in[OTHERS_FIRST] + took_ns[SECOND] / 2;
            out = first_ns = took_ns[FIRST] < since_ns ? took_ns[FIRST] : since_ns;
        } else if (i == TRUE_SECOND) {
            out = took_ns[SECOND];
        }
        code = startup_exchange(rank, peer, &out, &in[i], &took_ns[i]);
    }
    startup->first_ns[peer] = rank < peer ? first_ns : in[TRUE_FIRST];
    startup->second_ns[peer] = rank < peer ? took_ns[SECOND] : in[TRUE_SECOND];
    return code;
}

/* In round r ranks i and j meet if i + j = 2 r modulo the number of the others (tournament.h): no rank waits for one
 * that waits for a third. */
static int startup_peer(int round, int rank, int size)
{
    const int odd = size % 2 == 0 ? size - 1 : size; /* of an even number the last one is the hub */
    if (rank == odd) {
        return round % odd;
    }
    const int peer = ((2 * round - rank) % odd + odd) % odd;
    return peer != rank ? peer : size % 2 == 0 ? odd : -1;
}

/* Every pair once. *before_p: memory before the peers that count, which are all but the first: it also loads code. */
static int startup_meet_all(int rank, int size, hk_startup_t *startup, hk_memory_t *before_p)
{
    int code = MPI_SUCCESS, met = 0;
    const int rounds = size % 2 == 0 ? size - 1 : size;
    for (int round = 0; round < rounds && code == MPI_SUCCESS; round++) {
        const int peer = startup_peer(round, rank, size);
        if (peer >= 0) {
            code = startup_meet(rank, peer, startup);
            if (met++ == 0 && size > 2) {
                startup->has_memory = hk_memory_now(before_p);
            }
        }
    }
    return code;
}

hk_status_t hk_mpi_exchange_first(hk_startup_t *startup)
{
    int rank = 0, size = 0;
    hk_memory_t before = {0}, after = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    startup->first_ns = calloc(2 * (size_t)size, sizeof *startup->first_ns);
    if (startup->first_ns == NULL) {
        return hk_fail(HK_ERR_MEMORY, rank, "mpi:startup: no memory for the times of %d peers", size);
    }
    startup->second_ns = startup->first_ns + size;
    startup->has_memory = hk_memory_now(&before);
    const int code = startup_meet_all(rank, size, startup, &before);
    if (code != MPI_SUCCESS) {
        return hk_mpi_failed(rank, "the first exchange of messages", code);
    }
    startup->has_memory = startup->has_memory && hk_memory_now(&after);
    const int peers = size > 2 ? size - 2 : 1;
    startup->connection.resident_bytes = (after.resident_bytes - before.resident_bytes) / peers;
    startup->connection.proportional_bytes = (after.proportional_bytes - before.proportional_bytes) / peers;
    return HK_OK;
}

const hk_transport_t hk_transport_mpi_startup = {
    HK_MPI_PLAIN,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .caps = HK_MPI_CAPS | HK_CAP_FIRST,
    .name = "mpi:startup",
    .summary = "mpi, in launches that time the first messages of each pair of ranks before all others",
};
