/* cold */
/* UCX: what a rank makes to join a job, and how its connections are described. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucx.h"

enum { UCX_NAMES_MAX = 128 };

hk_status_t hk_ucx_failed(int rank, const char *call, ucs_status_t status)
{
    return hk_fail(status == UCS_ERR_NO_MEMORY ? HK_ERR_MEMORY : HK_ERR_SYSTEM, rank, "%s failed: %s", call,
                   ucs_status_string(status));
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

static hk_status_t ucx_make_context(hk_ucx_t *ucx, const hk_job_t *job)
{
    const hk_transport_t *tp = ucx->layer.base.tp;
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = ((const hk_layer_kind_t *)tp->own)->features,
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
        return hk_ucx_failed(ucx->layer.base.rank, "ucp_worker_create", made);
    }
    const ucs_status_t status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_bytes);
    return status == UCS_OK ? HK_OK : hk_ucx_failed(ucx->layer.base.rank, "ucp_worker_get_address", status);
}

hk_status_t hk_ucx_make(hk_ctx_t *ctx, const hk_job_t *job)
{
    hk_ucx_t *ucx = hk_ucx_of(ctx);
    ucx->ep = calloc((size_t)job->size, sizeof(ucp_ep_h));
    HK_TRY(ucx->ep == NULL ? hk_ucx_failed(job->rank, "calloc", UCS_ERR_NO_MEMORY) : HK_OK);
    HK_TRY(ucx_make_context(ucx, job));
    return ucx_make_worker(ucx);
}

void hk_ucx_drop(hk_ctx_t *ctx)
{
    hk_ucx_t *ucx = hk_ucx_of(ctx);
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
}

bool hk_ucx_has_devices(void)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_context_attr_t found = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    ucp_context_h context = NULL;
    if (ucp_init(&params, NULL, &context) != UCS_OK) {
        return false;
    }
    const ucs_status_t status = ucp_context_query(context, &found);
    ucp_cleanup(context);
    return status == UCS_OK && (found.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
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
    return hk_fail(HK_ERR_UNSUPPORTED, ucx->layer.base.rank, "%s: no transport%s reaches rank %d (%s)",
                   ucx->layer.base.tp->name, ucx_asked(text), peer, ucs_status_string(status));
}

hk_status_t hk_ucx_connect(hk_ctx_t *ctx)
{
    hk_ucx_t *ucx = hk_ucx_of(ctx);
    unsigned char *all = NULL;
    size_t stride_bytes = 0;
    HK_TRY(hk_control_share(ucx->layer.control, ucx->address, ucx->address_bytes, &all, &stride_bytes));
    hk_status_t status = HK_OK;
    for (int peer = 0; status == HK_OK && peer < ucx->layer.base.size; peer++) {
        status = peer == ucx->layer.base.rank ? HK_OK : ucx_connect(ucx, peer, all + (size_t)peer * stride_bytes);
    }
    free(all);
    return hk_control_agree(ucx->layer.control, status);
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
void hk_ucx_describe(hk_ctx_t *ctx)
{
    hk_ucx_t *ucx = hk_ucx_of(ctx);
    char names[UCX_NAMES_MAX] = "", word[UCX_NAMES_MAX];
    for (int peer = 0; peer < ucx->layer.base.size; peer++) {
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
    (void)snprintf(ucx->layer.library, sizeof ucx->layer.library, "UCX %s (%s)", ucp_get_version_string(),
                   names[0] == '\0' ? "unknown transports" : names);
}

/* A connection closes when what it has sent has arrived, for which its peer must be in UCX, too. */
void hk_ucx_close(hk_ctx_t *ctx)
{
    for (int peer = 0; peer < ctx->size; peer++) {
        ucp_ep_h ep = hk_ucx_of(ctx)->ep[peer];
        if (ep != NULL) {
            (void)hk_ucx_finish(ctx, "ucp_ep_close_nbx", ucp_ep_close_nbx(ep, &hk_ucx_plain));
        }
    }
    hk_layer_close(ctx);
}
