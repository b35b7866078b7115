/* `--variables`: the control variables of an MPI library (MPI_T), with the values that this environment gives them.
 * MPI is not initialised, so no job is started. Only the variables asked for are read: Open MPI 4.1 crashes when some
 * others are. */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../answer.h"
#include "mpi_hooks.h"

enum { TEXT_MAX = 4096, WORD_MAX = 256 };

static bool is_asked(const char *name, char **prefixes)
{
    bool asked = *prefixes == NULL;
    for (; *prefixes != NULL && !asked; prefixes++) {
        asked = strncmp(name, *prefixes, strlen(*prefixes)) == 0;
    }
    return asked;
}

static void put_number(hk_answer_t *answer, MPI_Datatype type, const void *value)
{
    if (type == MPI_INT) {
        hk_answer_signed(answer, "value", *(const int *)value);
    } else if (type == MPI_UNSIGNED) {
        hk_answer_unsigned(answer, "value", *(const unsigned *)value);
    } else if (type == MPI_UNSIGNED_LONG) {
        hk_answer_unsigned(answer, "value", *(const unsigned long *)value);
    } else if (type == MPI_UNSIGNED_LONG_LONG || type == MPI_COUNT) {
        hk_answer_unsigned(answer, "value", *(const unsigned long long *)value);
    } else {
        hk_answer_null(answer, "value");
    }
}

/* null: a value of another kind, or one that exists only for an object. */
static void put_value(hk_answer_t *answer, int index, MPI_Datatype type, int bind)
{
    union {
        unsigned long long aligned;
        char text[TEXT_MAX + 1];
    } value = {.text = ""};
    MPI_T_cvar_handle handle;
    int count = 0;
    const bool is_text = type == MPI_CHAR;
    if (bind != MPI_T_BIND_NO_OBJECT || MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) {
        hk_answer_null(answer, "value");
        return;
    }
    const bool fits = is_text ? count <= TEXT_MAX : count == 1;
    if (!fits || MPI_T_cvar_read(handle, value.text) != MPI_SUCCESS) {
        hk_answer_null(answer, "value");
    } else if (is_text) {
        hk_answer_string(answer, "value", value.text);
    } else {
        put_number(answer, type, value.text);
    }
    MPI_T_cvar_handle_free(&handle);
}

/* The words of an enumeration, with their numbers. */
static void put_words(hk_answer_t *answer, MPI_T_enum words)
{
    int count = 0;
    hk_answer_open(answer, "words", '{');
    if (words != MPI_T_ENUM_NULL && MPI_T_enum_get_info(words, &count, NULL, NULL) == MPI_SUCCESS) {
        for (int i = 0; i < count; i++) {
            char word[WORD_MAX] = "";
            int len = WORD_MAX, own = 0;
            if (MPI_T_enum_get_item(words, i, &own, word, &len) == MPI_SUCCESS) {
                hk_answer_signed(answer, word, own);
            }
        }
    }
    hk_answer_close(answer, '}');
}

static void put_variable(hk_answer_t *answer, int index, char **prefixes)
{
    char name[WORD_MAX] = "", about[TEXT_MAX] = "";
    int name_len = WORD_MAX, about_len = TEXT_MAX, verbosity = 0, bind = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum words = MPI_T_ENUM_NULL;
    const int code =
        MPI_T_cvar_get_info(index, name, &name_len, &verbosity, &type, &words, about, &about_len, &bind, &scope);
    if (code != MPI_SUCCESS || !is_asked(name, prefixes)) { /* a closed component's variable has no information */
        return;
    }
    hk_answer_open(answer, NULL, '{');
    hk_answer_string(answer, "name", name);
    hk_answer_bool(answer, "constant", scope == MPI_T_SCOPE_CONSTANT);
    put_value(answer, index, type, bind);
    put_words(answer, words);
    hk_answer_string(answer, "about", about);
    hk_answer_close(answer, '}');
}

hk_status_t hk_mpi_variables(char **prefixes, int fd)
{
    int provided = 0, count = 0;
    const int code = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (code != MPI_SUCCESS) {
        hk_log(0, "MPI_T_init_thread failed with code %d", code);
        return HK_ERR_SYSTEM;
    }
    hk_answer_t answer;
    hk_answer_begin(&answer, "variables", 0);
    hk_answer_open(&answer, "variables", '[');
    MPI_T_cvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        put_variable(&answer, i, prefixes);
    }
    hk_answer_close(&answer, ']');
    const hk_status_t status = hk_answer_send(&answer, fd);
    MPI_T_finalize();
    return status;
}
