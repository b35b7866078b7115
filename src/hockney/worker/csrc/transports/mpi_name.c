/* The name of an MPI library and the component that transfers the bytes: "MPICH 4.0.2 (ch4:ucx)", "Open MPI 4.1.4
 * (ob1:vader:cma tcp)", with ", CMA refused" behind it. Built once per job. A library's own description may have two
 * thousand characters. */
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mpi_hooks.h"

/* Copies the first version number in text ("v4.1.4, package: …" gives "4.1.4"); empty if there is none. */
static void copy_version(const char *text, char *version, size_t room)
{
    const char *at = text + strcspn(text, "0123456789\n");
    snprintf(version, room, "%.*s", (int)strcspn(at, " ,\t\r\n"), at);
}

/* Copies MPICH's device in brackets, " (ch4:ucx)"; empty if text names none. */
static void copy_device(const char *text, char *device, size_t room)
{
    static const char mark[] = "MPICH Device:";
    const char *at = strstr(text, mark);
    device[0] = '\0';
    if (at != NULL) {
        at += strlen(mark);
        at += strspn(at, " \t");
        snprintf(device, room, " (%.*s)", (int)strcspn(at, "\r\n"), at);
    }
}

/* True if the kernel refuses what libraries copy long messages with in one step, even within this process: a filter of
 * system calls (a container's), or a kernel without it. Libraries notice it only when they copy. */
static bool is_cma_refused(void)
{
#ifdef __linux__
    char from = 0, to = 0;
    const struct iovec there = {.iov_base = &from, .iov_len = 1}, here = {.iov_base = &to, .iov_len = 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && (errno == EPERM || errno == ENOSYS);
#else
    return false;
#endif
}

/* ---- Open MPI: the components that are still loaded ------------------------------------------------------------- */

#if defined(OPEN_MPI) && MPI_VERSION >= 3

enum { NAME_MAX_LEN = 16, BTLS_MAX = 8 };

typedef struct {
    char name[NAME_MAX_LEN];
    bool is_of_host; /* shared memory: it has priority between ranks of one host */
} btl_t;

typedef struct {
    char pml[NAME_MAX_LEN]; /* sends messages: ob1 over the btls, cm over the mtl, ucx */
    char mtl[NAME_MAX_LEN];
    char copy[NAME_MAX_LEN]; /* single copy of a long message in shared memory: cma, knem, xpmem; empty: none */
    btl_t btls[BTLS_MAX];
    size_t btl_count;
} path_t;

/* Copies the component of a variable: for "btl_vader_exclusivity" and the framework "btl_", "vader". Empty if the
 * variable belongs to another framework. */
static void copy_component(const char *variable, const char *framework, char *name)
{
    const size_t len = strlen(framework);
    name[0] = '\0';
    if (strncmp(variable, framework, len) == 0 && strchr(variable + len, '_') != NULL) {
        const char *at = variable + len;
        const int end = (int)strcspn(at, "_");
        snprintf(name, NAME_MAX_LEN, "%.*s", end, at);
    }
    if (strcmp(name, "base") == 0) {
        name[0] = '\0';
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text);
    const size_t end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Copies the word for a variable's value, such as "cma"; empty if it has none or is "none". */
static void copy_word(int variable, MPI_T_enum words, char *word)
{
    MPI_T_cvar_handle handle;
    int count = 0;
    int value = 0;
    word[0] = '\0';
    if (words == MPI_T_ENUM_NULL || MPI_T_cvar_handle_alloc(variable, NULL, &handle, &count) != MPI_SUCCESS) {
        return;
    }
    if (count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) {
        int len = NAME_MAX_LEN;
        int words_count = 0;
        MPI_T_enum_get_info(words, &words_count, NULL, NULL);
        for (int i = 0, own = 0; i < words_count; i++, len = NAME_MAX_LEN) {
            if (MPI_T_enum_get_item(words, i, &own, word, &len) == MPI_SUCCESS && own == value) {
                break;
            }
            word[0] = '\0';
        }
    }
    MPI_T_cvar_handle_free(&handle);
    if (strcmp(word, "none") == 0) {
        word[0] = '\0';
    }
}

static void add_btl(path_t *path, const char *name)
{
    const bool is_of_host = strcmp(name, "vader") == 0 || strcmp(name, "sm") == 0;
    for (size_t i = 0; i < path->btl_count; i++) {
        /* Open MPI 5 also gives variables of its sm the name vader. */
        if (strcmp(path->btls[i].name, name) == 0 || (is_of_host && path->btls[i].is_of_host)) {
            return;
        }
    }
    if (path->btl_count < BTLS_MAX && strcmp(name, "self") != 0) {
        btl_t *btl = &path->btls[path->btl_count++];
        snprintf(btl->name, sizeof btl->name, "%s", name);
        btl->is_of_host = is_of_host;
    }
}

/* Open MPI removes the variables of closed components, so the existing ones show which components it uses. */
static void learn(path_t *path, const char *variable, int index, MPI_Datatype type, MPI_T_enum words)
{
    char name[NAME_MAX_LEN];
    copy_component(variable, "pml_", name);
    if (name[0] != '\0') {
        memcpy(path->pml, name, sizeof name);
    }
    copy_component(variable, "mtl_", name);
    if (name[0] != '\0') {
        memcpy(path->mtl, name, sizeof name);
    }
    copy_component(variable, "smsc_", name); /* Open MPI 5 */
    if (name[0] != '\0') {
        memcpy(path->copy, name, sizeof name);
    }
    copy_component(variable, "btl_", name);
    if (name[0] != '\0' && ends_with(variable, "_exclusivity")) {
        add_btl(path, name);
    } else if (name[0] != '\0' && ends_with(variable, "_single_copy_mechanism") && type == MPI_INT) {
        copy_word(index, words, path->copy);
    }
}

static void append_btls(const path_t *path, bool is_of_host, char *list, size_t room)
{
    for (size_t i = 0; i < path->btl_count; i++) {
        if (path->btls[i].is_of_host == is_of_host) {
            const bool copies = is_of_host && path->copy[0] != '\0';
            const size_t len = strlen(list);
            snprintf(list + len, room - len, "%s%s%s%s", len > 0 ? " " : "", path->btls[i].name, copies ? ":" : "",
                     copies ? path->copy : "");
        }
    }
}

static void copy_path(char *text, size_t room)
{
    path_t path = {.btl_count = 0};
    char under[64] = "";
    int level = MPI_THREAD_SINGLE, provided = 0;
    int variables = 0;
    text[0] = '\0';
    MPI_Query_thread(&level); /* Open MPI 4.1 takes MPI_T's level for MPI's, too, and would drop its locks */
    if (MPI_T_init_thread(level, &provided) != MPI_SUCCESS) {
        return;
    }
    MPI_T_cvar_get_num(&variables);
    for (int i = 0; i < variables; i++) {
        char name[128];
        int len = (int)sizeof name;
        int verbosity = 0;
        int bind = 0;
        int scope = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum words = MPI_T_ENUM_NULL;
        if (MPI_T_cvar_get_info(i, name, &len, &verbosity, &type, &words, NULL, NULL, &bind, &scope) == MPI_SUCCESS) {
            learn(&path, name, i, type, words);
        }
    }
    MPI_T_finalize();
    if (strcmp(path.copy, "cma") == 0 && is_cma_refused()) {
        path.copy[0] = '\0';
    }
    if (strcmp(path.pml, "ob1") == 0) {
        append_btls(&path, true, under, sizeof under);
        append_btls(&path, false, under, sizeof under);
    } else if (strcmp(path.pml, "cm") == 0) {
        snprintf(under, sizeof under, "%s", path.mtl);
    }
    if (path.pml[0] != '\0') {
        snprintf(text, room, " (%s%s%s)", path.pml, under[0] != '\0' ? ":" : "", under);
    }
}

#else

static void copy_path(char *text, size_t room)
{
    (void)room;
    text[0] = '\0';
}

#endif

/* ---- the name --------------------------------------------------------------------------------------------------- */

void hk_mpi_name(char *name_p, size_t room)
{
    static const struct {
        const char *mark, *name;
    } known[] = {
        {"Open MPI v", "Open MPI"},     {"Intel(R) MPI Library", "Intel MPI"}, {"MVAPICH2 Version", "MVAPICH2"},
        {"MVAPICH Version", "MVAPICH"}, {"CRAY MPICH version", "Cray MPICH"},  {"MPICH Version", "MPICH"},
    };
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "unknown MPI";
    char version[32];
    char by[96];
    int len = 0;
    MPI_Get_library_version(library, &len);
    copy_path(by, sizeof by);
    if (by[0] == '\0') {
        copy_device(library, by, sizeof by);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *at = strstr(library, known[i].mark);
        if (at != NULL) {
            copy_version(at + strlen(known[i].mark), version, sizeof version);
            snprintf(name_p, room, "%s %s%s%s", known[i].name, version, by, is_cma_refused() ? ", CMA refused" : "");
            return;
        }
    }
    snprintf(name_p, room, "%.*s", (int)strcspn(library, "\r\n"), library);
}
