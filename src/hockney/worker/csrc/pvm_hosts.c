/* cold */
/* PVM between hosts: the first rank of each host starts the daemon of its host, and the kernel ends the daemon with it.
 *
 * Rank 0 has the master. PVM would start the other daemons through rsh. Instead rank 0 registers as PVM's "hoster" (see
 * pvm_reg_hoster(3)): the master gives it the command line of each, which goes to its host over the control star, and
 * what the daemon answers comes back the same way. So hockney's own way to a host is the only one. */
#include <errno.h>
#include <pvm3.h>
#include <pvmproto.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "family.h"
#include "pvm_daemon.h"

enum { TEXT_BYTES = 256, LIMIT_S = 20, STEP_NS = 5000000, STEPS = 2000 };

/* What a rank has to say about the daemon that it keeps, and what it hears. */
typedef struct note {
    int keeps;
    int tid;               /* PVM's number of the daemon's host; 0: it is not to be started now */
    char text[TEXT_BYTES]; /* the address of its host, then its command line, then its answer */
} note_t;

/* Rank 0 as the hoster. */
typedef struct hoster {
    pid_t asker;    /* the task that asks the master for the hosts */
    int from, wait; /* of the master's request: its sender, and PVM's number of its wait */
} hoster_t;

static hk_status_t refused(const char *what, int code)
{
    return hk_fail(HK_ERR_SYSTEM, 0, "pvm: %s: PVM error %d", what, code);
}

/* ---- asking the master for hosts --------------------------------------------------------------------------------- */

/* In a child, because it must be another task than the hoster: it asks when it reads a byte. The exit code is PVM's
 * error. */
static void ask_for_hosts(const note_t *notes, int size, int go)
{
    char byte = 0;
    int count = 0;
    char **hosts = calloc((size_t)size, sizeof *hosts);
    int *codes = calloc((size_t)size, sizeof *codes);
    (void)alarm(LIMIT_S);
    if (hosts == NULL || codes == NULL || read(go, &byte, 1) != 1) {
        _exit(HK_EXIT_FAILED);
    }
    for (int rank = 1; rank < size; rank++) {
        if (notes[rank].keeps) {
            hosts[count++] = (char *)(uintptr_t)notes[rank].text;
        }
    }
    (void)pvm_setopt(PvmAutoErr, 0);
    int code = pvm_addhosts(hosts, count, codes);
    for (int i = 0; i < count && code >= 0; i++) {
        code = codes[i] < 0 ? codes[i] : code;
    }
    (void)pvm_exit();
    _exit(code < 0 ? -code : 0);
}

static hk_status_t start_asker(hoster_t *hoster, const note_t *notes, int size, int *go_p)
{
    int go[2];
    const pid_t me = getpid();
    if (pipe(go) != 0) {
        return hk_fail(HK_ERR_SYSTEM, 0, "pvm: no pipe: %s", strerror(errno));
    }
    hoster->asker = fork();
    if (hoster->asker == 0) {
        hk_die_with_parent(me);
        (void)close(go[1]);
        ask_for_hosts(notes, size, go[0]);
    }
    (void)close(go[0]);
    *go_p = go[1];
    return hoster->asker < 0 ? hk_fail(HK_ERR_SYSTEM, 0, "pvm: no process: %s", strerror(errno)) : HK_OK;
}

static hk_status_t end_asker(hoster_t *hoster)
{
    int wait_status = 0;
    while (waitpid(hoster->asker, &wait_status, 0) < 0 && errno == EINTR) {
    }
    hoster->asker = -1;
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0
               ? HK_OK
               : refused("the daemons do not join", WIFEXITED(wait_status) ? -WEXITSTATUS(wait_status) : PvmSysErr);
}

/* ---- the hoster -------------------------------------------------------------------------------------------------- */

/* Unpack one host of the request into the note of the rank that has its address. `text` holds any string of it. */
static int take_command(note_t *notes, int size, char *text)
{
    int tid = 0;
    int code = pvm_upkint(&tid, 1, 1);
    note_t *note = NULL;
    for (int i = 0; i < 5 && code >= 0; i++) { /* options, host, command, command of Windows, name of the machine */
        code = pvm_upkstr(text);
        for (int rank = 1; i == 1 && code >= 0 && rank < size; rank++) {
            note = notes[rank].keeps && strcmp(notes[rank].text, text) == 0 ? &notes[rank] : note;
        }
        const char *options = strchr(text, ' '); /* -f: it stays the child of who starts it */
        if (i == 2 && code >= 0 && note != NULL && options != NULL &&
            snprintf(note->text, sizeof note->text, "%s -f", options) < (int)sizeof note->text) {
            note->tid = tid;
        }
    }
    return code >= 0 && (note == NULL || note->tid == 0) ? PvmBadParam : code;
}

/* Wait for the master's request, and unpack it. */
static hk_status_t take_commands(hoster_t *hoster, note_t *notes, int size)
{
    struct timeval limit = {.tv_sec = LIMIT_S};
    struct pvmminfo info;
    int count = 0;
    const int message = pvm_trecv(-1, SM_STHOST, &limit);
    int code = message == 0 ? PvmNoData : message;
    if (code > 0) {
        code = pvm_getminfo(message, &info);
    }
    if (code >= 0) {
        hoster->from = info.src;
        hoster->wait = info.wid;
        code = pvm_upkint(&count, 1, 1);
    }
    char *text = code >= 0 ? malloc((size_t)info.len + 1) : NULL;
    for (int i = 0; i < count && code >= 0; i++) {
        code = text == NULL ? PvmNoMem : take_command(notes, size, text);
    }
    free(text);
    return code < 0 ? refused("the master daemon does not say how to start the others", code) : HK_OK;
}

/* Rank 0: start the master, and get the command lines of the others. */
static hk_status_t begin(hoster_t *hoster, note_t *notes, int size, pid_t *daemon_p)
{
    int others = 0;
    int go = -1;
    char line[TEXT_BYTES];
    char options[TEXT_BYTES + 2];
    (void)snprintf(options, sizeof options, "%s%s", *notes[0].text == '\0' ? "" : "-n", notes[0].text);
    HK_TRY(hk_pvm_start_daemon(0, options, SIGKILL, line, sizeof line, daemon_p));
    for (int rank = 1; rank < size; rank++) {
        others += notes[rank].keeps;
    }
    if (others == 0) {
        return HK_OK;
    }
    HK_TRY(start_asker(hoster, notes, size, &go)); /* before this process is a task */
    (void)pvm_setopt(PvmAutoErr, 0);
    int code = pvm_mytid();
    if (code >= 0) {
        code = pvm_reg_hoster();
    }
    if (code >= 0) {
        code = pvm_setopt(PvmResvTids, 1); /* the request and its answer have reserved tags */
    }
    const bool is_asked = code >= 0 && write(go, "", 1) == 1;
    (void)close(go);
    return is_asked ? take_commands(hoster, notes, size) : refused("rank 0 cannot be the hoster", code);
}

/* Rank 0: give the answers of the other daemons to the master. */
static hk_status_t finish(hoster_t *hoster, note_t *notes, int size)
{
    int count = 0;
    if (hoster->asker <= 0) {
        return HK_OK;
    }
    for (int rank = 1; rank < size; rank++) {
        count += notes[rank].tid != 0;
    }
    const int message = pvm_initsend(PvmDataDefault);
    int code = message < 0 ? message : pvm_pkint(&count, 1, 1);
    for (int rank = 1; rank < size && code >= 0; rank++) {
        if (notes[rank].tid != 0) {
            code = pvm_pkint(&notes[rank].tid, 1, 1);
            code = code < 0 ? code : pvm_pkstr(notes[rank].text);
        }
    }
    struct pvmminfo info;
    if (code >= 0) {
        code = pvm_getminfo(message, &info);
    }
    if (code >= 0) {
        info.wid = hoster->wait;
        code = pvm_setminfo(message, &info);
    }
    if (code >= 0) {
        code = pvm_send(hoster->from, SM_STHOSTACK);
    }
    if (code < 0) {
        return refused("the master daemon gets no answer", code);
    }
    HK_TRY(end_asker(hoster));
    (void)pvm_setopt(PvmResvTids, 0);
    return HK_OK;
}

/* ---- on each host ------------------------------------------------------------------------------------------------ */

static hk_status_t start_slave(int rank, note_t *mine, pid_t *daemon_p)
{
    char options[TEXT_BYTES];
    memcpy(options, mine->text, sizeof options);
    return hk_pvm_start_daemon(rank, options, SIGKILL, mine->text, sizeof mine->text, daemon_p);
}

/* The master tells the other daemons of each other, but does not wait until all know it. */
static hk_status_t await_hosts(int rank, int count)
{
    int known = 0;
    (void)pvm_setopt(PvmAutoErr, 0);
    for (int i = 0; i < STEPS; i++) {
        const int code = pvm_config(&known, NULL, NULL);
        if (code < 0 || known == count) {
            return code < 0 ? hk_fail(HK_ERR_SYSTEM, rank, "pvm: no daemon answers here: PVM error %d", code) : HK_OK;
        }
        hk_real_sleep(NULL, STEP_NS);
    }
    return hk_fail(HK_ERR_SYSTEM, rank, "pvm: the daemon here knows of %d hosts, not of %d", known, count);
}

static hk_status_t join(const hk_job_t *job, hoster_t *hoster, note_t *notes, pid_t *daemon_p)
{
    hk_control_t *control = job->control;
    const char *keeper = getenv(HK_PVM_KEEPER);
    note_t mine = {.keeps = keeper != NULL && strtol(keeper, NULL, 10) == job->rank};
    hk_status_t status = HK_OK;
    if (mine.keeps && job->size > 1) {
        status = hk_control_address(control, job->interface, mine.text);
    }
    HK_TRY(hk_control_agree(control, status));
    HK_TRY(hk_control_gather(control, &mine, sizeof mine, notes));
    HK_TRY(hk_control_agree(control, job->rank == 0 ? begin(hoster, notes, job->size, daemon_p) : HK_OK));
    HK_TRY(hk_control_scatter(control, notes, sizeof mine, &mine));
    HK_TRY(hk_control_agree(control, mine.tid != 0 ? start_slave(job->rank, &mine, daemon_p) : HK_OK));
    HK_TRY(hk_control_gather(control, &mine, sizeof mine, notes));
    HK_TRY(hk_control_agree(control, job->rank == 0 ? finish(hoster, notes, job->size) : HK_OK));
    int count = 0;
    for (int rank = 0; job->rank == 0 && rank < job->size; rank++) {
        count += notes[rank].keeps;
    }
    HK_TRY(hk_control_broadcast(control, &count, sizeof count));
    return hk_control_agree(control, await_hosts(job->rank, count));
}

hk_status_t hk_pvm_join_hosts(const hk_job_t *job, pid_t *daemon_p)
{
    hoster_t hoster = {.asker = -1};
    note_t *notes = calloc((size_t)job->size, sizeof *notes); /* of all ranks, at rank 0 */
    hk_status_t status = notes == NULL ? hk_fail(HK_ERR_MEMORY, job->rank, "pvm: no memory") : HK_OK;
    status = hk_control_agree(job->control, status);
    if (status == HK_OK && notes != NULL) {
        status = join(job, &hoster, notes, daemon_p);
    }
    if (hoster.asker > 0) {
        (void)kill(hoster.asker, SIGKILL);
        (void)waitpid(hoster.asker, NULL, 0);
    }
    free(notes);
    return status;
}
