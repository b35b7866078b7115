/* The connections of tcp, which mptcp and tcp:uring use, too. */
#ifndef HK_TRANSPORTS_TCP_H
#define HK_TRANSPORTS_TCP_H

#include "stream.h"

extern const hk_stream_family_t hk_tcp_family;

/* Connect all ranks. The context is an hk_stream_t, which hk_stream_close closes. */
hk_status_t hk_tcp_open(const hk_transport_t *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

/* Of a context from hk_tcp_open. */
bool hk_tcp_counter(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

#endif
