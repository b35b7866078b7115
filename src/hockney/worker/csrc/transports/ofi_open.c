/* cold */
/* libfabric: joining and leaving a job. Ranks exchange the addresses of their endpoints over the control star. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../address.h"
#include "ofi.h"

enum { OFI_NAME_MAX_BYTES = 256 };

#define OFI_VARIABLE "HOCKNEY_OFI_PROVIDER" /* of all ranks, as libfabric calls it: tcp;ofi_rxm */

hk_status_t hk_ofi_failed(int rank, const char *call, ssize_t code)
{
    const hk_status_t status = code == -FI_ENOMEM ? HK_ERR_MEMORY : HK_ERR_SYSTEM;
    return hk_fail(status, rank, "%s failed: %s", call, fi_strerror((int)-code));
}

hk_status_t hk_ofi_lost(hk_ofi_t *ofi, ssize_t code)
{
    struct fi_cq_err_entry error = {.err = 0};
    if (ofi->is_broken) {
        return HK_ERR_SYSTEM;
    }
    ofi->is_broken = true;
    if (code == -FI_EAVAIL && fi_cq_readerr(ofi->cq, &error, 0) > 0) {
        return hk_fail(HK_ERR_SYSTEM, ofi->base.rank, "%s: a message failed: %s", ofi->info->fabric_attr->prov_name,
                       fi_strerror(error.err));
    }
    return hk_ofi_failed(ofi->base.rank, "fi_cq_read", code);
}

/* ---- the provider ------------------------------------------------------------------------------------------------ */

static bool ofi_has_ip(const struct fi_info *info)
{
    return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
           info->addr_format == FI_SOCKADDR_IN6;
}

static struct fi_info *ofi_hints(const char *provider, uint64_t caps, const char *domain)
{
    struct fi_info *hints = fi_allocinfo();
    if (hints == NULL) {
        return NULL;
    }
    hints->caps = FI_TAGGED | caps;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->tx_attr->op_flags = (caps & FI_RMA) != 0 ? FI_DELIVERY_COMPLETE : 0; /* a put is done when it has arrived */
    hints->fabric_attr->prov_name = strdup(provider);
    hints->domain_attr->name = domain == NULL ? NULL : strdup(domain);
    return hints;
}

/* The address of sockets: that of an interface between hosts, on one host the loopback, which no other host reaches. */
static hk_status_t ofi_find_host(const hk_job_t *job, char host[64])
{
    return job->remote && job->size > 1 ? hk_control_address(job->control, job->interface, host)
                                        : hk_address_of_loopback(job->rank, host);
}

/* What the provider offers: first for any address, which shows of which kind its addresses are. */
static hk_status_t ofi_find_provider(hk_ofi_t *ofi, const hk_job_t *job, uint64_t caps)
{
    const char *provider = getenv(OFI_VARIABLE);
    if (provider == NULL || provider[0] == '\0') {
        return hk_fail(HK_ERR_ARGUMENT, job->rank,
                       "ofi: " OFI_VARIABLE " must name a provider, such as shm or tcp;ofi_rxm");
    }
    const uint32_t version = FI_VERSION(1, 9);
    char host[64] = "";
    struct fi_info *hints = ofi_hints(provider, caps, NULL);
    int code = hints == NULL ? -FI_ENOMEM : fi_getinfo(version, NULL, NULL, 0, hints, &ofi->info);
    if (code == 0 && ofi_has_ip(ofi->info)) {
        fi_freeinfo(ofi->info);
        ofi->info = NULL;
        const hk_status_t status = ofi_find_host(job, host);
        if (status != HK_OK) {
            fi_freeinfo(hints);
            return status;
        }
        code = fi_getinfo(version, host, NULL, FI_SOURCE | FI_NUMERICHOST, hints, &ofi->info);
    } else if (code == 0 && job->remote && job->interface != NULL) {
        fi_freeinfo(ofi->info);
        ofi->info = NULL;
        hints->domain_attr->name = strdup(job->interface);
        code = fi_getinfo(version, NULL, NULL, 0, hints, &ofi->info);
    }
    fi_freeinfo(hints);
    if (code != 0) {
        return hk_fail(HK_ERR_UNSUPPORTED, job->rank, "%s: the provider %s does not offer %s%s%s%s%s: %s",
                       ofi->base.tp->name, provider, caps == 0 ? "messages by tag" : "messages by tag and writes",
                       host[0] == '\0' ? "" : " at ", host, host[0] != '\0' || job->interface == NULL ? "" : " on ",
                       host[0] != '\0' || job->interface == NULL ? "" : job->interface, fi_strerror(-code));
    }
    return HK_OK;
}

/* ---- the endpoint ------------------------------------------------------------------------------------------------ */

/* A step of opening, with the name of its call in the message. */
#define OFI_STEP(call, ...)                                                                                            \
    do {                                                                                                               \
        const int step_code = call(__VA_ARGS__);                                                                       \
        if (step_code != 0) {                                                                                          \
            return hk_fail(HK_ERR_SYSTEM, ofi->base.rank, "%s: the provider %s does not start: " #call ": %s",         \
                           ofi->base.tp->name, ofi->info->fabric_attr->prov_name, fi_strerror(-step_code));            \
        }                                                                                                              \
    } while (0)

static hk_status_t ofi_make_endpoint(hk_ofi_t *ofi)
{
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = (size_t)ofi->base.size};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    OFI_STEP(fi_fabric, ofi->info->fabric_attr, &ofi->fabric, NULL);
    OFI_STEP(fi_domain, ofi->fabric, ofi->info, &ofi->domain, NULL);
    OFI_STEP(fi_av_open, ofi->domain, &av, &ofi->av, NULL);
    OFI_STEP(fi_cq_open, ofi->domain, &cq, &ofi->cq, NULL);
    OFI_STEP(fi_endpoint, ofi->domain, ofi->info, &ofi->ep, NULL);
    OFI_STEP(fi_ep_bind, ofi->ep, &ofi->av->fid, 0);
    OFI_STEP(fi_ep_bind, ofi->ep, &ofi->cq->fid, FI_TRANSMIT | FI_RECV);
    OFI_STEP(fi_enable, ofi->ep);
    ofi->inject_bytes = ofi->info->tx_attr->inject_size;
    return HK_OK;
}

#define OFI_CLOSE(object)                                                                                              \
    do {                                                                                                               \
        if ((object) != NULL) {                                                                                        \
            (void)fi_close(&(object)->fid);                                                                            \
        }                                                                                                              \
    } while (0)

static void ofi_drop(hk_ofi_t *ofi)
{
    OFI_CLOSE(ofi->ep);
    OFI_CLOSE(ofi->cq);
    OFI_CLOSE(ofi->av);
    OFI_CLOSE(ofi->domain);
    OFI_CLOSE(ofi->fabric);
    if (ofi->info != NULL) {
        fi_freeinfo(ofi->info);
    }
    free(ofi->addr);
    free(ofi);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static hk_status_t ofi_learn_addresses(hk_ofi_t *ofi)
{
    const size_t size = (size_t)ofi->base.size;
    unsigned char own[OFI_NAME_MAX_BYTES] = {0};
    unsigned char *all = calloc(size, sizeof own);
    size_t own_bytes = sizeof own;
    const int code = all == NULL ? -FI_ENOMEM : fi_getname(&ofi->ep->fid, own, &own_bytes);
    hk_status_t mine = code == 0 ? HK_OK : hk_ofi_failed(ofi->base.rank, "fi_getname", code);
    hk_status_t status = hk_control_agree(ofi->control, mine);
    if (status == HK_OK && all != NULL) {
        status = hk_control_allgather(ofi->control, own, sizeof own, all);
        for (size_t peer = 0; status == HK_OK && mine == HK_OK && peer < size; peer++) {
            const int count = fi_av_insert(ofi->av, all + peer * sizeof own, 1, &ofi->addr[peer], 0, NULL);
            mine = count == 1 ? HK_OK : hk_ofi_failed(ofi->base.rank, "fi_av_insert", count < 0 ? count : -FI_EINVAL);
        }
        status = status == HK_OK ? hk_control_agree(ofi->control, mine) : status;
    }
    free(all);
    return status;
}

/* Providers connect two ranks at their first message. */
static hk_status_t ofi_greet_all(hk_ctx_t *ctx)
{
    unsigned char nothing = 0;
    for (int distance = 1; distance < ctx->size; distance++) {
        HK_TRY(ctx->tp->send(ctx, (ctx->rank + distance) % ctx->size, &nothing, 0));
        HK_TRY(ctx->tp->recv(ctx, (ctx->rank - distance + ctx->size) % ctx->size, &nothing, 0));
    }
    return HK_OK;
}

static void ofi_let_move(hk_ctx_t *ctx)
{
    (void)hk_ofi_look(hk_ofi_of(ctx)); /* the next message has the error, too */
}

static hk_status_t ofi_join(hk_ofi_t *ofi, const hk_job_t *job, uint64_t caps)
{
    hk_status_t mine = ofi_find_provider(ofi, job, caps);
    mine = mine == HK_OK ? ofi_make_endpoint(ofi) : mine;
    HK_TRY(hk_control_agree(job->control, mine));
    HK_TRY(ofi_learn_addresses(ofi));
    job->control->ctx = &ofi->base;
    job->control->progress = ofi_let_move;
    return hk_control_agree(job->control, ofi_greet_all(&ofi->base));
}

hk_status_t hk_ofi_open(const hk_transport_t *tp, const hk_job_t *job, size_t ctx_bytes, uint64_t caps,
                        hk_ctx_t **ctx_p)
{
    hk_ofi_t *ofi = calloc(1, ctx_bytes);
    fi_addr_t *addr = calloc((size_t)job->size, sizeof *addr);
    const bool has_room = ofi != NULL && addr != NULL;
    if (!has_room) {
        hk_log(job->rank, "%s: no memory for %d addresses", tp->name, job->size);
    }
    const hk_status_t status = hk_control_agree(job->control, has_room ? HK_OK : HK_ERR_MEMORY);
    if (status != HK_OK || ofi == NULL || addr == NULL) {
        free(addr);
        free(ofi);
        return status;
    }
    ofi->base = (hk_ctx_t){.tp = tp, .rank = job->rank, .size = job->size};
    ofi->control = job->control;
    ofi->gives_way = job->oversubscribed != 0;
    ofi->addr = addr;
    const hk_status_t joined = ofi_join(ofi, job, caps);
    if (joined != HK_OK) {
        job->control->progress = NULL;
        ofi_drop(ofi);
        return joined;
    }
    const uint32_t version = fi_version();
    (void)snprintf(ofi->library, sizeof ofi->library, "libfabric %u.%u %s (%s)", FI_MAJOR(version), FI_MINOR(version),
                   ofi->info->fabric_attr->prov_name, ofi->info->domain_attr->name);
    *ctx_p = &ofi->base;
    return HK_OK;
}

/* No rank leaves before all have what they wait for. */
void hk_ofi_close(hk_ctx_t *ctx)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    (void)hk_control_barrier(ofi->control);
    ofi->control->progress = NULL;
    ofi_drop(ofi);
}

const char *hk_ofi_library(const hk_ctx_t *ctx)
{
    return ((const hk_ofi_t *)ctx)->library;
}
