/* PVM 3.4: four ways to send, each over two routes. The ranks of a host are tasks of one daemon (pvm_daemon.c,
 * pvm_hosts.c). They exchange task numbers over the control star.
 *
 *   psend    pvm_psend and pvm_precv
 *   inplace  pvm_send directly from the buffer (PvmDataInPlace), pvm_recv and unpacking
 *   raw      packed by copying (PvmDataRaw)
 *   default  packed and encoded as XDR (PvmDataDefault). PVM does not encode bytes, so they travel as 32-bit
 *            integers; a remainder of up to 3 bytes travels as bytes.
 *
 * The direct route opens a connection for each pair of ranks. The other route goes through the daemon.
 *
 * A send returns when the library has taken the message, and receives other messages meanwhile. So isend completes
 * at once. The next call that waits carries out started receives, in order. */
#include "../transport.h"

#include <limits.h>
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../control.h"
#include "../pvm_daemon.h"

enum { TAG = 1, TAG_HELLO = 2, TAG_ROUTE = 3, WORD_BYTES = 4, LIBRARY_MAX = 64 };

/* A started receive that no call has carried out yet. */
typedef struct deferred {
    struct deferred *next;
    void *buf;
    int size_bytes;
    int peer;
} deferred_t;

_Static_assert(sizeof(deferred_t) <= sizeof(hk_req_t), "pvm: a request does not fit hk_req_t");

typedef struct pvm_ctx {
    hk_ctx_t base;
    deferred_t *first, *last;
    pid_t daemon; /* of this host, if this rank keeps it; otherwise -1 */
    char library[LIBRARY_MAX];
    int tids[]; /* indexed by rank */
} pvm_ctx_t;

static int tid_of(const hk_ctx_t *ctx, int peer)
{
    return ((const pvm_ctx_t *)ctx)->tids[peer];
}

/* Out of line and cold. Each further call would try for long to reach a lost daemon. So its loss ends the job, like
 * the loss of a rank. */
__attribute__((cold, noinline)) static hk_status_t failed(int rank, const char *call, int code)
{
    switch (code) {
    case PvmSysErr:
        return hk_fail(HK_ERR_PEER, rank, "%s failed: the PVM daemon is gone", call);
    case PvmNoMem:
        return hk_fail(HK_ERR_MEMORY, rank, "%s failed: PVM has no memory for the message", call);
    default:
        return hk_fail(HK_ERR_SYSTEM, rank, "%s failed with PVM's error %d", call, code);
    }
}

#define CHECKED(ctx, call, code) (__builtin_expect((code) >= 0, 1) ? HK_OK : failed((ctx)->rank, call, code))

/* PVM declares its read-only arguments as writable. */
static char *plain(const void *buf)
{
    return (char *)(uintptr_t)buf;
}

/* ---- the ways to send and receive -------------------------------------------------------------------------------- */

static inline hk_status_t send_psend(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    const int code = pvm_psend(tid_of(ctx, peer), TAG, plain(buf), (int)size_bytes, PVM_BYTE);
    return CHECKED(ctx, "pvm_psend", code);
}

static inline hk_status_t receive_psend(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const int code = pvm_precv(tid_of(ctx, peer), TAG, buf, (int)size_bytes, PVM_BYTE, NULL, NULL, NULL);
    return CHECKED(ctx, "pvm_precv", code);
}

/* style is a constant in every call, so the compiler leaves no test. */
static inline hk_status_t send_bytes(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, int style)
{
    int code = pvm_initsend(style);
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_pkbyte(plain(buf), (int)size_bytes, 1);
    }
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_send(tid_of(ctx, peer), TAG);
    }
    return CHECKED(ctx, "pvm_send", code);
}

static inline hk_status_t send_raw(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return send_bytes(ctx, peer, buf, size_bytes, PvmDataRaw);
}

static inline hk_status_t send_inplace(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    return send_bytes(ctx, peer, buf, size_bytes, PvmDataInPlace);
}

static inline hk_status_t receive_raw(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    int code = pvm_recv(tid_of(ctx, peer), TAG);
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_upkbyte(buf, (int)size_bytes, 1);
    }
    return CHECKED(ctx, "pvm_recv", code);
}

#define receive_inplace receive_raw

static inline hk_status_t send_default(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)
{
    const int words = (int)(size_bytes / WORD_BYTES);
    const int rest = (int)(size_bytes % WORD_BYTES);
    char *from = plain(buf);
    int code = pvm_initsend(PvmDataDefault);
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_pkint((int *)(void *)from, words, 1);
    }
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_pkbyte(from + words * WORD_BYTES, rest, 1);
    }
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_send(tid_of(ctx, peer), TAG);
    }
    return CHECKED(ctx, "pvm_send", code);
}

static inline hk_status_t receive_default(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)
{
    const int words = (int)(size_bytes / WORD_BYTES);
    const int rest = (int)(size_bytes % WORD_BYTES);
    int code = pvm_recv(tid_of(ctx, peer), TAG);
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_upkint(buf, words, 1);
    }
    if (__builtin_expect(code >= 0, 1)) {
        code = pvm_upkbyte((char *)buf + words * WORD_BYTES, rest, 1);
    }
    return CHECKED(ctx, "pvm_recv", code);
}

_Static_assert(sizeof(int) == WORD_BYTES, "pvm: XDR integers have four bytes");

static hk_status_t pvm_check(hk_ctx_t *ctx, int peer, bool *is_there_p)
{
    const int code = pvm_probe(tid_of(ctx, peer), TAG);
    *is_there_p = code > 0;
    return CHECKED(ctx, "pvm_probe", code);
}

/* ---- the hooks that differ from way to way ----------------------------------------------------------------------- */

static hk_status_t pvm_irecv(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req)
{
    pvm_ctx_t *me = (pvm_ctx_t *)ctx;
    deferred_t *mine = (deferred_t *)(void *)req->room;
    *mine = (deferred_t){.buf = buf, .size_bytes = (int)size_bytes, .peer = peer};
    *(me->first == NULL ? &me->first : &me->last->next) = mine;
    me->last = mine;
    return HK_OK;
}

/* finish carries out all started receives in order. A plain receive comes after them. */
#define HOOKS(way)                                                                                                     \
    static hk_status_t pvm_send_##way(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes)                     \
    {                                                                                                                  \
        return send_##way(ctx, peer, buf, size_bytes);                                                                 \
    }                                                                                                                  \
    static hk_status_t pvm_isend_##way(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req)     \
    {                                                                                                                  \
        (void)req;                                                                                                     \
        return send_##way(ctx, peer, buf, size_bytes);                                                                 \
    }                                                                                                                  \
    static hk_status_t finish_##way(hk_ctx_t *ctx)                                                                     \
    {                                                                                                                  \
        pvm_ctx_t *me = (pvm_ctx_t *)ctx;                                                                              \
        hk_status_t status = HK_OK;                                                                                    \
        for (const deferred_t *at = me->first; at != NULL && status == HK_OK; at = at->next) {                         \
            status = receive_##way(ctx, at->peer, at->buf, (size_t)at->size_bytes);                                    \
        }                                                                                                              \
        me->first = me->last = NULL;                                                                                   \
        return status;                                                                                                 \
    }                                                                                                                  \
    static hk_status_t pvm_recv_##way(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes)                           \
    {                                                                                                                  \
        const hk_status_t status = ((pvm_ctx_t *)ctx)->first == NULL ? HK_OK : finish_##way(ctx);                      \
        return status == HK_OK ? receive_##way(ctx, peer, buf, size_bytes) : status;                                   \
    }                                                                                                                  \
    static hk_status_t pvm_wait_all_##way(hk_ctx_t *ctx, hk_req_t *reqs, size_t count)                                 \
    {                                                                                                                  \
        (void)reqs;                                                                                                    \
        (void)count;                                                                                                   \
        return finish_##way(ctx);                                                                                      \
    }

HOOKS(psend)
HOOKS(inplace)
HOOKS(raw)
HOOKS(default)

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* Exchange one byte between each pair, in the same order on all ranks: this makes the connection. */
static hk_status_t connect_pairs(hk_ctx_t *ctx)
{
    int code = 0;
    char byte = 0;
    for (int low = 0; low < ctx->size && code >= 0; low++) {
        for (int high = low + 1; high < ctx->size && code >= 0; high++) {
            const int peer = ctx->rank == low ? high : low;
            if (ctx->rank == low) {
                code = pvm_psend(tid_of(ctx, peer), TAG_HELLO, &byte, 1, PVM_BYTE);
            }
            if (code >= 0 && (ctx->rank == low || ctx->rank == high)) {
                code = pvm_precv(tid_of(ctx, peer), TAG_HELLO, &byte, 1, PVM_BYTE, NULL, NULL, NULL);
            }
            if (code >= 0 && ctx->rank == high) {
                code = pvm_psend(tid_of(ctx, peer), TAG_HELLO, &byte, 1, PVM_BYTE);
            }
        }
    }
    return CHECKED(ctx, "connecting the ranks", code);
}

/* PVM silently uses the daemon if it cannot connect two tasks. So pvm_notify reports each connection, and this
 * counts them. */
static hk_status_t connect_all(hk_ctx_t *ctx, int route)
{
    int direct = 0;
    int code = route == PvmRouteDirect ? pvm_notify(PvmRouteAdd, TAG_ROUTE, -1, NULL) : 0;
    const hk_status_t status = code < 0 ? failed(ctx->rank, "pvm_notify", code) : connect_pairs(ctx);
    if (status != HK_OK || route != PvmRouteDirect) {
        return status;
    }
    while (pvm_nrecv(-1, TAG_ROUTE) > 0) {
        direct++;
    }
    code = pvm_notify(PvmRouteAdd | PvmNotifyCancel, TAG_ROUTE, -1, NULL);
    while (pvm_nrecv(-1, TAG_ROUTE) > 0) {
    }
    if (direct < ctx->size - 1) {
        return hk_fail(HK_ERR_SYSTEM, ctx->rank, "pvm: only %d of %d routes are direct", direct, ctx->size - 1);
    }
    return CHECKED(ctx, "pvm_notify", code);
}

static hk_status_t enrol(pvm_ctx_t *ctx, const hk_job_t *job, int route)
{
    (void)pvm_setopt(PvmAutoErr, 0); /* CHECKED logs errors */
    const int tid = pvm_mytid();
    int code = tid;
    if (tid >= 0) {
        code = pvm_setopt(PvmRoute, route); /* on all ranks, before the first message */
    }
    const hk_status_t mine = CHECKED(&ctx->base, "pvm_mytid", code);
    const hk_status_t status = hk_control_agree(job->control, mine);
    return status != HK_OK ? status : hk_control_allgather(job->control, &tid, sizeof tid, ctx->tids);
}

/* It is of no use without this rank, and has no children. */
static void leave(pvm_ctx_t *ctx)
{
    if (ctx->daemon > 0) {
        (void)kill(ctx->daemon, SIGKILL);
        (void)waitpid(ctx->daemon, NULL, 0);
    }
    free(ctx);
}

static hk_status_t pvm_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p)
{
    const int route = tp->variant;
    pvm_ctx_t *ctx = calloc(1, sizeof *ctx + (size_t)job->size * sizeof(int));
    if (hk_control_agree(job->control, ctx == NULL ? HK_ERR_MEMORY : HK_OK) != HK_OK || ctx == NULL) {
        hk_log(job->rank, "pvm: no memory for a context");
        free(ctx);
        return HK_ERR_MEMORY;
    }
    ctx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    ctx->daemon = -1;
    hk_status_t status = job->remote ? hk_pvm_join_hosts(job, &ctx->daemon) : HK_OK;
    if (status == HK_OK) {
        status = enrol(ctx, job, route);
    }
    if (status == HK_OK) {
        status = hk_control_agree(job->control, connect_all(&ctx->base, route));
    }
    if (job->rank == 0 || ctx->daemon > 0) {
        hk_pvm_remove_folder();
    }
    if (status != HK_OK) {
        leave(ctx);
        return status;
    }
    snprintf(ctx->library, sizeof ctx->library, "PVM %s, %s", pvm_version(),
             route == PvmRouteDirect ? "direct route" : "through the daemon");
    *ctx_p = &ctx->base;
    return HK_OK;
}

static void pvm_close(hk_ctx_t *ctx)
{
    (void)pvm_exit();
    leave((pvm_ctx_t *)ctx);
}

static const char *pvm_library(const hk_ctx_t *ctx)
{
    return ((const pvm_ctx_t *)ctx)->library;
}

/* The barrier of PVM's group server is not used: it needs a separate process and only counts. */
#define TRANSPORT(id, words, text, way, route)                                                                         \
    const hk_transport_t hk_transport_##id = {                                                                         \
        .caps = HK_CAP_SEND | HK_CAP_NONBLOCKING | HK_CAP_PAYLOAD | HK_CAP_SYSCALLS | HK_CAP_PROBE | HK_CAP_HOSTS,     \
        .name = (words),                                                                                               \
        .summary = (text),                                                                                             \
        .carrier = HK_CARRIER_KERNEL,                                                                                  \
        .below = (route) == PvmRouteDirect ? "unix" : NULL,                                                            \
        .below_remote = (route) == PvmRouteDirect ? "tcp" : NULL,                                                      \
        .variant = (route),                                                                                            \
        .max_bytes = INT_MAX,                                                                                          \
        .open = pvm_open,                                                                                              \
        .close = pvm_close,                                                                                            \
        .library = pvm_library,                                                                                        \
        .alloc = hk_private_alloc,                                                                                     \
        .free = hk_private_free,                                                                                       \
        .send = pvm_send_##way,                                                                                        \
        .recv = pvm_recv_##way,                                                                                        \
        .probe = pvm_check,                                                                                            \
        .isend = pvm_isend_##way,                                                                                      \
        .irecv = pvm_irecv,                                                                                            \
        .wait_all = pvm_wait_all_##way,                                                                                \
        .now_ns = hk_real_now_ns,                                                                                      \
        .compute = hk_real_compute,                                                                                    \
    };

TRANSPORT(pvm, "pvm", "pvm_psend and pvm_precv, direct route", psend, PvmRouteDirect)
TRANSPORT(pvm_psend, "pvm:psend", "the same as pvm", psend, PvmRouteDirect)
TRANSPORT(pvm_psend_daemon, "pvm:psend-daemon", "pvm_psend and pvm_precv, through the daemon", psend, PvmDontRoute)
TRANSPORT(pvm_inplace, "pvm:inplace", "pvm_send in place, direct route", inplace, PvmRouteDirect)
TRANSPORT(pvm_inplace_daemon, "pvm:inplace-daemon", "pvm_send in place, through the daemon", inplace, PvmDontRoute)
TRANSPORT(pvm_raw, "pvm:raw", "packed by copying, direct route", raw, PvmRouteDirect)
TRANSPORT(pvm_raw_daemon, "pvm:raw-daemon", "packed by copying, through the daemon", raw, PvmDontRoute)
TRANSPORT(pvm_default, "pvm:default", "packed as XDR integers, direct route", default, PvmRouteDirect)
TRANSPORT(pvm_default_daemon, "pvm:default-daemon", "packed as XDR integers, through the daemon", default, PvmDontRoute)
