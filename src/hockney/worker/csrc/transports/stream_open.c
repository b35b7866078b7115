/* cold */
/* Contexts and descriptors of the stream transports. Untimed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../io.h"
#include "stream.h"

/* ---- descriptors of a job ---------------------------------------------------------------------------------------- */

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; fds != NULL && i < count; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static void free_fds(hk_stream_fds_t *fds)
{
    if (fds != NULL) {
        if (fds->in != fds->out) {
            free(fds->in);
        }
        free(fds->out);
        free(fds);
    }
}

static hk_status_t make_pairs(const char *name, hk_stream_fds_t *all, bool duplex, int (*make)(int fds[2]))
{
    const size_t size = (size_t)all->size;
    for (size_t from = 0; from < size; from++) {
        for (size_t to = duplex ? from + 1 : 0; to < size; to++) {
            int pair[2];
            if (from == to) {
                continue;
            }
            if (make(pair) != 0) {
                const bool too_many = errno == EMFILE || errno == ENFILE;
                return hk_fail(too_many ? HK_ERR_UNSUPPORTED : HK_ERR_SYSTEM, 0, "%s: cannot connect %d ranks: %s",
                               name, all->size, strerror(errno));
            }
            all->in[to * size + from] = pair[0];
            all->out[from * size + to] = pair[1];
        }
    }
    return HK_OK;
}

hk_status_t hk_stream_prepare(const hk_transport_t *tp, int size, void **shared_p)
{
    const hk_stream_family_t *family = tp->own;
    const bool duplex = family->duplex;
    const size_t cells = (size_t)size * (size_t)size;
    const size_t ends = (cells - (size_t)size) * (duplex ? 1 : 2);
    /* Every rank inherits the descriptors of the whole job before it closes those of others. */
    hk_status_t status = hk_allow_files(tp->name, size, ends + HK_FILES_OF_JOB(size));
    if (status != HK_OK) {
        return status;
    }
    hk_stream_fds_t *all = calloc(1, sizeof *all);
    if (all != NULL) {
        all->size = size;
        all->out = malloc(cells * sizeof *all->out);
        all->in = duplex ? all->out : malloc(cells * sizeof *all->in);
    }
    if (all == NULL || all->out == NULL || all->in == NULL) {
        hk_log(0, "%s: no memory for the connections of %d ranks", tp->name, size);
        free_fds(all);
        return HK_ERR_MEMORY;
    }
    for (size_t i = 0; i < cells; i++) {
        all->out[i] = all->in[i] = -1;
    }
    status = make_pairs(tp->name, all, duplex, family->make);
    if (status != HK_OK) {
        close_all(all->out, cells);
        close_all(duplex ? NULL : all->in, cells);
        free_fds(all);
        return status;
    }
    *shared_p = all;
    return HK_OK;
}

void hk_stream_release(void *shared)
{
    hk_stream_fds_t *all = shared;
    const size_t cells = (size_t)all->size * (size_t)all->size;
    close_all(all->out, cells);
    close_all(all->in == all->out ? NULL : all->in, cells);
    free_fds(all);
}

/* ---- a rank's context -------------------------------------------------------------------------------------------- */

hk_status_t hk_stream_create(const hk_transport_t *tp, const hk_job_t *job, hk_stream_t **stream_p)
{
    const size_t size = (size_t)job->size;
    hk_stream_t *stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
        stream->family = tp->own;
        stream->out = calloc(size, sizeof *stream->out);
        stream->in = calloc(size, sizeof *stream->in);
        stream->active = calloc(2 * size, sizeof(hk_stream_end_t *));
        stream->ready = calloc(2 * size, sizeof *stream->ready);
    }
    if (stream == NULL || stream->out == NULL || stream->in == NULL || stream->active == NULL ||
        stream->ready == NULL) {
        hk_log(job->rank, "%s: no memory for %d connections", tp->name, job->size);
        if (stream != NULL) {
            stream->base.size = 0; /* there may be no ends to close */
            hk_stream_close(&stream->base);
        }
        return HK_ERR_MEMORY;
    }
    for (int peer = 0; peer < job->size; peer++) {
        stream->out[peer] = (hk_stream_end_t){.fd = -1, .peer = peer, .events = POLLOUT};
        stream->in[peer] = (hk_stream_end_t){.fd = -1, .peer = peer, .events = POLLIN};
    }
    *stream_p = stream;
    return HK_OK;
}

void hk_stream_close(hk_ctx_t *ctx)
{
    hk_stream_t *stream = (hk_stream_t *)ctx;
    for (int peer = 0; peer < ctx->size; peer++) {
        if (stream->in[peer].fd >= 0 && stream->in[peer].fd != stream->out[peer].fd) {
            (void)close(stream->in[peer].fd);
        }
        if (stream->out[peer].fd >= 0) {
            (void)close(stream->out[peer].fd);
        }
    }
    free(stream->ready);
    free(stream->active);
    free(stream->in);
    free(stream->out);
    free(stream);
}

/* Takes this rank's descriptors and closes the others, so that every rank notices the end of any other. */
static void take_descriptors(hk_stream_t *stream, hk_stream_fds_t *shared)
{
    const size_t size = (size_t)shared->size;
    const size_t mine = (size_t)stream->base.rank * size;
    for (size_t peer = 0; peer < size; peer++) {
        stream->out[peer].fd = shared->out[mine + peer];
        stream->in[peer].fd = shared->in[mine + peer];
        shared->out[mine + peer] = shared->in[mine + peer] = -1;
    }
    hk_stream_release(shared);
}

hk_status_t hk_stream_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    hk_stream_t *stream;
    hk_status_t status = hk_stream_create(tp, job, &stream);
    if (status != HK_OK) {
        return status;
    }
    take_descriptors(stream, job->shared);
    (void)snprintf(stream->library, sizeof stream->library, "%s, %s", stream->family->carrier, hk_stream_wait_name(tp));
    status = hk_stream_start(stream, job->oversubscribed != 0);
    if (status != HK_OK) {
        hk_stream_close(&stream->base);
        return status;
    }
    *ctx_p = &stream->base;
    return HK_OK;
}

const char *hk_stream_library(const hk_ctx_t *ctx)
{
    return ((const hk_stream_t *)ctx)->library;
}
