/* cold */
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

static int *no_fds(int count)
{
    int *fds = malloc((size_t)count * sizeof *fds);
    for (int i = 0; fds != NULL && i < count; i++) {
        fds[i] = -1;
    }
    if (fds == NULL) {
        hk_log(0, "control: no memory for %d connections", count);
    }
    return fds;
}

hk_status_t hk_control_accept(int listener, const hk_address_t *address, int size, int limit_s, hk_control_t *control_p)
{
    hk_status_t status = HK_ERR_MEMORY;
    unsigned strangers = 0;
    int *fds = no_fds(size);
    if (fds != NULL) {
        status = hk_rendezvous_accept(listener, address, 0, 1, size, limit_s, fds, &strangers);
    }
    (void)close(listener);
    if (status != HK_OK) {
        free(fds);
        return status;
    }
    *control_p = (hk_control_t){.rank = 0, .size = size, .strangers = strangers, .fds = fds};
    return HK_OK;
}

hk_status_t hk_control_connect(const hk_address_t *address, int rank, int size, int limit_s, hk_control_t *control_p)
{
    int *fds = no_fds(1);
    if (fds == NULL) {
        return HK_ERR_MEMORY;
    }
    const hk_status_t status = hk_rendezvous_connect(address, NULL, rank, size, limit_s, &fds[0]);
    if (status != HK_OK) {
        free(fds);
        return status;
    }
    *control_p = (hk_control_t){.rank = rank, .size = size, .fds = fds};
    return HK_OK;
}

hk_status_t hk_control_address(const hk_control_t *control, const char *interface, char host[64])
{
    if (interface != NULL) {
        return hk_address_of_interface(interface, control->rank, host);
    }
    return hk_address_of_socket(control->fds[control->rank == 0 ? 1 : 0], control->rank, host);
}

/* Shut down first: a launcher may hold a copy of the descriptor, and then close alone does not notify the peer. */
static void hang_up(hk_control_t *control)
{
    const int first = control->rank == 0 ? 1 : 0;
    const int end = control->rank == 0 ? control->size : 1;
    for (int i = first; control->fds != NULL && i < end; i++) {
        if (control->fds[i] >= 0) {
            (void)shutdown(control->fds[i], SHUT_RDWR);
            (void)close(control->fds[i]);
            control->fds[i] = -1;
        }
    }
}

void hk_control_close(hk_control_t *control)
{
    hang_up(control);
    free(control->fds);
    control->fds = NULL;
}

/* After the loss of a rank the star closes, so that every waiting rank notices at once. Later calls find no
 * descriptor and fail without another line in the log. */
static hk_status_t lose(hk_control_t *control, int peer, hk_status_t status)
{
    if (status == HK_ERR_PEER) {
        hk_log(control->rank, "control: rank %d is gone", peer);
    } else {
        hk_log(control->rank, "control: lost rank %d: %s", peer, strerror(errno));
    }
    hang_up(control);
    return status;
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static bool is_broken(const hk_control_t *control)
{
    const int first = control->rank == 0 ? 1 : 0;
    return control->size > 1 && (control->fds == NULL || control->fds[first] < 0);
}

/* Waits for others: as poll without a limit. */
static int await(const hk_control_t *control, struct pollfd *ready, nfds_t count)
{
    while (control->progress != NULL) { /* which a message that fails ends */
        const int found = poll(ready, count, 0);
        if (found != 0) {
            return found;
        }
        control->progress(control->ctx);
    }
    return poll(ready, count, -1);
}

/* Rank 0's part of a gather. It polls all ranks at once, to notice the death of a rank while others are slow. */
static hk_status_t collect(hk_control_t *control, struct pollfd *ready, size_t *got_bytes, size_t size_bytes, void *all)
{
    int missing = 0;
    for (int peer = 0; peer < control->size; peer++) {
        ready[peer] = (struct pollfd){.fd = peer == 0 ? -1 : control->fds[peer], .events = POLLIN};
        got_bytes[peer] = 0;
        missing += peer != 0;
    }
    while (missing > 0) {
        if (await(control, ready, (nfds_t)control->size) < 0 && errno != EINTR) {
            return lose(control, 0, HK_ERR_SYSTEM);
        }
        for (int peer = 1; peer < control->size; peer++) {
            if (ready[peer].fd < 0 || ready[peer].revents == 0) {
                continue;
            }
            unsigned char *to = (unsigned char *)all + (size_t)peer * size_bytes + got_bytes[peer];
            const ssize_t count = recv(ready[peer].fd, to, size_bytes - got_bytes[peer], MSG_DONTWAIT);
            if (count == 0) {
                return lose(control, peer, HK_ERR_PEER);
            }
            if (count < 0) {
                if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) {
                    continue;
                }
                return lose(control, peer, hk_io_status());
            }
            got_bytes[peer] += (size_t)count;
            if (got_bytes[peer] == size_bytes) {
                ready[peer].fd = -1; /* poll ignores it now: further bytes belong to the next call */
                missing--;
            }
        }
    }
    return HK_OK;
}

hk_status_t hk_control_gather(hk_control_t *control, const void *mine, size_t size_bytes, void *all)
{
    if (is_broken(control)) {
        return HK_ERR_PEER;
    }
    if (size_bytes == 0) {
        return HK_OK;
    }
    if (control->rank != 0) {
        const hk_status_t status = hk_write_all(control->fds[0], mine, size_bytes);
        return status == HK_OK ? HK_OK : lose(control, 0, status);
    }
    memmove(all, mine, size_bytes);
    if (control->size == 1) {
        return HK_OK;
    }
    struct pollfd *ready = calloc((size_t)control->size, sizeof *ready);
    size_t *got_bytes = calloc((size_t)control->size, sizeof *got_bytes);
    hk_status_t status = HK_ERR_MEMORY;
    if (ready != NULL && got_bytes != NULL) {
        status = collect(control, ready, got_bytes, size_bytes, all);
    } else {
        hk_log(0, "control: no memory to gather from %d ranks", control->size);
        hang_up(control);
    }
    free(got_bytes);
    free(ready);
    return status;
}

/* Rank 0 sends size_bytes to each rank, from a place `stride_bytes` after that for the rank before. */
static hk_status_t hand_out(hk_control_t *control, const unsigned char *from, size_t stride_bytes, void *to,
                            size_t size_bytes)
{
    if (is_broken(control)) {
        return HK_ERR_PEER;
    }
    if (control->rank != 0) {
        struct pollfd ready = {.fd = control->fds[0], .events = POLLIN};
        (void)await(control, &ready, 1); /* an error shows in the read */
        const hk_status_t status = hk_read_all(control->fds[0], to, size_bytes);
        return status == HK_OK ? HK_OK : lose(control, 0, status);
    }
    for (int peer = 1; peer < control->size; peer++) {
        const hk_status_t status = hk_write_all(control->fds[peer], from + (size_t)peer * stride_bytes, size_bytes);
        if (status != HK_OK) {
            return lose(control, peer, status);
        }
    }
    return HK_OK;
}

hk_status_t hk_control_broadcast(hk_control_t *control, void *buf, size_t size_bytes)
{
    return hand_out(control, buf, 0, buf, size_bytes);
}

hk_status_t hk_control_scatter(hk_control_t *control, const void *all, size_t size_bytes, void *mine)
{
    if (control->rank == 0) {
        memcpy(mine, all, size_bytes);
    }
    return hand_out(control, all, size_bytes, mine, size_bytes);
}

hk_status_t hk_control_allgather(hk_control_t *control, const void *mine, size_t size_bytes, void *all)
{
    HK_TRY(hk_control_gather(control, mine, size_bytes, all));
    return hk_control_broadcast(control, all, (size_t)control->size * size_bytes);
}

hk_status_t hk_control_agree(hk_control_t *control, hk_status_t mine)
{
    unsigned char worst = (unsigned char)mine;
    unsigned char *all = calloc((size_t)control->size, 1); /* filled at rank 0 alone */
    if (all == NULL) {
        hk_log(control->rank, "control: no memory to ask %d ranks", control->size);
        hang_up(control);
        return HK_ERR_MEMORY;
    }
    hk_status_t status = hk_control_gather(control, &worst, 1, all);
    for (int peer = 0; status == HK_OK && control->rank == 0 && peer < control->size; peer++) {
        worst = all[peer] > worst ? all[peer] : worst;
    }
    free(all);
    if (status == HK_OK) {
        status = hk_control_broadcast(control, &worst, 1);
    }
    return status == HK_OK ? (hk_status_t)worst : status;
}

hk_status_t hk_control_barrier(hk_control_t *control)
{
    return hk_control_agree(control, HK_OK);
}

void *hk_control_calloc(hk_control_t *control, size_t count, size_t size_bytes)
{
    void *memory = calloc(count, size_bytes);
    if (memory == NULL) {
        hk_log(control->rank, "no memory for %zu B of %d ranks", count * size_bytes, control->size);
    }
    if (hk_control_agree(control, memory == NULL ? HK_ERR_MEMORY : HK_OK) != HK_OK) {
        free(memory);
        return NULL;
    }
    return memory;
}

/* The largest size of any rank. */
static hk_status_t control_most(hk_control_t *control, size_t mine, size_t *most_p)
{
    size_t *each = hk_control_calloc(control, (size_t)control->size, sizeof *each);
    if (each == NULL) {
        return HK_ERR_MEMORY;
    }
    const hk_status_t status = hk_control_allgather(control, &mine, sizeof mine, each);
    *most_p = 1;
    for (int rank = 0; rank < control->size; rank++) {
        *most_p = each[rank] > *most_p ? each[rank] : *most_p;
    }
    free(each);
    return status;
}

hk_status_t hk_control_share(hk_control_t *control, const void *mine, size_t size_bytes, unsigned char **all_p,
                             size_t *stride_bytes_p)
{
    const size_t size = (size_t)control->size;
    size_t most = 0;
    HK_TRY(control_most(control, size_bytes, &most));
    unsigned char *all = hk_control_calloc(control, size + 1, most);
    if (all == NULL) {
        return HK_ERR_MEMORY;
    }
    memcpy(all + size * most, mine, size_bytes);
    const hk_status_t status = hk_control_allgather(control, all + size * most, most, all);
    if (status != HK_OK) {
        free(all);
        return status;
    }
    *all_p = all;
    *stride_bytes_p = most;
    return HK_OK;
}
