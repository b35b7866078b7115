#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unistd.h>

#include "cacheline.h"

enum {
    TEAM_PATIENCE = 20000,      /* polls of a word: about a millisecond, longer than ranks need to meet */
    TEAM_PATIENCE_CROWDED = 50, /* with fewer CPUs than threads: the one waited for may need this CPU */
    TEAM_NAP_NS = 20000,
};

typedef struct member {
    _Alignas(HK_SEPARATE_BYTES) hk_run_t run;
    struct hk_team *team;
    pthread_t thread;
    int number;
    hk_status_t status;
    uint64_t took_ns;
} member_t;

struct hk_team { // NOLINT(clang-analyzer-optin.performance.Padding): what threads share has a line of its own
    member_t *members;
    int count, started; /* started: threads besides the rank's own */
    bool stays, is_awake;
    hk_loop_t loop;
    uint64_t reps;
    unsigned patience;
    pthread_mutex_t lock; /* of turn, running and has_failed */
    pthread_cond_t woken, ended;
    uint64_t turn; /* of the samples so far and the next one */
    int running;
    bool has_failed;
    _Alignas(HK_SEPARATE_BYTES) _Atomic int ready;   /* threads that are awake */
    _Alignas(HK_SEPARATE_BYTES) _Atomic uint64_t go; /* the turn that has begun */
    _Atomic bool is_over;
    _Alignas(HK_SEPARATE_BYTES) _Atomic int arrived; /* of those that meet */
    _Alignas(HK_SEPARATE_BYTES) _Atomic unsigned phase;
};

/* Memory that shares no line with other memory. */
static void *team_alloc(size_t size_bytes)
{
    const size_t room = (size_bytes / HK_SEPARATE_BYTES + 1) * HK_SEPARATE_BYTES;
    void *memory = aligned_alloc(HK_SEPARATE_BYTES, room);
    return memory != NULL ? memset(memory, 0, room) : NULL;
}

/* One poll of a word has found nothing. */
static void team_rest(const hk_team_t *team, unsigned *polls)
{
    const struct timespec nap = {.tv_nsec = TEAM_NAP_NS};
    if (++*polls < team->patience) {
        hk_pause();
    } else {
        (void)nanosleep(&nap, NULL);
    }
}

/* ---- one thread -------------------------------------------------------------------------------------------------- */

static void team_work(member_t *member)
{
    hk_run_t *run = &member->run;
    uint64_t (*const now_ns)(hk_ctx_t *) = run->ctx->tp->now_ns;
    run->untimed_ns = 0;
    const uint64_t start_ns = now_ns(run->ctx);
    member->status = member->team->loop(run, member->team->reps);
    member->took_ns = now_ns(run->ctx) - start_ns - run->untimed_ns;
}

#ifdef __linux__
/* The CPUs of the process that started this one, which its rank left. */
static void team_spread(const hk_team_t *team)
{
    cpu_set_t cpus;
    if (!team->stays && sched_getaffinity(getppid(), sizeof cpus, &cpus) == 0) {
        (void)sched_setaffinity(0, sizeof cpus, &cpus); /* a failure leaves it where it is */
    }
}

static int team_cpus(const hk_team_t *team)
{
    cpu_set_t cpus;
    return sched_getaffinity(team->stays ? 0 : getppid(), sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : team->count;
}
#else
static void team_spread(const hk_team_t *team)
{
    (void)team;
}

static int team_cpus(const hk_team_t *team)
{
    return team->count;
}
#endif

static void *team_member(void *argument)
{
    member_t *member = argument;
    hk_team_t *team = member->team;
    team_spread(team);
    for (uint64_t turn = 1;; turn++) {
        unsigned polls = 0;
        pthread_mutex_lock(&team->lock);
        while (team->turn < turn && !atomic_load(&team->is_over)) {
            pthread_cond_wait(&team->woken, &team->lock);
        }
        pthread_mutex_unlock(&team->lock);
        atomic_fetch_add(&team->ready, 1);
        while (atomic_load_explicit(&team->go, memory_order_acquire) < turn) {
            if (atomic_load(&team->is_over)) {
                return NULL;
            }
            team_rest(team, &polls);
        }
        team_work(member);
        pthread_mutex_lock(&team->lock);
        team->running--;
        team->has_failed |= member->status != HK_OK;
        pthread_cond_signal(&team->ended);
        pthread_mutex_unlock(&team->lock);
    }
}

/* ---- all threads ------------------------------------------------------------------------------------------------- */

hk_status_t hk_team_open(const hk_run_t *run, int count, size_t reqs_count, size_t state_bytes, bool stays,
                         hk_team_t **team_p)
{
    hk_team_t *team = team_alloc(sizeof *team);
    if (team != NULL) {
        team->members = team_alloc((size_t)count * sizeof *team->members);
    }
    if (team == NULL || team->members == NULL) {
        free(team);
        return hk_fail(HK_ERR_MEMORY, run->ctx->rank, "no memory for %d threads", count);
    }
    team->count = count;
    team->stays = stays;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->woken, NULL);
    pthread_cond_init(&team->ended, NULL);
    bool has_all = true;
    for (int i = 0; i < count; i++) {
        member_t *member = &team->members[i];
        *member = (member_t){.run = *run, .team = team, .number = i};
        member->run.reqs_count = reqs_count;
        member->run.reqs = team_alloc(reqs_count * sizeof *member->run.reqs);
        member->run.state = team_alloc(state_bytes);
        has_all = has_all && member->run.reqs != NULL && member->run.state != NULL;
    }
    if (!has_all) {
        hk_team_close(team);
        return hk_fail(HK_ERR_MEMORY, run->ctx->rank, "no memory for the requests of %d threads", count);
    }
    *team_p = team;
    return HK_OK;
}

hk_run_t *hk_team_run(hk_team_t *team, int number)
{
    return &team->members[number].run;
}

hk_status_t hk_team_start(hk_team_t *team, hk_loop_t loop)
{
    sigset_t all;
    sigset_t before;
    int failed = 0;
    team->loop = loop;
    team->patience = team_cpus(team) < team->count ? TEAM_PATIENCE_CROWDED : TEAM_PATIENCE;
    sigfillset(&all); /* signals are for the ranks */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < team->count && failed == 0; i++) {
        failed = pthread_create(&team->members[i].thread, NULL, team_member, &team->members[i]);
        team->started += failed == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? HK_OK
                       : hk_fail(HK_ERR_SYSTEM, team->members[0].run.ctx->rank, "cannot start %d threads: %s",
                                 team->count, strerror(failed));
}

void hk_team_wake(hk_team_t *team)
{
    unsigned polls = 0;
    if (team->is_awake) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->turn++;
    team->running = team->started;
    pthread_cond_broadcast(&team->woken);
    pthread_mutex_unlock(&team->lock);
    while (atomic_load(&team->ready) < team->started) {
        team_rest(team, &polls);
    }
    atomic_store(&team->ready, 0);
    team->is_awake = true;
}

static uint64_t team_time(const hk_team_t *team, bool is_longest)
{
    uint64_t sum_ns = 0, most_ns = 0;
    for (int i = 0; i < team->count; i++) {
        const uint64_t took_ns = team->members[i].took_ns;
        sum_ns += took_ns;
        most_ns = took_ns > most_ns ? took_ns : most_ns;
    }
    return is_longest ? most_ns : sum_ns / (uint64_t)team->count;
}

hk_status_t hk_team_repeat(hk_team_t *team, uint64_t reps, bool is_longest, uint64_t *took_ns_p)
{
    hk_team_wake(team);
    team->reps = reps;
    team->is_awake = false;
    atomic_store_explicit(&team->go, team->turn, memory_order_release);
    team_work(&team->members[0]);
    HK_TRY(team->members[0].status);
    pthread_mutex_lock(&team->lock);
    while (team->running > 0 && !team->has_failed) {
        pthread_cond_wait(&team->ended, &team->lock);
    }
    const bool has_failed = team->has_failed;
    pthread_mutex_unlock(&team->lock);
    if (has_failed) {
        return HK_ERR_SYSTEM; /* its thread has logged why */
    }
    *took_ns_p = team_time(team, is_longest);
    return HK_OK;
}

void hk_team_meet(hk_team_t *team)
{
    unsigned polls = 0;
    const unsigned phase = atomic_load_explicit(&team->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == team->count - 1) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->phase, phase + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&team->phase, memory_order_acquire) == phase) {
        team_rest(team, &polls);
    }
}

void hk_team_close(hk_team_t *team)
{
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->is_over, true);
    pthread_cond_broadcast(&team->woken);
    pthread_mutex_unlock(&team->lock);
    for (int i = 1; i <= team->started; i++) {
        pthread_join(team->members[i].thread, NULL);
    }
    for (int i = 0; i < team->count; i++) {
        free(team->members[i].run.reqs);
        free(team->members[i].run.state);
    }
    pthread_cond_destroy(&team->ended);
    pthread_cond_destroy(&team->woken);
    pthread_mutex_destroy(&team->lock);
    free(team->members);
    free(team);
}
