/* The contract between patterns and transports. Both include this header. A pattern includes no header
 * of a transport, and a transport none of a pattern.
 *
 * A transport is one const hk_transport_t: its properties, its capability flags, and its functions, called hooks.
 * The life of a job:
 *
 *   prepare           once, before the ranks exist: create what they share
 *   open              on each rank: connect, and create the rank's context
 *   alloc             on each rank: buffers for messages
 *   send, recv, put … as the pattern calls them, also in its timed loop
 *   free, close       on each rank
 *   release           once, in the process that called prepare
 *
 * Rules for all hooks:
 * - A hook returns HK_OK or an error. The function that detects an error logs it, once. A failed message ends the job.
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

/* The promises of a transport, as HK_CAP_ and the first column. A pattern lists its needs. A point is skipped with
 * a sentence if its transport promises less. The second column is the name in `--describe`, the third completes "needs
 * …".
 *
 * SEND         send and recv. Messages between two ranks stay in order; both ranks pass the same size.
 * NONBLOCKING  isend, irecv and wait_all. While a rank waits, all its requests make progress.
 * ONE_SIDED    put, get, quiet and wait_word, on memory from alloc.
 * DEFERRED     put_start and get_start: several puts and gets under way at once.
 * EPOCHS       make_epoch: all synchronisations of onesided.h.
 * ATOMICS      make_atomic: atomic operations on a peer's memory; has_atomic says which.
 * SIGNAL       put_signal: a put that tells its target of its end.
 * WINDOWS      use_window: memory that becomes accessible to all ranks, and ceases to be.
 * PAYLOAD      the bytes really arrive, so they are verified.
 * THREADS      ranks are threads of one process.
 * SPINS        waits use the CPU: if oversubscribed, times measure the scheduler.
 * SYSCALLS     every message enters the kernel, so system time is expected.
 * STREAM       write_some and read_some: bytes in order, without messages.
 * LOSSY        a message may be lost. Its receive then returns HK_OK and zeros, and the counter "lost" grows.
 * SYNCHRONOUS  a send may wait for its receive: ranks that all send first would deadlock.
 * HOSTS        ranks may be on several hosts; without it all are started together on one.
 * KEEPS        the first use of a message creates resources that later uses keep; the warm-up covers it.
 * PROBE        probe: check for the next message without receiving it.
 * VIRTUAL      clock and CPU time belong to a model; real time does not matter. Bytes arrive in the repetition that is
 *              verified, if in any: only times count in the others.
 * MULTIPLE     open_thread: several threads of a rank may call hooks at once, each with its own context.
 * PARTITIONS   `parts`: messages that are sent in parts, each as soon as it is ready (MPI 4).
 * STARTUP      a library starts the ranks, and how long that took is known (startup.h).
 * FIRST        so is the first exchange of each pair of ranks, before which no message was sent.
 * MATCHING     send_tagged, recv_tagged and irecv_tagged: messages have tags, and a receive may take any.
 * EXCHANGE     exchange and exchange_in_place: one call sends and receives.
 * LAYOUTS      send_layout and recv_layout: the library gathers and scatters the data of a message itself (layout.h).
 * DEVICES      buffers of send, recv, isend and irecv may lie in memory of a device (device.h). Ask `lacks`, too.
 */
// clang-format off
#define HK_CAPABILITIES(X)                                          \
    X(SEND,        "send",        "send and receive")               \
    X(NONBLOCKING, "nonblocking", "several messages under way at once") \
    X(ONE_SIDED,   "one_sided",   "put and get")                    \
    X(DEFERRED,    "deferred",    "puts and gets that complete later") \
    X(EPOCHS,      "epochs",      "epochs of access")               \
    X(ATOMICS,     "atomics",     "atomic operations on a peer's memory") \
    X(SIGNAL,      "signal",      "a put with a signal")            \
    X(WINDOWS,     "windows",     "memory made accessible to peers while it runs") \
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
    X(VIRTUAL,     "virtual",     "a virtual clock") \
    X(MULTIPLE,    "thread_multiple", "calls from several threads at once") \
    X(PARTITIONS,  "partitions",  "messages in partitions") \
    X(STARTUP,     "startup",     "a library that starts the ranks") \
    X(FIRST,       "first",       "first messages that were timed") \
    X(MATCHING,    "matching",    "messages with tags, and receives of any") \
    X(EXCHANGE,    "exchange",    "one call that sends and receives") \
    X(LAYOUTS,     "layouts",     "messages of data that is not contiguous") \
    X(DEVICES,     "devices",     "messages from and to memory of devices")
// clang-format on

#define HK_CAP_PLACE(name, word, words) HK_CAP_PLACE_##name,
#define HK_CAP_FLAG(name, word, words) HK_CAP_##name = 1u << HK_CAP_PLACE_##name,
enum { HK_CAPABILITIES(HK_CAP_PLACE) HK_CAPS_COUNT };
enum { HK_CAPABILITIES(HK_CAP_FLAG) HK_CAP_NONE = 0 };
#undef HK_CAP_PLACE
#undef HK_CAP_FLAG

/* How bytes travel between ranks of one host. */
typedef enum hk_carrier {
    HK_CARRIER_NOTHING, /* nothing is sent */
    HK_CARRIER_MEMORY,  /* shared memory, copied in user space */
    HK_CARRIER_KERNEL,  /* a system call copies each message in, and one out */
    HK_CARRIER_LIBRARY, /* the library decides; `library` may name it */
} hk_carrier_t;

/* A message size above which a transport changes its method. `hockney explain` names it next to a step in a curve. */
typedef struct hk_limit {
    const char *name;    /* NULL: the end of a list */
    uint64_t bytes;      /* the largest size before the change; 0: `fact` gives it */
    const char *fact;    /* the key in the machine's network facts, or NULL */
    const char *meaning; /* what happens to larger messages: a sentence without a full stop */
    const char *see;     /* where to read about it, or a command */
    const char *source;  /* the document that says so */
} hk_limit_t;

struct hk_transport;
struct hk_control;
struct hk_call;
struct hk_startup;
struct hk_layout;
struct hk_device;

enum { HK_TAG_MAX = 16384 }; /* the largest tag of a message */
struct hk_epoch;
struct hk_atomic;

/* A sum that grows during the life of a rank: messages lost, calls that would have blocked, ns of computing. Results
 * report the growth over the timed samples. A mean takes two counters. */
typedef struct hk_counter {
    const char *name; /* snake_case, with its unit; the same on all ranks */
    double value;
} hk_counter_t;

enum {
    HK_COUNTERS_MAX = 16, /* for a pattern and a transport together */
};

/* A rank, as patterns see it. Transports embed it as the first member of their own context. */
typedef struct hk_ctx {
    const struct hk_transport *tp;
    int rank;
    int size;
    const struct hk_startup *startup; /* of this launch (startup.h); NULL: no library started it. The core sets it */
    struct hk_device *devices;        /* those that this rank has opened (device.h) */
} hk_ctx_t;

/* Room for one request, in the caller's memory. A transport casts it to its own type and checks with _Static_assert
 * that this fits. */
typedef struct hk_req {
    _Alignas(16) unsigned char room[64];
} hk_req_t;

/* The arguments of open: the same on all ranks except rank. */
typedef struct hk_job {
    int rank;
    int size;
    struct hk_control *control; /* exchanges addresses (control.h): barrier, broadcast, gather; never timed */
    void *shared;               /* from prepare; NULL without prepare */
    int oversubscribed;         /* 1: more ranks than CPUs, so a wait must yield the CPU */
    int remote;                 /* 1: ranks are on several hosts; 0: on one, and sockets use the loopback */
    const char *interface;      /* whose address sockets between hosts use; NULL: of the one that reaches rank 0 */
    const struct hk_startup *startup; /* how long the library took to start this rank; NULL: none did */
} hk_job_t;

/* How the messages of a rank's threads are told apart. */
typedef enum hk_apart {
    HK_APART_COMM, /* each thread has its own communicator */
    HK_APART_TAG,  /* threads share one, and thread i only gets what a thread i has sent */
    HK_APART_NOT,  /* they share one, and a message goes to any thread of its target */
} hk_apart_t;

/* What the receives of a thread say of the message. */
typedef enum hk_match { HK_MATCH_ALL, HK_MATCH_ANY_SOURCE, HK_MATCH_ANY_TAG, HK_MATCH_ANY, HK_MATCHES } hk_match_t;

/* A message that is sent in `count` parts of part_bytes, from or to one buffer. */
typedef struct hk_parted {
    int peer;
    bool is_sent;
    unsigned char *buf;
    int count;
    size_t part_bytes;
    hk_req_t req;
} hk_parted_t;

/* Hooks of partitioned messages. The two ranks of a message make it with the same count and size. Each repetition
 * starts it, and waits for its end; in between the sender passes on each part once, from any thread. Required with
 * HK_CAP_PARTITIONS, all. */
typedef struct hk_parts_hooks {
    hk_status_t (*make)(hk_ctx_t *ctx, hk_parted_t *message);
    hk_status_t (*start)(hk_ctx_t *ctx, hk_parted_t *message);
    hk_status_t (*ready)(hk_ctx_t *ctx, hk_parted_t *message, int part);
    hk_status_t (*arrived)(hk_ctx_t *ctx, hk_parted_t *message, int part, bool *is_there_p);
    hk_status_t (*wait)(hk_ctx_t *ctx, hk_parted_t *message);
    void (*drop)(hk_ctx_t *ctx, hk_parted_t *message);
} hk_parts_hooks_t;

/* In the order of use: the functions of a topic stand together. */
typedef struct hk_transport { // NOLINT(clang-analyzer-optin.performance.Padding)
    uint32_t caps;            /* HK_CAP_* */
    const char *name;         /* what the user types: "tcp", "tcp:spin" */
    const char *summary;      /* one line for `hockney list` */
    uint64_t max_bytes;       /* the largest message; 0: only memory limits it */
    int variant;              /* identifies the table where several share hooks; open reads it */
    const void *own;          /* other data of such tables, for example system calls; only the hooks read it */
    hk_carrier_t carrier;

    /* With HK_CAP_VIRTUAL: floating-point operations per second of a CPU. A pattern that computes with received data
     * then passes the time of its operations to `compute`, and needs no payload. 0: unknown. */
    double flops_per_s;

    /* Its collectives may write into `in` of a rank that has not entered the call yet. */
    bool writes_early;

    /* The transport that this one uses, within a host and between hosts: "unix" is below tcp. `hockney explain`
     * compares the two. Optional, each: absent means that none is known. */
    const char *below, *below_remote;

    /* A list that ends with a NULL name. Optional: absent means that no limit is documented. */
    const hk_limit_t *limits;

    const hk_parts_hooks_t *parts; /* Required with HK_CAP_PARTITIONS. */

    /* Why this library cannot do what a pattern needs (HK_CAP_*), where more is known than the table says: the level of
     * threads that it gave, or the version that has it. why[0..len) then completes "PATTERN needs …, which NAME does
     * not offer: " or "PATTERN cannot run on NAME: ". False: no reason is known. May be called without a job. Optional:
     * absent means that the table says all. */
    bool (*lacks)(const struct hk_transport *tp, uint32_t needs, char *why, size_t len);

    /* Whether this system has what the transport needs: a protocol, or a system call that is allowed. If not,
     * why[0..len) completes "NAME is not here: ", and *how_p says how to get it; it begins with "use " if only another
     * machine or transport helps. Without a job. Optional: absent means that every system has it. */
    bool (*is_here)(const struct hk_transport *tp, char *why, size_t len, const char **how_p);

    /* Create what the ranks of one host share, such as a mapping or pipes, before they are forked or started as
     * threads. Each rank finds it in job->shared. Optional: absent means that they share nothing. */
    hk_status_t (*prepare)(const struct hk_transport *tp, int size, void **shared_p);

    /* Release what prepare created, in the process that called it: after the fork, when each rank has its copy, or
     * after all threads have ended. Required with prepare. */
    void (*release)(void *shared);

    /* Join the job, on every rank. The context keeps tp, job->rank and job->size in its first member. On error nothing
     * stays open and *ctx_p is unchanged. A library that carries messages only within its calls sets `progress` of
     * job->control. Required. */
    hk_status_t (*open)(const struct hk_transport *tp, const hk_job_t *job, hk_ctx_t **ctx_p);

    /* Leave the job. Every rank calls it. Required. */
    void (*close)(hk_ctx_t *ctx);

    /* A description of the library or mechanism, stored with each run: "Open MPI 4.1.4", "TCP loopback,
     * TCP_NODELAY". The string lives as long as ctx. Required. */
    const char *(*library)(const hk_ctx_t *ctx);

    /* The i-th counter of this rank since open; false: there are no more. Optional: absent means none. */
    bool (*counter)(const hk_ctx_t *ctx, size_t i, hk_counter_t *counter_p);

    /* ---- memory ---------------------------------------------------------------------------------------------- */

    /* Page-aligned memory for messages; size_bytes is at least 1. All buffers given to the hooks below come from
     * here, but for those of HK_CAP_DEVICES. All ranks call it in the same order with the same size, so a transport may
     * let peers access it. NULL: not enough memory. Required. */
    void *(*alloc)(hk_ctx_t *ctx, size_t size_bytes);

    /* Free memory in reverse order of allocation. Required. */
    void (*free)(hk_ctx_t *ctx, void *memory, size_t size_bytes);

    /* Copy between memory from alloc, which the CPU cannot reach, and memory of the host, in either direction. Only
     * patterns that are `untouched` run. Never timed. Optional: absent means that the CPU reaches it. */
    hk_status_t (*move)(hk_ctx_t *ctx, void *to, const void *from, size_t size_bytes);

    /* ---- two-sided: both ranks pass the same size; 0 bytes is a message too (buf is never NULL) -------------- */

    /* Returns when buf may be used again. Required with HK_CAP_SEND. */
    hk_status_t (*send)(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes);

    /* Returns when the whole message is in buf. Required with HK_CAP_SEND. */
    hk_status_t (*recv)(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes);

    /* Whether the next message from peer has begun to arrive; never waits. No receive from peer may be under way.
     * Required with HK_CAP_PROBE. */
    hk_status_t (*probe)(hk_ctx_t *ctx, int peer, bool *is_there_p);

    /* Start a send or a receive. *req and the buffer must stay in place until wait_all. Messages between two ranks
     * match in the order in which they were started. Required with HK_CAP_NONBLOCKING. */
    hk_status_t (*isend)(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, hk_req_t *req);
    hk_status_t (*irecv)(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, hk_req_t *req);

    /* Complete reqs[0..count), in any order. These are all open requests of this rank, but for receives with a tag that
     * no message has yet (irecv_tagged). Required with HK_CAP_NONBLOCKING. */
    hk_status_t (*wait_all)(hk_ctx_t *ctx, hk_req_t *reqs, size_t count);

    /* ---- matching: a message has a tag, from 0 to HK_TAG_MAX; one of send and isend has 0, and recv, irecv and probe
     * take only those. Of the messages that match, a receive takes the oldest ------------------------------------- */

    /* Pass these as `peer` or `tag` to receive from any rank, or with any tag. Required with HK_CAP_MATCHING. */
    int any_source, any_tag;

    /* As send, recv and irecv. Required with HK_CAP_MATCHING. */
    hk_status_t (*send_tagged)(hk_ctx_t *ctx, int peer, int tag, const void *buf, size_t size_bytes);
    hk_status_t (*recv_tagged)(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes);
    hk_status_t (*irecv_tagged)(hk_ctx_t *ctx, int peer, int tag, void *buf, size_t size_bytes, hk_req_t *req);

    /* ---- exchange: one call that sends to one rank and receives from one, as many bytes ----------------------- */

    /* Returns when the whole message is in `in`, and `out` may be used again. In place, the message received replaces
     * the one sent. in_tag: what it receives, 0 or any_tag. Required with HK_CAP_EXCHANGE. */
    hk_status_t (*exchange)(hk_ctx_t *ctx, int to, const void *out, int from, int in_tag, void *in, size_t size_bytes);
    hk_status_t (*exchange_in_place)(hk_ctx_t *ctx, int to, int from, int in_tag, void *buf, size_t size_bytes);

    /* ---- layouts (layout.h) --------------------------------------------------------------------------------- */

    /* Prepare a layout for its messages, untimed: sets own. drop_layout releases what it created. Required with
     * HK_CAP_LAYOUTS. */
    hk_status_t (*make_layout)(hk_ctx_t *ctx, struct hk_layout *layout);
    void (*drop_layout)(hk_ctx_t *ctx, struct hk_layout *layout);

    /* As send and recv, of the data that the layout names in the memory from buf on. Required with HK_CAP_LAYOUTS. */
    hk_status_t (*send_layout)(hk_ctx_t *ctx, int peer, const void *buf, const struct hk_layout *layout);
    hk_status_t (*recv_layout)(hk_ctx_t *ctx, int peer, void *buf, const struct hk_layout *layout);

    /* ---- byte stream: bytes stay in order, but reads need not match writes. Streams and messages between two ranks
     * share one order. No request may be pending meanwhile; size_bytes is at least 1. ------------------ */

    /* One system call that waits until it has moved *moved_p bytes, from 1 to size_bytes. Required with
     * HK_CAP_STREAM. */
    hk_status_t (*write_some)(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p);
    hk_status_t (*read_some)(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p);

    /* The same without waiting: *moved_p is 0 if it would have blocked. Required with HK_CAP_STREAM. */
    hk_status_t (*write_now)(hk_ctx_t *ctx, int peer, const void *buf, size_t size_bytes, size_t *moved_p);
    hk_status_t (*read_now)(hk_ctx_t *ctx, int peer, void *buf, size_t size_bytes, size_t *moved_p);

    /* Select, per direction, whether this rank uses the _now calls with peer (true) or the waiting ones (false, the
     * state after open). Messages work in either mode. Never timed. Optional: absent means that all four calls
     * always work. */
    hk_status_t (*stream_mode)(hk_ctx_t *ctx, int peer, bool write_now, bool read_now);

    /* ---- one-sided: `remote` is an address in this rank's memory from alloc; it denotes the same place in the
     * peer's memory ----------------------------------------------------------------------------------- */

    /* Copy to or from the peer's memory. A put returns when `local` may be used again. quiet waits until all puts of
     * this rank are complete at the peer, and whatever else it has started. Required with HK_CAP_ONE_SIDED. */
    hk_status_t (*put)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes);
    hk_status_t (*get)(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes);
    hk_status_t (*quiet)(hk_ctx_t *ctx);

    /* Wait until an aligned 8-byte word in this rank's memory, written by a peer's put, has this value. Required
     * with HK_CAP_ONE_SIDED. */
    hk_status_t (*wait_word)(hk_ctx_t *ctx, const uint64_t *word, uint64_t value);

    /* Start a put or a get: the local buffer stays in use until quiet, or until the end of an epoch. A put may still
     * read it, a get still write it. Required with HK_CAP_DEFERRED. */
    hk_status_t (*put_start)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes);
    hk_status_t (*get_start)(hk_ctx_t *ctx, int peer, void *local, const void *remote, size_t size_bytes);

    /* put_start; when all of it is at the peer, the word `signal` there, for which it may wait_word, becomes value.
     * Required with HK_CAP_SIGNAL. */
    hk_status_t (*put_signal)(hk_ctx_t *ctx, int peer, void *remote, const void *local, size_t size_bytes,
                              uint64_t *signal, uint64_t value);

    /* Prepare the epoch for its repetitions, untimed, on all ranks: sets begin, end and own. Until drop_epoch, also on
     * all ranks, memory from that alloc is accessed within such epochs only. It succeeds on all ranks; or on
     * none, and then nothing is left. Required with HK_CAP_EPOCHS. */
    hk_status_t (*make_epoch)(hk_ctx_t *ctx, struct hk_epoch *epoch);
    hk_status_t (*drop_epoch)(hk_ctx_t *ctx, struct hk_epoch *epoch);

    /* Whether the transport has this atomic operation (onesided.h); if not, why[0..len) holds what it lacks, to
     * complete "NAME has no …". make_atomic sets start and own, untimed. Required with HK_CAP_ATOMICS. */
    bool (*has_atomic)(const struct hk_transport *tp, const struct hk_atomic *atomic, char *why, size_t len);
    hk_status_t (*make_atomic)(hk_ctx_t *ctx, struct hk_atomic *atomic);

    /* Make size_bytes of memory accessible to all ranks: `memory`, or new memory where the transport allocates it. If
     * is_used, all ranks synchronise, each puts the first byte of local into its own, and they synchronise again; what
     * arrived is then the first byte of `memory`. It ends private. All ranks call it; timed. Required with
     * HK_CAP_WINDOWS. */
    hk_status_t (*use_window)(hk_ctx_t *ctx, void *memory, size_t size_bytes, const void *local, bool is_used);

    /* ---- collectives (collective.h) --------------------------------------------------------------------------- */

    /* All ranks wait for each other; also completes this rank's puts. Untimed between samples, too. Optional: absent
     * means that messages are used, after quiet. */
    hk_status_t (*barrier)(hk_ctx_t *ctx);

    /* Whether the transport's own implementation can do this call; if not, why[0..len) holds what it lacks, to
     * complete "NAME has no …". Without a job: only operation, form, type, reduction, size, bytes, in_place and
     * near.count count. Optional: absent means that it has none. */
    bool (*has_call)(const struct hk_transport *tp, const struct hk_call *call, char *why, size_t len);

    /* The room that the call needs at `own`. The caller gives it, all zeros and aligned as by malloc: a rank without
     * memory has failed before any waits for it in make_call. 1 or more. Required with has_call. */
    size_t (*call_bytes)(const struct hk_call *call);

    /* Prepare the call for its repetitions, untimed, on all ranks: sets run, wait and test. On error nothing is left;
     * else drop_call releases what it created. Required with has_call. */
    hk_status_t (*make_call)(hk_ctx_t *ctx, struct hk_call *call);
    void (*drop_call)(hk_ctx_t *ctx, struct hk_call *call);

    /* ---- threads ---------------------------------------------------------------------------------------------- */

    /* A context for thread `number` of this rank, with the hooks of *thread_p->tp, which may differ from this table's.
     * All ranks call it in the same order, before the thread starts, and get an error if one has no memory.
     * thread_p: NULL if this rank has none for the thread itself. close_thread: in any order, after all threads have
     * ended. Required with HK_CAP_MULTIPLE. */
    hk_status_t (*open_thread)(hk_ctx_t *ctx, int number, hk_apart_t apart, hk_match_t match, hk_ctx_t **thread_p);
    void (*close_thread)(hk_ctx_t *thread);

    /* ---- time: real, or virtual on a simulated machine ------------------------------------------------------- */

    /* Nanoseconds since a fixed moment; never decreases. Required. */
    uint64_t (*now_ns)(hk_ctx_t *ctx);

    /* Keep this rank's CPU busy for duration_ns. Required. */
    void (*compute)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* A busy loop of `turns` equal turns that does not read a clock. Patterns calibrate it to simulate an
     * application's computation. Optional: absent means hk_real_spin. */
    void (*spin)(hk_ctx_t *ctx, uint64_t turns);

    /* Release the CPU for at least duration_ns. Optional: absent means hk_real_sleep. */
    void (*sleep)(hk_ctx_t *ctx, uint64_t duration_ns);

    /* Compute for duration_ns while *req is under way, as if another process on the same CPU received. Whenever *req
     * is done and gets the CPU, it completes and next(arg) is called. next returns true if it started another
     * request in *req. If the computation ends first, wait_all completes the request. Optional: absent means that
     * requests make no progress while a rank computes. */
    void (*overlap)(hk_ctx_t *ctx, uint64_t duration_ns, hk_req_t *req, bool (*next)(void *arg), void *arg);

    /* This rank's CPU time since a fixed moment. Optional: absent means that the system's figures are used. */
    void (*cpu_ns)(hk_ctx_t *ctx, uint64_t *user_ns_p, uint64_t *system_ns_p);
} hk_transport_t;

/* Clock, busy loops and sleep of a real machine, for transports whose time is real. */
uint64_t hk_real_now_ns(hk_ctx_t *ctx);
void hk_real_compute(hk_ctx_t *ctx, uint64_t duration_ns);
void hk_real_spin(hk_ctx_t *ctx, uint64_t turns);
void hk_real_sleep(hk_ctx_t *ctx, uint64_t duration_ns);

/* The clock that hosts agree on, if they are synchronised: ns since 1970. */
uint64_t hk_time_of_day_ns(void);

/* Private memory that fulfils the contract of alloc, for transports without memory that peers access. */
void *hk_private_alloc(hk_ctx_t *ctx, size_t size_bytes);
void hk_private_free(hk_ctx_t *ctx, void *memory, size_t size_bytes);

#endif
