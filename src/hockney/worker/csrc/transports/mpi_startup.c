/* mpi:startup: a launch that measures its own start. Right after MPI_Init each pair of ranks exchanges two messages,
 * before anything else is sent. Then it is like mpi. */
#include <mpi.h>
#include <stdlib.h>

#include "../startup.h"
#include "mpi_hooks.h"

/* A round trip of 8 B on the lower rank's side, or its other half. Returns MPI's code. */
static int startup_exchange(int rank, int peer, uint64_t *word, uint64_t *round_ns_p)
{
    const uint64_t start_ns = hk_startup_now_ns();
    int code = rank < peer ? MPI_Send(word, sizeof *word, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        code = MPI_Recv(word, sizeof *word, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS && rank > peer) {
        code = MPI_Send(word, sizeof *word, MPI_BYTE, peer, HK_MPI_TAG, MPI_COMM_WORLD);
    }
    *round_ns_p = hk_startup_now_ns() - start_ns;
    return code;
}

/* Two exchanges, and a third in which the higher rank learns their times. */
static int startup_meet(int rank, int peer, hk_startup_t *startup)
{
    uint64_t word = 0, unused_ns = 0;
    uint64_t times_ns[2] = {0, 0};
    int code = MPI_SUCCESS;
    for (int i = 0; i < 2 && code == MPI_SUCCESS; i++) {
        code = startup_exchange(rank, peer, &word, &times_ns[i]);
    }
    for (int i = 0; i < 2 && code == MPI_SUCCESS; i++) {
        word = times_ns[i];
        code = startup_exchange(rank, peer, &word, &unused_ns);
        times_ns[i] = rank < peer ? times_ns[i] : word;
    }
    startup->first_ns[peer] = times_ns[0];
    startup->second_ns[peer] = times_ns[1];
    return code;
}

/* In round r ranks i and j meet if i + j = 2 r modulo the number of the others (tournament.h): no rank waits for one that
 * waits for a third. */
static int startup_peer(int round, int rank, int size)
{
    const int odd = size % 2 == 0 ? size - 1 : size; /* of an even number the last one is the hub */
    if (rank == odd) {
        return round % odd;
    }
    const int peer = ((2 * round - rank) % odd + odd) % odd;
    return peer != rank ? peer : size % 2 == 0 ? odd : -1;
}

hk_status_t hk_mpi_exchange_first(hk_startup_t *startup)
{
    int rank = 0, size = 0;
    int code = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    startup->first_ns = calloc(2 * (size_t)size, sizeof *startup->first_ns);
    if (startup->first_ns == NULL) {
        return hk_fail(HK_ERR_MEMORY, rank, "mpi:startup: no memory for the times of %d peers", size);
    }
    startup->second_ns = startup->first_ns + size;
    const hk_memory_t before = hk_memory_now();
    for (int round = 0; round < size && code == MPI_SUCCESS; round++) {
        const int peer = size % 2 == 0 && round == size - 1 ? -1 : startup_peer(round, rank, size);
        code = peer >= 0 ? startup_meet(rank, peer, startup) : MPI_SUCCESS;
    }
    const hk_memory_t after = hk_memory_now();
    if (code != MPI_SUCCESS) {
        return hk_mpi_failed(rank, "the first exchange of messages", code);
    }
    if (size > 1 && before.resident_bytes >= 0 && after.resident_bytes >= 0) {
        startup->resident_bytes = (after.resident_bytes - before.resident_bytes) / (size - 1);
        startup->unique_bytes = (after.unique_bytes - before.unique_bytes) / (size - 1);
    }
    return HK_OK;
}

const hk_transport_t hk_transport_mpi_startup = {
    HK_MPI_SHARED,
    HK_MPI_PLAIN_CONTEXT,
    HK_MPI_PLAIN_MEMORY,
    HK_MPI_PLAIN_SENDS,
    HK_MPI_PLAIN_RECEIVES,
    .caps = HK_MPI_CAPS | HK_CAP_FIRST,
    .name = "mpi:startup",
    .summary = "mpi, in launches that time the first messages of each pair of ranks before all others",
    .max_bytes = INT_MAX,
    .barrier = hk_mpi_barrier,
    .counter = hk_mpi_counter,
};
