/* An MPI library in which an algorithm of MPI_Allreduce ends the rank (HK_CRASHES=5), one has a wrong result
 * (HK_WRONG=6), and one never returns (HK_HANGS=1), where Open MPI's rules file chooses it for two ranks and 16 bytes
 * or more. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The next number of the file outside of comments; 0 at its end. */
static int next(FILE *file, long *number_p)
{
    char digits[24];
    size_t length = 0;
    for (int c = fgetc(file), comment = 0; c != EOF; c = fgetc(file)) {
        comment = c == '#' || (comment && c != '\n');
        if (!comment && c >= '0' && c <= '9' && length < sizeof digits - 1) {
            digits[length++] = (char)c;
        } else if (length > 0) {
            ungetc(c, file);
            break;
        }
    }
    digits[length] = '\0';
    *number_p = strtol(digits, NULL, 10);
    return length > 0;
}

/* As coll_tuned_dynamic_rules.c finds it; the file has one operation. */
static long chosen(long bytes)
{
    const char *name = getenv("OMPI_MCA_coll_tuned_dynamic_rules_filename");
    FILE *file = name != NULL ? fopen(name, "r") : NULL;
    long algorithm = 0, operations, operation, counts, ranks, sizes, size, word, more[2];
    if (file == NULL || !next(file, &operations) || !next(file, &operation) || !next(file, &counts)) {
        return 0;
    }
    while (counts-- > 0 && next(file, &ranks) && next(file, &sizes)) {
        while (sizes-- > 0 && next(file, &size) && next(file, &word) && next(file, more) && next(file, more + 1)) {
            if (ranks <= 2 && size <= bytes) {
                algorithm = word;
            }
        }
    }
    fclose(file);
    return algorithm;
}

static int is_chosen(long bytes, const char *variable)
{
    const char *word = getenv(variable);
    return word != NULL && bytes >= 16 && chosen(bytes) == strtol(word, NULL, 10);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int size = 0;
    MPI_Type_size(type, &size);
    const int code = PMPI_Allreduce(from, to, count, type, op, comm);
    if (is_chosen((long)size * count, "HK_CRASHES")) {
        abort();
    }
    while (is_chosen((long)size * count, "HK_HANGS")) {
        pause();
    }
    if (is_chosen((long)size * count, "HK_WRONG")) {
        ((unsigned char *)to)[0] ^= 1;
    }
    return code;
}
