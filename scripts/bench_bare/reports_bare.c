/* The reference for the suites of the classic reports: what their tables define, as plain loops of two or three forked
 * and pinned processes. Nothing is shared with the worker; messages through memory are as docs/transports.md says.
 *
 *     cc -O3 -std=c17 -D_GNU_SOURCE -o reports_bare reports_bare.c
 *     reports_bare shm|shm:sync|unix|tcp|pipe CPU,... PATTERN:BYTES:BATCH:SAMPLES:EXTRA ...
 *
 * A line for each point has three times in ns: of rank 0, the mean of all ranks, and of the slowest one. Each is the
 * fastest of SAMPLES batches, which follow each other without a pause after an untimed one. */
#include "bare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { RANKS_MAX = 3, SAMPLES_MAX = 1000, CELLS = 64, TOLD_EVERY = 32, IN_CELL_BYTES = 256, REQUEST_BYTES = 16 };
enum { PAGE_BYTES = 4096, ASIDE_BYTES = 1088, AWAY_BYTES = 128, BUFFER_BYTES = 8 << 20, SLICE_BYTES = 20 << 20 };
enum { WRITE_NOW = 1, READ_NOW = 2, BACKWARDS = 4 }; /* EXTRA of stream: calls that do not wait; rank 1 writes */
enum { BOTH = 1, SEEN = 2 };                         /* EXTRA of put: by both ranks; answered when it is seen */

typedef uint64_t lane_t __attribute__((vector_size(16))); /* size and number, word: one store */

struct cell {
    _Alignas(64) lane_t lane;
    unsigned char few[48], many[IN_CELL_BYTES];
};

struct shared {
    struct ring {
        struct cell cell[CELLS];
        _Alignas(128) _Atomic uint32_t taken;
    } ring[RANKS_MAX][RANKS_MAX]; /* [from][to] */
    struct flag {
        _Alignas(128) _Atomic uint64_t number;
    } flag[RANKS_MAX], met[RANKS_MAX];
    double batch_ns[RANKS_MAX][SAMPLES_MAX];
};

struct me {
    int rank, ranks, next, previous;
    bool is_shared, is_pipe, is_last; /* the last: no batch follows */
    size_t waits_from_bytes;          /* a send of this size returns when its message is taken */
    struct shared *shared;
    unsigned char *slice[RANKS_MAX], *out, *in; /* slices: memory that all share, equal on all ranks */
    uint32_t sent[RANKS_MAX], known[RANKS_MAX], took[RANKS_MAX];
    uint64_t number, meetings;
    int to[RANKS_MAX], from[RANKS_MAX]; /* descriptors */
    size_t bytes;
    long extra;
};

static inline void rest(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static inline void await_taken(struct me *me, int to, uint32_t number)
{
    const struct ring *ring = &me->shared->ring[me->rank][to];
    while ((int32_t)((me->known[to] = atomic_load_explicit(&ring->taken, memory_order_acquire)) - number) < 0) {
        rest();
    }
}

static inline void copy_short(void *to, const void *from, size_t bytes)
{
    bytes == 8 ? memcpy(to, from, 8) : bytes == 4 ? memcpy(to, from, 4) : memcpy(to, from, 0);
}

static inline void offer(struct me *me, int to, const unsigned char *buf, size_t bytes)
{
    const uint32_t number = ++me->sent[to];
    struct cell *cell = &me->shared->ring[me->rank][to].cell[number % CELLS];
    uint64_t word = (uintptr_t)buf;
    if (number - me->known[to] > CELLS) {
        await_taken(me, to, number - CELLS);
    }
    if (bytes <= sizeof word) {
        copy_short(&word, buf, bytes);
    } else if (bytes <= IN_CELL_BYTES) {
        memcpy(bytes <= sizeof cell->few ? cell->few : cell->many, buf, bytes);
    }
    atomic_signal_fence(memory_order_seq_cst); /* stores are in order on x86 */
    *(volatile lane_t *)&cell->lane = (lane_t){(uint64_t)number << 32 | bytes, word};
}

static inline void take(struct me *me, int from, unsigned char *buf, size_t bytes)
{
    const uint32_t number = ++me->took[from];
    struct ring *ring = &me->shared->ring[from][me->rank];
    struct cell *cell = &ring->cell[number % CELLS];
    lane_t lane = *(volatile lane_t *)&cell->lane;
    for (; lane[0] != ((uint64_t)number << 32 | bytes); lane = *(volatile lane_t *)&cell->lane) {
        rest();
    }
    atomic_signal_fence(memory_order_seq_cst);
    const uint64_t word = lane[1];
    if (bytes <= sizeof word) {
        copy_short(buf, &word, bytes);
    } else {
        const unsigned char *in_cell = bytes <= sizeof cell->few ? cell->few : cell->many;
        memcpy(buf, bytes <= IN_CELL_BYTES ? in_cell : (const unsigned char *)(uintptr_t)word, bytes);
    }
    if (bytes >= me->waits_from_bytes || number % TOLD_EVERY == 0) {
        atomic_store_explicit(&ring->taken, number, memory_order_release);
    }
}

/* One call: the bytes moved, 0 if it did not wait and moved none. */
static inline size_t move(const struct me *me, int fd, unsigned char *buf, size_t bytes, bool is_out, int flags)
{
    const ssize_t count = me->is_pipe ? (is_out ? write(fd, buf, bytes) : read(fd, buf, bytes))
                          : is_out    ? send(fd, buf, bytes, MSG_NOSIGNAL | flags)
                                      : recv(fd, buf, bytes, flags);
    check(count > 0 || (count < 0 && errno == EAGAIN), is_out ? "send" : "receive");
    return count > 0 ? (size_t)count : 0;
}

/* No bytes travel as one. */
static inline void move_all(const struct me *me, int fd, unsigned char *buf, size_t bytes, bool is_out)
{
    for (size_t at = 0, all = bytes > 0 ? bytes : 1; at < all;) {
        at += move(me, fd, buf + at, all - at, is_out, 0);
    }
}

/* Calls, as in any library: part of the loop, 8 B between near cores would take 32 ns instead of 46. */
#define CALL static __attribute__((noinline))

CALL void begin_send(struct me *me, int to, unsigned char *buf, size_t bytes)
{
    me->is_shared ? offer(me, to, buf, bytes) : move_all(me, me->to[to], buf, bytes, true);
}

CALL void end_send(struct me *me, int to, size_t bytes)
{
    if (me->is_shared && bytes >= me->waits_from_bytes) {
        await_taken(me, to, me->sent[to]);
    }
}

CALL void send_to(struct me *me, int to, unsigned char *buf, size_t bytes)
{
    me->is_shared ? offer(me, to, buf, bytes) : move_all(me, me->to[to], buf, bytes, true);
    if (me->is_shared && bytes >= me->waits_from_bytes) {
        await_taken(me, to, me->sent[to]);
    }
}

CALL void recv_from(struct me *me, int from, unsigned char *buf, size_t bytes)
{
    me->is_shared ? take(me, from, buf, bytes) : move_all(me, me->from[from], buf, bytes, false);
}

/* ---- patterns of messages ---------------------------------------------------------------------------------------- */

static void pingpong(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        if (me->rank == 0) {
            send_to(me, 1, me->out, me->bytes);
            recv_from(me, 1, me->in, me->bytes);
        } else {
            recv_from(me, 0, me->in, me->bytes);
            send_to(me, 0, me->out, me->bytes);
        }
    }
}

/* The same with poll, which waits for EXTRA ms (-1: without end) until it is called again. */
static void polled(struct me *me, long reps)
{
    const int peer = 1 - me->rank;
    struct pollfd ready = {.fd = me->from[peer], .events = POLLIN};
    for (long i = 0; i < 2 * reps; i++) {
        if ((i + me->rank) % 2 == 0) {
            send_to(me, peer, me->out, me->bytes);
            continue;
        }
        while (poll(&ready, 1, (int)me->extra) == 0) {
        }
        recv_from(me, peer, me->in, me->bytes);
    }
}

/* Until an acknowledgement of each batch. */
static void oneway(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        me->rank == 0 ? send_to(me, 1, me->out, me->bytes) : recv_from(me, 0, me->in, me->bytes);
    }
    me->rank == 0 ? recv_from(me, 1, me->in, 0) : send_to(me, 0, me->out, 0);
}

static void exchange(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        begin_send(me, me->next, me->out, me->bytes);
        recv_from(me, me->previous, me->in, me->bytes);
        end_send(me, me->next, me->bytes);
    }
}

static inline void hops(struct me *me, long reps, const int (*way)[2], int count)
{
    for (long i = 0; i < count * reps; i++) {
        const int *hop = way[i % count];
        if (me->rank == hop[0]) {
            send_to(me, hop[1], me->out, me->bytes);
        } else if (me->rank == hop[1]) {
            recv_from(me, hop[0], me->in, me->bytes);
        }
    }
}

/* Rank 1 is the sender, rank 2 the receiver. */
static void pushfarm(struct me *me, long reps)
{
    hops(me, reps, (const int[][2]){{0, 1}, {1, 2}, {2, 0}}, 3);
}

static void pullfarm(struct me *me, long reps)
{
    hops(me, reps, (const int[][2]){{0, 2}, {2, 1}, {1, 2}, {2, 0}}, 4);
}

/* EXTRA us. */
static void compute(const struct me *me)
{
    for (const double end_ns = now_ns() + (double)me->extra * 1e3; me->extra > 0 && now_ns() < end_ns;) {
    }
}

/* Without a delay: funnel. */
static void robpush(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        for (int rob = 1; me->rank == 0 && rob < me->ranks; rob++) {
            recv_from(me, rob, me->in + (size_t)(rob - 1) * me->bytes, me->bytes);
        }
        me->rank == 0 ? compute(me) : send_to(me, 0, me->out, me->bytes);
    }
}

/* Two buffers: the first request of the next event goes out before the computation. */
static void robpull(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        if (me->rank > 0) {
            recv_from(me, 0, me->in, REQUEST_BYTES);
            send_to(me, 0, me->out, me->bytes);
            continue;
        }
        for (int rob = 1; rob < me->ranks; rob++) {
            if (rob > 1 || me->number++ == 0) {
                send_to(me, rob, me->out, REQUEST_BYTES);
            }
            recv_from(me, rob, me->in + (size_t)(rob - 1) * me->bytes, me->bytes);
        }
        if (!me->is_last || i + 1 < reps) {
            send_to(me, 1, me->out, REQUEST_BYTES);
        }
        compute(me);
    }
}

/* A read takes what is there. */
static void stream(struct me *me, long writes)
{
    const int peer = 1 - me->rank;
    const bool is_writer = me->rank == ((me->extra & BACKWARDS) != 0);
    const int flags = (me->extra & (is_writer ? WRITE_NOW : READ_NOW)) != 0 ? MSG_DONTWAIT : 0;
    if (me->is_pipe) {
        check(fcntl(is_writer ? me->to[peer] : me->from[peer], F_SETFL, flags != 0 ? O_NONBLOCK : 0) == 0, "fcntl");
    }
    for (long i = 0; is_writer && i < writes; i++) {
        for (size_t at = 0; at < me->bytes;) {
            at += move(me, me->to[peer], me->out + at, me->bytes - at, true, flags);
        }
    }
    for (size_t left = (size_t)writes * me->bytes; !is_writer && left > 0;) {
        left -= move(me, me->from[peer], me->in, left < me->bytes ? left : me->bytes, false, flags);
    }
}

/* ---- patterns of shared memory ----------------------------------------------------------------------------------- */

static void barrier(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        const uint64_t number = ++me->number;
        atomic_store_explicit(&me->shared->flag[1 - me->rank].number, number, memory_order_release);
        while (atomic_load_explicit(&me->shared->flag[me->rank].number, memory_order_acquire) < number) {
            rest();
        }
    }
}

static inline unsigned char *of_peer(const struct me *me, const void *mine)
{
    return me->slice[1 - me->rank] + ((const unsigned char *)mine - me->slice[me->rank]);
}

/* A word in one store, or a copy. `remote` is its place in this rank's memory. */
CALL void put(const struct me *me, void *remote, const void *local, size_t bytes)
{
    unsigned char *there = of_peer(me, remote);
    bytes == 8 ? (void)(*(volatile uint64_t *)(void *)there = *(const uint64_t *)local)
               : (void)memcpy(there, local, bytes);
}

CALL void get(const struct me *me, void *local, const void *remote, size_t bytes)
{
    const unsigned char *there = of_peer(me, remote);
    bytes == 8 ? (void)(*(uint64_t *)local = *(const volatile uint64_t *)(const void *)there)
               : (void)memcpy(local, there, bytes);
}

static inline void await_number(const void *word, uint64_t number)
{
    while (atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_acquire) != number) {
        rest();
    }
}

static void putpong(struct me *me, long reps)
{
    for (long i = 0; i < reps; i++) {
        const uint64_t number = ++me->number;
        if (me->rank == 1) {
            await_number(me->in, number);
        }
        put(me, me->in, &number, sizeof number);
        if (me->rank == 0) {
            await_number(me->in, number);
        }
    }
}

static void puts_of(struct me *me, long reps)
{
    const bool puts = me->rank == 0 || (me->extra & BOTH) != 0;
    const bool answers = me->rank == 1 || (me->extra & BOTH) != 0;
    unsigned char *flag = me->in + AWAY_BYTES;
    for (long i = 0; (me->extra & SEEN) == 0 && puts && i < reps; i++) {
        put(me, me->in, me->out, me->bytes);
    }
    for (long i = 0; (me->extra & SEEN) != 0 && i < reps; i++) {
        const uint64_t number = ++me->number;
        if (puts) {
            put(me, me->in, &number, sizeof number);
        }
        if (answers) {
            await_number(me->in, number);
            put(me, flag, &number, sizeof number);
        }
        if (puts) {
            await_number(flag, number);
        }
    }
    atomic_thread_fence(memory_order_seq_cst);
}

static void gets_of(struct me *me, long reps)
{
    for (long i = 0; me->rank == 0 && i < reps; i++) {
        get(me, me->in, me->out, me->bytes);
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

struct point {
    const struct pattern {
        const char *name;
        void (*repeat)(struct me *me, long reps);
        int divisor;
    } *pattern;
    size_t bytes;
    long batch, extra;
    int samples;
};

static struct point read_point(const char *text)
{
    static const struct pattern all[] = {
        {"pingpong", pingpong, 2}, {"polled", polled, 2},     {"oneway", oneway, 1},     {"twoway", exchange, 2},
        {"ring", exchange, 1},     {"pushfarm", pushfarm, 1}, {"pullfarm", pullfarm, 1}, {"robpush", robpush, 1},
        {"robpull", robpull, 1},   {"stream", stream, 1},     {"barrier", barrier, 1},   {"putpong", putpong, 2},
        {"put", puts_of, 1},       {"putseen", puts_of, 2},   {"get", gets_of, 1},
    };
    char name[16];
    struct point point = {0};
    const int count =
        sscanf(text, "%15[a-z]:%zu:%ld:%d:%ld", name, &point.bytes, &point.batch, &point.samples, &point.extra);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        point.pattern = count == 5 && strcmp(all[i].name, name) == 0 ? &all[i] : point.pattern;
    }
    check(point.pattern != NULL && 2 * point.bytes <= BUFFER_BYTES && point.batch > 0 && point.samples > 0 &&
              point.samples <= SAMPLES_MAX,
          text);
    return point;
}

static void meet(struct me *me)
{
    const uint64_t number = ++me->meetings;
    atomic_store(&me->shared->met[me->rank].number, number);
    for (int rank = 0; rank < me->ranks; rank++) {
        while (atomic_load(&me->shared->met[rank].number) < number) {
            sched_yield();
        }
    }
}

static void print_least(const struct me *me, const struct point *point, int ranks, bool is_slowest)
{
    double least_ns = 0;
    for (int i = 0; i < point->samples; i++) {
        double batch_ns = 0;
        for (int rank = 0; rank < ranks; rank++) {
            const double one_ns = me->shared->batch_ns[rank][i];
            batch_ns = !is_slowest ? batch_ns + one_ns / ranks : one_ns > batch_ns ? one_ns : batch_ns;
        }
        least_ns = i == 0 || batch_ns < least_ns ? batch_ns : least_ns;
    }
    printf("%.3f ", least_ns / ((double)point->batch * point->pattern->divisor));
}

static void measure(struct me *me, const struct point *point)
{
    me->bytes = point->bytes;
    me->extra = point->extra;
    me->number = 0;
    me->is_last = false;
    memset(me->out, 1, 2 * point->bytes + PAGE_BYTES);
    memset(me->in, 0, 2 * point->bytes + PAGE_BYTES);
    meet(me);
    point->pattern->repeat(me, point->batch);
    double start_ns = now_ns();
    for (int i = 0; i < point->samples; i++) {
        me->is_last = i + 1 == point->samples;
        point->pattern->repeat(me, point->batch);
        const double end_ns = now_ns();
        me->shared->batch_ns[me->rank][i] = end_ns - start_ns;
        start_ns = end_ns;
    }
    meet(me);
    if (me->rank == 0) {
        print_least(me, point, 1, false);
        print_least(me, point, me->ranks, false);
        print_least(me, point, me->ranks, true);
        puts("");
    }
}

static void connect_pair(const char *wire, struct me *a, struct me *b)
{
    int ends[2], back[2];
    if (strcmp(wire, "pipe") == 0) {
        check(pipe(ends) == 0 && pipe(back) == 0, "pipe");
        a->to[b->rank] = ends[1], b->from[a->rank] = ends[0];
        b->to[a->rank] = back[1], a->from[b->rank] = back[0];
        return;
    }
    strcmp(wire, "tcp") == 0 ? connect_tcp(ends) : check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    a->to[b->rank] = a->from[b->rank] = ends[0];
    b->to[a->rank] = b->from[a->rank] = ends[1];
}

int main(int argc, char **argv)
{
    static struct me all[RANKS_MAX];
    int cpu[RANKS_MAX], rank = 0;
    check(argc > 3, "usage: reports_bare WIRE CPU,... PATTERN:BYTES:BATCH:SAMPLES:EXTRA ...");
    const int ranks = sscanf(argv[2], "%d,%d,%d", &cpu[0], &cpu[1], &cpu[2]);
    const bool is_shared = strncmp(argv[1], "shm", 3) == 0;
    const size_t huge = 2 << 20, first = (sizeof(struct shared) + huge) / huge * huge;
    unsigned char *memory = mmap(NULL, huge + first + RANKS_MAX * (size_t)SLICE_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED && ranks >= 2, "two or three ranks, and their memory");
    memory += huge - (uintptr_t)memory % huge;
    (void)madvise(memory + first, RANKS_MAX * (size_t)SLICE_BYTES, MADV_HUGEPAGE); /* most systems refuse it */
    for (int a = 0; a < ranks; a++) {
        all[a] = (struct me){.rank = a,
                             .ranks = ranks,
                             .next = (a + 1) % ranks,
                             .previous = (a + ranks - 1) % ranks,
                             .is_shared = is_shared,
                             .is_pipe = strcmp(argv[1], "pipe") == 0,
                             .waits_from_bytes = strcmp(argv[1], "shm:sync") == 0 ? 0 : IN_CELL_BYTES + 1,
                             .shared = (struct shared *)(void *)memory};
        for (int b = 0; b < ranks; b++) {
            all[a].slice[b] = memory + first + (size_t)b * SLICE_BYTES;
        }
        for (int b = 0; !is_shared && b < a; b++) {
            connect_pair(argv[1], &all[b], &all[a]);
        }
    }
    for (int other = 1; other < ranks && rank == 0; other++) {
        rank = fork() == 0 ? other : 0;
    }
    struct me *me = &all[rank];
    pin(cpu[rank]);
    me->out = is_shared ? me->slice[rank]
                        : mmap(NULL, SLICE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(me->out != MAP_FAILED, "mmap");
    me->in = me->out + BUFFER_BYTES + ASIDE_BYTES; /* no two buffers have the same place in their pages */
    for (int i = 3; i < argc; i++) {
        const struct point point = read_point(argv[i]);
        measure(me, &point);
    }
    fflush(stdout);
    if (rank > 0) {
        _exit(0);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
