/* The contract between patterns and transports. A pattern includes this header and nothing of any transport; a
 * transport includes it and nothing of any pattern.
 *
 * A transport is one const hk_transport_t: what it is, what it can do (capability flags), and functions, the hooks.
 * The life of a job:
 *
 *   prepare           once, before the ranks exist: make what they share
 *   open              on each rank: connect, and make the rank's context
 *   alloc             on each rank: buffers for messages
 *   send, recv, put … as the pattern calls them, also in its timed loop
 *   free, close       on each rank
 *   release           once, where prepare was called
 *
 * Rules for all hooks:
 * - A hook returns HK_OK or an error. Who finds the error logs it, once. After an error of a message the job ends.
 * - A hook that patterns time does not allocate, lock, log or test an option.
 * - Variants (blocking, spinning, …) are tables that share functions: `open` reads tp->variant and chooses.
 * - A wait may last for ever: the core ends it.
 * - All state is in the context. There are no globals, because ranks may be processes, threads or coroutines.
 *
 * Every hook's comment ends in "Required." or in "Optional:" and what its absence means. */
#ifndef HK_TRANSPORT_H
#define HK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define HK_TRANSPORT_ABI 6u /* counts up when hk_transport_t changes */

/* What a transport promises: HK_CAP_ and the first column. A pattern names what it needs; a point whose pattern needs
 * more than its transport promises is skipped with a sentence. The second column is the name in `--describe`, the third
 * completes "needs …".
 *
 * SEND         send and recv. Messages between two ranks stay in order; both ranks name the same length.
 * NONBLOCKING  isend, irecv and wait_all. While a rank waits, all its requests make progress.
 * ONE_SIDED    put, get, quiet and wait_word, on memory from alloc.
 * PAYLOAD      the bytes really arrive, so they are verified.
 * THREADS      ranks are threads of one process.
 * SPINS        waits use the CPU: with more ranks than CPUs a time is a scheduling time.
 * SYSCALLS     every message enters the kernel, so system time is expected.
 * STREAM       write_some and read_some: bytes in order, without messages.
 * LOSSY        a message may be lost. Its receive then returns HK_OK and zeros, and the counter "lost" grows.
 * SYNCHRONOUS  a send may wait for its receive: ranks that all send first would wait for ever.
 * HOSTS        ranks may be on several hosts; without it all are started together on one.
 * KEEPS        what a message needs is made at its first use and kept, so no sample has it cold.
 * PROBE        probe: look for the next message without taking it.
 * VIRTUAL      clock and CPU time are a model's; what happens meanwhile on the real machine costs nothing. */
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

/* A message size above which a transport does something else. `hockney explain` names it next to a step in a curve. */
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

/* Something that a rank counts from its start on: messages lost, calls that would have blocked, ns of computing. The
 * growth over the timed samples is reported, so a counter is a sum; a mean takes two. */
typedef struct hk_counter {
    const char *name; /* snake_case, with its unit; the same on all ranks */
    double value;
} hk_counter_t;

enum {
    HK_COUNTERS_MAX = 16, /* of a pattern and a transport together */
    HK_WORK_BYTES = 4096, /* work room of an allreduce besides the vector: OpenSHMEM needs some at any length */
};

/* A rank, as patterns see it. Transports embed it as the first member of their own context. */
typedef struct hk_ctx {
    const struct hk_transport *tp;
    int rank;
    int size;
} hk_ctx_t;

/* Room for one request, in the caller's memory. A transport casts it to its own type and checks with _Static_assert
 * that this fits. */
typedef struct hk_req {
    _Alignas(16) unsigned char room[64];
} hk_req_t;

/* What open gets: the same on all ranks but for rank. */
typedef struct hk_job {
    int rank;
    int size;
    struct hk_control *control; /* to exchange addresses (control.h): barrier, broadcast, gather; never timed */
    void *shared;               /* what prepare made; NULL where there is no prepare */
    int oversubscribed;         /* 1: more ranks than CPUs, so a wait must give the CPU away */
    int remote;                 /* 1: ranks are on several hosts; 0: on one, and sockets stay on the loopback */
} hk_job_t;

typedef struct hk_transport {
    uint32_t abi;        /* HK_TRANSPORT_ABI */
    uint32_t caps;       /* HK_CAP_* */
    const char *name;    /* what the user types: "tcp", "tcp:spin" */
    const char *summary; /* one line for `hockney list` */
    uint64_t max_bytes;  /* the longest message; 0: no limit but memory */
    size_t grain_bytes;  /* lengths of broadcast and alltoall are multiples of it, and not 0; 0: any length */
    int variant;         /* where several tables share hooks: which table this is; open reads it */
    const void *own;     /* likewise: what else they differ by, such as system calls; only the hooks read it */
    hk_carrier_t carrier;

    /* With HK_CAP_VIRTUAL: floating-point operations of a CPU in a second. A pattern that computes with what it
     * receives then passes the time of its operations to `compute`, so no payload need arrive. 0: there is no such
     * rate. */
    double flops_per_s;

    /* The transport that this one is built on, within a host and between hosts: "unix" is below tcp. `hockney explain`
     * compares the two. Optional, each: absent means that no such transport is known. */
    const char *below, *below_remote;

    /* A list that ends with a NULL name. Optional: absent means that no such size is documented. */
    const hk_limit_t *limits;

    /* Before the ranks are forked or started as threads: make what they share on one host, such as a mapping or pipes.
     * Each rank finds it in job->shared. Optional: absent means that they share nothing. */
    hk_status_t (*prepare)(const struct hk_transport *tp, int size, void **shared_p);

    /* Give back what prepare made, in the process that called it: after the fork, when each rank has its own copy, or
     * when ranks that are threads have ended. Required with prepare. */
    void (*release)(void *shared);

    /* Join the job, on every rank. The context keeps tp, job->rank and job->size in its first member. On error nothing
     * stays open and *ctx_p is unchanged. Required. */
    hk_status_t (*open)(const struct hk_transport *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

    /* Leave the job. Every rank calls it. Required. */
    void (*close)(hk_ctx_t *ctx);

    /* What carries the bytes, stored with each run: "Open MPI 4.1.4", "TCP loopback, TCP_NODELAY". The string lives as
     * long as ctx. Required. */
    const char *(*library)(const hk_ctx_t *ctx);

    /* The i-th counter of this rank since open; false: there are no more. Optional: absent means none. */
    bool (*counter)(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

    /* ---- memory ---------------------------------------------------------------------------------------------- */

    /* Memory for messages, which begins with a page; len_bytes is at least 1. All buffers given to the hooks below come
     * from here. All ranks call it in the same order with the same size, so a transport may let peers access it. NULL:
     * not enough memory. Required. */
    void *(*alloc)(hk_ctx_t *ctx, size_t len_bytes);

    /* Give memory back: always the newest that is left (last in, first out). Required. */
    void (*free)(hk_ctx_t *ctx, void *memory, size_t len_bytes);

    /* ---- two-sided: both ranks name the same length; 0 bytes is a message too (buf is never NULL) ------------ */

    /* Returns when buf may be used again. Required with HK_CAP_SEND. */
    hk_status_t (*send)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes);

    /* Returns when the whole message is in buf. Required with HK_CAP_SEND. */
    hk_status_t (*recv)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes);

    /* Whether the next message from peer has begun to arrive; never waits. No receive from peer is under way. Required
     * with HK_CAP_PROBE. */
    hk_status_t (*probe)(hk_ctx_t *ctx, int peer, bool *is_there_p);

    /* Start a send or a receive. *req and the buffer stay in place until wait_all. Messages between two ranks match in
     * the order in which they were started. Required with HK_CAP_NONBLOCKING. */
    hk_status_t (*isend)(hk_ctx_t *ctx, int peer, const void *buf, size_t len_bytes, hk_req_t *req);
    hk_status_t (*irecv)(hk_ctx_t *ctx, int peer, void *buf, size_t len_bytes, hk_req_t *req);

    /* Complete reqs[0..count), in any order: all requests of this rank that are open. Required with
     * HK_CAP_NONBLOCKING. */
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

    /* Never timed. From now on this rank writes to peer and reads from it with the _now calls (true), or with those
     * that wait (false, as after open). Messages work either way. Optional: absent means that all four calls always
     * work. */
    hk_status_t (*stream_mode)(hk_ctx_t *ctx, int peer, bool write_now, bool read_now);

    /* ---- one-sided: `remote` is an address in this rank's own memory from alloc, and stands for the same place in the
     * peer's ---------------------------------------------------------------------------------------------------- */

    /* Copy to the peer's memory, or from it. A put returns when `local` may be used again; it is complete at the peer
     * when quiet returns, which waits for all puts of this rank. Required with HK_CAP_ONE_SIDED. */
    hk_status_t (*put)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t len_bytes);
    hk_status_t (*get)(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t len_bytes);
    hk_status_t (*quiet)(hk_ctx_t *ctx);

    /* Wait until an aligned 8-byte word in this rank's memory is value: a peer puts it there. Required with
     * HK_CAP_ONE_SIDED. */
    hk_status_t (*wait_word)(hk_ctx_t *ctx, const uint64_t *word, uint64_t value);

    /* ---- collectives over all ranks -------------------------------------------------------------------------- */

    /* The library's own. Optional, each: absent means that patterns use messages instead (collectives.h); results say
     * which it was. All ranks give both buffers of a broadcast: the root's out comes into the others' in. */
    hk_status_t (*barrier)(hk_ctx_t *ctx);
    hk_status_t (*broadcast)(hk_ctx_t *ctx, int root, const void *out, void *in, size_t len_bytes);
    hk_status_t (*alltoall)(hk_ctx_t *ctx, const void *out, void *in, size_t len_bytes); /* len_bytes per peer */

    /* The sum of all ranks' out, in words of 8 bytes modulo 2^64: into the in of every rank (allreduce), or of the root
     * alone (reduce). work is room for len_bytes + HK_WORK_BYTES. With HK_CAP_ONE_SIDED two allreduces that follow each
     * other have different in. Optional, each, as above. */
    hk_status_t (*allreduce)(hk_ctx_t *ctx, const void *out, void *in, void *work, size_t len_bytes);
    hk_status_t (*reduce)(hk_ctx_t *ctx, int root, const void *out, void *in, size_t len_bytes);

    /* ---- time: virtual on a simulated machine ---------------------------------------------------------------- */

    /* Nanoseconds since a fixed moment, never running backwards. Required. */
    uint64_t (*now_ns)(hk_ctx_t *ctx);

    /* Keep this rank's CPU busy for duration_ns. Required. */
    void (*compute)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* A busy loop of `turns` equal turns that reads no clock. Patterns calibrate it and use it as an application's
     * computing. Optional: absent means hk_real_spin. */
    void (*spin)(hk_ctx_t *ctx, uint64_t turns);

    /* Leave the CPU to others for at least duration_ns. Optional: absent means hk_real_sleep. */
    void (*sleep)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* Compute for duration_ns while *req is under way, like two processes that share the CPU, of which one receives.
     * Each time *req is done and gets the CPU, it is completed and next(arg) is called. next returns true if it has
     * started another request in *req, which wait_all completes if the computing ends first. Optional: absent means
     * that requests make no progress while a rank computes. */
    void (*overlap)(hk_ctx_t *ctx, uint64_t duration_ns, hk_req_t *req, bool (*next)(void *arg), void *arg);

    /* This rank's CPU time since a fixed moment. Optional: absent means that the system's figures are used. */
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
