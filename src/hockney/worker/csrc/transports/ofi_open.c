/* cold */
/* libfabric: what a rank makes to join a job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../address.h"
#include "ofi.h"

enum { OFI_NAME_MAX_BYTES = 256 };

hk_status_t hk_ofi_failed(int rank, const char *call, ssize_t code)
{
    const hk_status_t status = code == -FI_ENOMEM ? HK_ERR_MEMORY : HK_ERR_SYSTEM;
    return hk_fail(status, rank, "%s failed: %s", call, fi_strerror((int)-code));
}

hk_status_t hk_ofi_lose(hk_ofi_t *ofi, const char *call, ssize_t code)
{
    struct fi_cq_err_entry error = {.err = 0};
    const bool is_of_message = code == -FI_EAVAIL && fi_cq_readerr(ofi->cq, &error, 0) > 0;
    return hk_layer_lose(&ofi->layer.base, is_of_message ? "a message" : call,
                         fi_strerror(is_of_message ? error.err : (int)-code));
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
    const char *provider = getenv(HK_OFI_VARIABLE);
    if (provider == NULL || provider[0] == '\0') {
        return hk_fail(HK_ERR_ARGUMENT, job->rank,
                       "ofi: " HK_OFI_VARIABLE " must name a provider, such as shm or tcp;ofi_rxm");
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
                       ofi->layer.base.tp->name, provider, caps == 0 ? "messages by tag" : "messages by tag and writes",
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
            return hk_fail(HK_ERR_SYSTEM, ofi->layer.base.rank, "%s: the provider %s does not start: " #call ": %s",   \
                           ofi->layer.base.tp->name, ofi->info->fabric_attr->prov_name, fi_strerror(-step_code));      \
        }                                                                                                              \
    } while (0)

static hk_status_t ofi_make_endpoint(hk_ofi_t *ofi)
{
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = (size_t)ofi->layer.base.size};
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

void hk_ofi_drop(hk_ctx_t *ctx)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    OFI_CLOSE(ofi->ep);
    OFI_CLOSE(ofi->cq);
    OFI_CLOSE(ofi->av);
    OFI_CLOSE(ofi->domain);
    OFI_CLOSE(ofi->fabric);
    if (ofi->info != NULL) {
        fi_freeinfo(ofi->info);
    }
    free(ofi->addr);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

hk_status_t hk_ofi_connect(hk_ctx_t *ctx)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    unsigned char own[OFI_NAME_MAX_BYTES] = {0}, *all = NULL;
    size_t own_bytes = sizeof own, stride_bytes = 0;
    const int code = fi_getname(&ofi->ep->fid, own, &own_bytes);
    hk_status_t mine = code == 0 ? HK_OK : hk_ofi_failed(ofi->layer.base.rank, "fi_getname", code);
    HK_TRY(hk_control_agree(ofi->layer.control, mine));
    HK_TRY(hk_control_share(ofi->layer.control, own, own_bytes, &all, &stride_bytes));
    for (size_t peer = 0; mine == HK_OK && peer < (size_t)ofi->layer.base.size; peer++) {
        const int count = fi_av_insert(ofi->av, all + peer * stride_bytes, 1, &ofi->addr[peer], 0, NULL);
        mine = count == 1 ? HK_OK : hk_ofi_failed(ofi->layer.base.rank, "fi_av_insert", count < 0 ? count : -FI_EINVAL);
    }
    free(all);
    return hk_control_agree(ofi->layer.control, mine);
}

void hk_ofi_progress(hk_ctx_t *ctx)
{
    (void)hk_ofi_look(hk_ofi_of(ctx)); /* the next message has the error, too */
}

hk_status_t hk_ofi_make(hk_ctx_t *ctx, const hk_job_t *job)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    ofi->addr = calloc((size_t)job->size, sizeof *ofi->addr);
    HK_TRY(ofi->addr == NULL ? hk_ofi_failed(job->rank, "calloc", -FI_ENOMEM) : HK_OK);
    HK_TRY(ofi_find_provider(ofi, job, ((const hk_layer_kind_t *)ctx->tp->own)->features));
    return ofi_make_endpoint(ofi);
}

void hk_ofi_describe(hk_ctx_t *ctx)
{
    hk_ofi_t *ofi = hk_ofi_of(ctx);
    const uint32_t version = fi_version();
    (void)snprintf(ofi->layer.library, sizeof ofi->layer.library, "libfabric %u.%u %s (%s)", FI_MAJOR(version),
                   FI_MINOR(version), ofi->info->fabric_attr->prov_name, ofi->info->domain_attr->name);
}
