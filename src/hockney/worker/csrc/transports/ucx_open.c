/* cold */
/* UCX: joining and leaving a job. Ranks exchange the addresses of their workers over the control star. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucx.h"

enum { UCX_NAMES_MAX = 128 };

hk_status_t hk_ucx_failed(int rank, const char *call, ucs_status_t status)
{
    const bool is_gone = status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT;
    return hk_fail(is_gone                       ? HK_ERR_PEER
                   : status == UCS_ERR_NO_MEMORY ? HK_ERR_MEMORY
                                                 : HK_ERR_SYSTEM,
                   rank, "%s failed: %s", call, ucs_status_string(status));
}

/* The variables that select transports, for a message. */
static const char *ucx_asked(char text[UCX_NAMES_MAX])
{
    const char *tls = getenv("UCX_TLS"), *devices = getenv("UCX_NET_DEVICES");
    (void)snprintf(text, UCX_NAMES_MAX, "%s%s%s%s", tls == NULL ? "" : " of UCX_TLS=", tls == NULL ? "" : tls,
                   devices == NULL ? "" : " on UCX_NET_DEVICES=", devices == NULL ? "" : devices);
    return text;
}

/* ---- the context of a rank --------------------------------------------------------------------------------------- */

static hk_status_t ucx_make_context(hk_ucx_t *ucx, const hk_job_t *job, uint64_t features)
{
    const hk_transport_t *tp = ucx->base.tp;
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = features,
        .estimated_num_eps = (size_t)job->size,
    };
    char text[UCX_NAMES_MAX];
    ucp_config_t *config = NULL;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return hk_ucx_failed(job->rank, "ucp_config_read", status);
    }
    /* One that the user has set stays: UCX calls the RDMA port behind ib0 mlx5_0:1. */
    if (job->remote && job->interface != NULL && getenv("UCX_NET_DEVICES") == NULL) {
        status = ucp_config_modify(config, "NET_DEVICES", job->interface);
    }
    if (status == UCS_OK) {
        status = ucp_init(&params, config, &ucx->context);
    }
    ucp_config_release(config);
    if (status != UCS_OK) {
        ucx->context = NULL;
        return hk_fail(HK_ERR_UNSUPPORTED, job->rank,
                       "%s: UCX has no usable transport%s (%s); `ucx_info -d` lists those that are here", tp->name,
                       ucx_asked(text), ucs_status_string(status));
    }
    return HK_OK;
}

static hk_status_t ucx_make_worker(hk_ucx_t *ucx)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    const ucs_status_t made = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (made != UCS_OK) {
        ucx->worker = NULL;
        return hk_ucx_failed(ucx->base.rank, "ucp_worker_create", made);
    }
    const ucs_status_t status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_bytes);
    return status == UCS_OK ? HK_OK : hk_ucx_failed(ucx->base.rank, "ucp_worker_get_address", status);
}

static void ucx_drop(hk_ucx_t *ucx)
{
    if (ucx->address != NULL) {
        ucp_worker_release_address(ucx->worker, ucx->address);
    }
    if (ucx->worker != NULL) {
        ucp_worker_destroy(ucx->worker);
    }
    if (ucx->context != NULL) {
        ucp_cleanup(ucx->context);
    }
    free(ucx->ep);
    free(ucx);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static hk_status_t ucx_connect(hk_ucx_t *ucx, int peer, const unsigned char *address)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = (const ucp_address_t *)(const void *)address,
    };
    char text[UCX_NAMES_MAX];
    const ucs_status_t status = ucp_ep_create(ucx->worker, &params, &ucx->ep[peer]);
    if (status == UCS_OK) {
        return HK_OK;
    }
    ucx->ep[peer] = NULL;
    return hk_fail(HK_ERR_UNSUPPORTED, ucx->base.rank, "%s: no transport%s reaches rank %d (%s)", ucx->base.tp->name,
                   ucx_asked(text), peer, ucs_status_string(status));
}

/* The longest address of any rank: they differ from host to host. */
static hk_status_t ucx_most_bytes(hk_ucx_t *ucx, uint64_t *most_p)
{
    const size_t size = (size_t)ucx->base.size;
    const uint64_t mine = ucx->address_bytes;
    uint64_t *bytes = calloc(size, sizeof *bytes);
    hk_status_t status = hk_control_agree(ucx->control, bytes == NULL ? HK_ERR_MEMORY : HK_OK);
    if (status == HK_OK && bytes != NULL) {
        status = hk_control_allgather(ucx->control, &mine, sizeof mine, bytes);
        *most_p = 1;
        for (size_t peer = 0; status == HK_OK && peer < size; peer++) {
            *most_p = bytes[peer] > *most_p ? bytes[peer] : *most_p;
        }
    }
    free(bytes);
    return status;
}

static hk_status_t ucx_connect_all(hk_ucx_t *ucx)
{
    uint64_t most_bytes = 1;
    HK_TRY(ucx_most_bytes(ucx, &most_bytes));
    unsigned char *all = calloc((size_t)ucx->base.size + 1, most_bytes);
    hk_status_t status = hk_control_agree(ucx->control, all == NULL ? HK_ERR_MEMORY : HK_OK);
    if (status == HK_OK && all != NULL) {
        unsigned char *mine = all + (size_t)ucx->base.size * most_bytes;
        memcpy(mine, ucx->address, ucx->address_bytes);
        status = hk_control_allgather(ucx->control, mine, most_bytes, all);
        hk_status_t connected = HK_OK;
        for (int peer = 0; status == HK_OK && connected == HK_OK && peer < ucx->base.size; peer++) {
            connected = peer == ucx->base.rank ? HK_OK : ucx_connect(ucx, peer, all + (size_t)peer * most_bytes);
        }
        status = status == HK_OK ? hk_control_agree(ucx->control, connected) : status;
    }
    free(all);
    return status;
}

/* UCX connects two ranks at their first message. */
static hk_status_t ucx_greet_all(hk_ctx_t *ctx)
{
    unsigned char nothing = 0;
    for (int distance = 1; distance < ctx->size; distance++) {
        HK_TRY(ctx->tp->send(ctx, (ctx->rank + distance) % ctx->size, &nothing, 0));
        HK_TRY(ctx->tp->recv(ctx, (ctx->rank - distance + ctx->size) % ctx->size, &nothing, 0));
    }
    return HK_OK;
}

/* ---- the transports that UCX has chosen -------------------------------------------------------------------------- */

/* The word in "lane[0]:  5:posix/memory.0 md[4] ...": the transport, and for one of a network its device. False: the
 * line is another one. */
static bool ucx_find_lane(const char *line, char *word, size_t room)
{
    const char *at = strstr(line, "lane[");
    at = at == NULL ? NULL : strstr(at, "]:");
    if (at == NULL) {
        return false;
    }
    at += 2;
    at += strspn(at, " ");
    at += strspn(at, "0123456789");
    at += *at == ':';
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (len == 0 || at[len] != '/') {
        return false;
    }
    if (strncmp(at + len, "/memory", 7) != 0) {
        len += strcspn(at + len, " ");
        while (len > 0 && isdigit((unsigned char)at[len - 1])) { /* ".0": the resource's index */
            len--;
        }
        len -= len > 0 && at[len - 1] == '.';
    }
    (void)snprintf(word, room, "%.*s", (int)len, at);
    return true;
}

static void ucx_add_name(char names[UCX_NAMES_MAX], const char *word)
{
    const size_t len = strlen(word), used = strlen(names);
    for (const char *at = names; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == names || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' ')) {
            return;
        }
    }
    if (used + len + 2 < UCX_NAMES_MAX) {
        (void)snprintf(names + used, UCX_NAMES_MAX - used, "%s%s", used == 0 ? "" : " ", word);
    }
}

/* Those of this rank's connections, as UCX prints them. */
static void ucx_describe(hk_ucx_t *ucx)
{
    char names[UCX_NAMES_MAX] = "", word[UCX_NAMES_MAX];
    for (int peer = 0; peer < ucx->base.size; peer++) {
        char *text = NULL, *rest = NULL;
        size_t len = 0;
        FILE *file = ucx->ep[peer] == NULL ? NULL : open_memstream(&text, &len);
        if (file == NULL) {
            continue;
        }
        ucp_ep_print_info(ucx->ep[peer], file);
        (void)fclose(file);
        for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
            if (ucx_find_lane(line, word, sizeof word)) {
                ucx_add_name(names, word);
            }
        }
        free(text);
    }
    (void)snprintf(ucx->library, sizeof ucx->library, "UCX %s (%s)", ucp_get_version_string(),
                   names[0] == '\0' ? "unknown transports" : names);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static hk_status_t ucx_join(hk_ucx_t *ucx, const hk_job_t *job, uint64_t features,
                            hk_status_t (*prepare)(hk_ctx_t *ctx))
{
    hk_status_t mine = ucx_make_context(ucx, job, features);
    mine = mine == HK_OK ? ucx_make_worker(ucx) : mine;
    mine = mine == HK_OK && prepare != NULL ? prepare(&ucx->base) : mine;
    HK_TRY(hk_control_agree(job->control, mine));
    HK_TRY(ucx_connect_all(ucx));
    job->control->ctx = &ucx->base;
    job->control->progress = hk_ucx_progress;
    return hk_control_agree(job->control, ucx_greet_all(&ucx->base));
}

hk_status_t hk_ucx_open(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, uint64_t features,
                        hk_status_t (*prepare)(hk_ctx_t *ctx), hk_ctx_t **ctx_p)
{
    hk_ucx_t *ucx = calloc(1, ctx_bytes);
    ucp_ep_h *ep = calloc((size_t)job->size, sizeof(ucp_ep_h));
    const bool has_room = ucx != NULL && ep != NULL;
    if (!has_room) {
        hk_log(job->rank, "%s: no memory for %d connections", tp->name, job->size);
    }
    const hk_status_t status = hk_control_agree(job->control, has_room ? HK_OK : HK_ERR_MEMORY);
    if (status != HK_OK || ucx == NULL || ep == NULL) {
        free(ep);
        free(ucx);
        return status;
    }
    ucx->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    ucx->control = job->control;
    ucx->gives_way = job->oversubscribed != 0;
    ucx->ep = ep;
    const hk_status_t joined = ucx_join(ucx, job, features, prepare);
    if (joined != HK_OK) {
        job->control->progress = NULL;
        ucx_drop(ucx);
        return joined;
    }
    ucx_describe(ucx);
    *ctx_p = &ucx->base;
    return HK_OK;
}

/* A connection closes when what it has sent has arrived, for which its peer must be in UCX, too. */
void hk_ucx_close(hk_ctx_t *ctx)
{
    hk_ucx_t *ucx = hk_ucx_of(ctx);
    for (int peer = 0; peer < ctx->size; peer++) {
        if (ucx->ep[peer] != NULL) {
            (void)hk_ucx_finish(ctx, "ucp_ep_close_nbx", ucp_ep_close_nbx(ucx->ep[peer], &hk_ucx_plain));
        }
    }
    (void)hk_control_barrier(ucx->control);
    ucx->control->progress = NULL;
    ucx_drop(ucx);
}

const char *hk_ucx_library(const hk_ctx_t *ctx)
{
    return ((const hk_ucx_t *)ctx)->library;
}
