/* The contract between patterns and transports. A pattern includes this header and nothing of any transport;
 * a transport includes it and nothing of any pattern.
 *
 * A transport is a const table of functions plus capability flags and an ABI number. Variants (blocking, spinning,
 * synchronous, …) are tables that may share their functions: `open` reads tp->variant and chooses, so that no timed
 * call ever tests an option.
 *
 * A rank is a context: no transport keeps global state, because ranks may be processes, threads or coroutines.
 * Every hook's comment ends in "Required." or "Optional: what its absence means." */
#ifndef HK_TRANSPORT_H
#define HK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define HK_TRANSPORT_ABI 6u /* counts up when hk_transport_t changes */

/* What a transport promises: HK_CAP_<first column>, its name in `--describe`, and the words for what a pattern that
 * needs it needs. A pattern names what it needs; a mismatch is found before the run.
 *
 * SEND: ordered between two ranks, lengths agreed by both. NONBLOCKING: progress on all requests while waiting.
 * ONE_SIDED: on memory from alloc. PAYLOAD: bytes really arrive, so they are verified. SPINS: waits burn CPU; with more
 * ranks than CPUs a figure is a scheduling time. SYSCALLS: every message enters the kernel by design, so system time is
 * no surprise. STREAM: bytes without messages, in order. LOSSY: the receive of a lost message ends with HK_OK and zeros
 * in the buffer, and the counter "lost" grows. SYNCHRONOUS: send may wait for its receive, so ranks that all send first
 * would wait for ever. HOSTS: else the ranks are started together on one host. KEEPS: what a message needs is made at
 * its first use and kept, so it is never measured cold. PROBE: a look for the next message that takes nothing.
 * VIRTUAL: time and CPU time are a model's, so whatever really happens meanwhile costs nothing. */
// clang-format off
#define HK_CAPABILITIES(X)                                          \
    X(SEND,        "send",        "send and receive")               \
    X(NONBLOCKING, "nonblocking", "several messages under way at once") \
    X(ONE_SIDED,   "one_sided",   "put and get")                    \
    X(PAYLOAD,     "payload",     "messages that really arrive")    \
    X(THREADS,     "threads",     "ranks that are threads of one process") \
    X(SPINS,       "spins",       "waits that use the CPU")         \
    X(SYSCALLS,    "syscalls",    "messages that enter the kernel") \
    X(STREAM,      "stream",      "a byte stream")                  \
    X(LOSSY,       "lossy",       "messages that may be lost")      \
    X(SYNCHRONOUS, "synchronous", "sends that wait for their receive") \
    X(HOSTS,       "hosts",       "ranks on several hosts")         \
    X(KEEPS,       "keeps",       "requests that are kept")         \
    X(PROBE,       "probe",       "a probe for the next message") \
    X(VIRTUAL,     "virtual",     "a virtual clock")
// clang-format on

#define HK_CAP_PLACE(name, word, words) HK_CAP_PLACE_##name,
#define HK_CAP_FLAG(name, word, words) HK_CAP_##name = 1u << HK_CAP_PLACE_##name,
enum { HK_CAPABILITIES(HK_CAP_PLACE) HK_CAPS_COUNT };
enum { HK_CAPABILITIES(HK_CAP_FLAG) HK_CAP_NONE = 0 };
#undef HK_CAP_PLACE
#undef HK_CAP_FLAG

/* What carries the bytes between ranks of one host. */
typedef enum hk_carrier {
    HK_CARRIER_NOTHING, /* they are not carried */
    HK_CARRIER_MEMORY,  /* shared memory, copied in user space */
    HK_CARRIER_KERNEL,  /* a system call copies each message in, and one out */
    HK_CARRIER_LIBRARY, /* what the library chooses; `library` may say it */
} hk_carrier_t;

/* A message size above which a transport does something else, for those who explain its curves. */
typedef struct hk_limit {
    const char *name;    /* NULL: the end of a list */
    uint64_t bytes;      /* the longest message of the first kind; 0: `fact` says where it stands */
    const char *fact;    /* the key among the machine's network facts, or NULL */
    const char *meaning; /* what happens to longer messages, as a sentence without its full stop */
    const char *see;     /* where to look it up, or a command */
    const char *source;  /* the document that says so */
} hk_limit_t;

struct hk_transport;
struct hk_control;

/* Something that a rank counts while it runs, from its start on: messages lost, calls that would have blocked, ns of
 * computing. What is reported is the growth over the timed samples, so only sums make sense; a mean is two counters. */
typedef struct hk_counter {
    const char *name; /* snake_case, with its unit; the same on all ranks */
    double value;
} hk_counter_t;

enum {
    HK_COUNTERS_MAX = 16, /* of a pattern and a transport together */
    HK_WORK_BYTES = 4096, /* what an allreduce may need in addition to the vector: OpenSHMEM wants some at any length */
};

/* A rank, as patterns see it. Transports embed it as the first member of their own context. */
typedef struct hk_ctx {
    const struct hk_transport *tp;
    int rank;
    int size;
} hk_ctx_t;

/* Room for one request, in the caller's memory. Transports check at compile time that theirs fits. */
typedef struct hk_req {
    _Alignas(16) unsigned char room[64];
} hk_req_t;

/* What open gets. Ranks of one job call open in the same order, with the same values but for rank. */
typedef struct hk_job {
    int rank;
    int size;
    struct hk_control *control; /* barrier, broadcast, gather while opening (control.h); never timed */
    void *shared;               /* what prepare made before the ranks were started; NULL where there is none */
    int oversubscribed;         /* 1: more ranks than CPUs, so a wait must give the CPU away */
    int remote;                 /* 1: ranks live on several hosts; 0: sockets stay on the loopback */
} hk_job_t;

typedef struct hk_transport {
    uint32_t abi;        /* HK_TRANSPORT_ABI */
    uint32_t caps;       /* HK_CAP_* */
    const char *name;    /* what the user types: "tcp", "tcp:spin" */
    const char *summary; /* one line for `hockney list` */
    uint64_t max_bytes;  /* the longest single message; 0: no limit but memory */
    size_t grain_bytes;  /* broadcast and alltoall take multiples of it, and not 0; 0: any length */
    int variant;         /* for open: which of the tables that share its functions this one is */
    const void *own;     /* what these functions share besides, such as the calls of a family; only they read it */
    hk_carrier_t carrier;

    /* With HK_CAP_VIRTUAL: the floating-point operations of a CPU in a second. Patterns that compute with what they
     * receive then charge their count to `compute` instead, so nothing need arrive. 0: there is no such rate. */
    double flops_per_s;

    /* Whose cost it adds its own to, within a host and between hosts: "unix" of tcp. Optional, each: absent means that
     * no such transport is known. */
    const char *below, *below_remote;

    /* Ends with a NULL name. Optional: absent means that no such size is documented. */
    const hk_limit_t *limits;

    /* Make what ranks on one host must share before they are forked or started: a mapping, pipes.
     * Optional: absent means that open is enough. */
    hk_status_t (*prepare)(const struct hk_transport *tp, int size, void **shared_p);

    /* In the process that called prepare: give all of it back. Called when the ranks have been forked, each with its
     * own copy, or when those that are threads have ended. Required with prepare. */
    void (*release)(void *shared);

    /* Join the job as tp says, which the context keeps. On error nothing is left open and *ctx_p is unchanged.
     * Required. */
    hk_status_t (*open)(const struct hk_transport *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

    /* Leave the job. Every rank calls it. Required. */
    void (*close)(hk_ctx_t *ctx);

    /* What really carries the bytes, for the record: "Open MPI 4.1.4", "TCP loopback, TCP_NODELAY".
     * The string lives as long as ctx. Required. */
    const char *(*library)(const hk_ctx_t *ctx);

    /* The i-th counter of this rank since open; false: there are no more. Optional: absent means none. */
    bool (*counter)(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

    /* ---- memory ---------------------------------------------------------------------------------------------- */

    /* Memory for messages, at least a byte, that begins with a page. Symmetric: all ranks call it in the same order
     * with the same size, so a transport may expose it to its peers. Buffers given to any operation below come from
     * here. NULL: not enough memory. Required. */
    void *(*alloc)(hk_ctx_t *ctx, size_t len_bytes);

    /* Give back the newest allocation that is not yet given back (last in, first out). Required. */
    void (*free)(hk_ctx_t *ctx, void *memory, size_t len_bytes);

    /* ---- two-sided: both ranks name the same length; 0 bytes is a message too (buf is never NULL) ------------ */

    /* Returns when buf may be used again. Required with HK_CAP_SEND. */
    hk_status_t (*send)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes);

    /* Returns when the whole message is in buf. Required with HK_CAP_SEND. */
    hk_status_t (*recv)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes);

    /* Whether the next message from peer is there, so that its receive need not wait for its beginning; never waits. No
     * receive from peer may be under way. Required with HK_CAP_PROBE. */
    hk_status_t (*probe)(hk_ctx_t *ctx, int peer, bool *is_there_p);

    /* Start a send or a receive. *req stays in place until wait_all. Messages between two ranks match in the order
     * in which they were started. Required with HK_CAP_NONBLOCKING. */
    hk_status_t (*isend)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes, hk_req_t *req);
    hk_status_t (*irecv)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes, hk_req_t *req);

    /* Complete every request in reqs[0..count), in any order. The array holds all that are open.
     * Required with HK_CAP_NONBLOCKING. */
    hk_status_t (*wait_all)(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

    /* ---- byte stream: writes and reads need not match, bytes stay in order, and between two ranks they share that
     * order with messages. No request may be pending meanwhile, and len_bytes is at least 1. -------------------- */

    /* One call of the system that waits until it has moved something: *moved_p bytes, from 1 to len_bytes. Required
     * with HK_CAP_STREAM. */
    hk_status_t (*write_some)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes, size_t *moved_p);
    hk_status_t (*read_some)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes, size_t *moved_p);

    /* The same, never waiting: *moved_p is 0 where it would have blocked. Required with HK_CAP_STREAM. */
    hk_status_t (*write_now)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes, size_t *moved_p);
    hk_status_t (*read_now)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes, size_t *moved_p);

    /* Untimed: from here on, writes to peer and reads from it are the _now calls (true) or those that wait (false, as
     * after open); messages work either way. Optional: absent means that all four calls work at any time. */
    hk_status_t (*stream_mode)(hk_ctx_t *ctx, int peer, bool write_now, bool read_now);

    /* ---- one-sided: remote addresses are given as this rank's own symmetric address -------------------------- */

    /* Copy to or from the peer's memory; put is complete there only after quiet. Required with HK_CAP_ONE_SIDED. */
    hk_status_t (*put)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t len_bytes);
    hk_status_t (*get)(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t len_bytes);
    hk_status_t (*quiet)(hk_ctx_t *ctx);

    /* Wait until the 8-byte word at an own symmetric address is value. Required with HK_CAP_ONE_SIDED. */
    hk_status_t (*wait_word)(hk_ctx_t *ctx, const uint64_t *word, uint64_t value);

    /* ---- collectives over all ranks -------------------------------------------------------------------------- */

    /* Optional, each: absent means the portable algorithm over two-sided (collectives.h); the record says which. All
     * ranks give both buffers of a broadcast: what is in the root's out comes into the others' in. */
    hk_status_t (*barrier)(hk_ctx_t *ctx);
    hk_status_t (*broadcast)(hk_ctx_t *ctx, int root, const void *out, void *in, size_t len_bytes);
    hk_status_t (*alltoall)(hk_ctx_t *ctx, const void *out, void *in, size_t len_bytes); /* len_bytes per peer */

    /* Word by word of 8 bytes, the sum of all ranks' out, modulo 2^64: into the in of every rank, or of the root alone.
     * work is room for len_bytes + HK_WORK_BYTES. With HK_CAP_ONE_SIDED two allreduces that follow each other have
     * different in. */
    hk_status_t (*allreduce)(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t len_bytes);
    hk_status_t (*reduce)(hk_ctx_t *ctx, int root, const void *out, void *in, size_t len_bytes);

    /* ---- time: virtual on a simulated machine ---------------------------------------------------------------- */

    /* Nanoseconds since a fixed moment, never running backwards. Required. */
    uint64_t (*now_ns)(hk_ctx_t *ctx);

    /* Keep this rank's CPU busy for duration_ns. Required. */
    void (*compute)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* A busy loop of `turns` turns of equal length that reads no clock: calibrated, it stands for an application's
     * computing. Optional: absent means hk_real_spin. */
    void (*spin)(hk_ctx_t *ctx, uint64_t turns);

    /* Leave the CPU to others for at least duration_ns. Optional: absent means hk_real_sleep. */
    void (*sleep)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* Keep the CPU busy for so long while a request is under way, as a process that receives next to one that computes.
     * Each time *req is done and the CPU is given to it, it is completed and next(arg) called, which may start another
     * request there: true. What is left of *req afterwards is completed by wait_all, unless next said false. Optional:
     * absent means that requests wait for whoever computes. */
    void (*overlap)(hk_ctx_t *ctx, uint64_t duration_ns, hk_req_t *req, bool (*next)(void *arg), void *arg);

    /* This rank's CPU time since a fixed moment. Optional: absent means that the system tells. */
    void (*cpu_ns)(hk_ctx_t *ctx, uint64_t *user_ns_p, uint64_t *system_ns_p);
} hk_transport_t;

/* Clock, busy loops and sleep of a real machine, for transports whose time is real. */
uint64_t hk_real_now_ns(hk_ctx_t *ctx);
void hk_real_compute(hk_ctx_t *ctx, uint64_t duration_ns);
void hk_real_spin(hk_ctx_t *ctx, uint64_t turns);
void hk_real_sleep(hk_ctx_t *ctx, uint64_t duration_ns);

/* Private memory as alloc promises it, for transports that expose none of it. */
void *hk_private_alloc(hk_ctx_t *ctx, size_t len_bytes);
void hk_private_free(hk_ctx_t *ctx, void *memory, size_t len_bytes);

#endif
