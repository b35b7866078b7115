#include "switch.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../transport.h"

#if defined(__SANITIZE_ADDRESS__)
#define HK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HK_ASAN 1
#endif
#endif

#ifdef HK_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum { COLOURS = 32, LINE_BYTES = 64 };

enum {
    STACK_BYTES = 64 * 1024,
    GUARDED_MAX = 16 * 1024, /* each guard needs two more mappings, and Linux allows 65530 */
};

hk_status_t hk_stacks_open(size_t count, hk_stacks_t *stacks_p)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    hk_stacks_t stacks = {.count = count, .bytes = STACK_BYTES};
    void *base = mmap(NULL, count * stacks.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED) {
        return hk_fail(HK_ERR_MEMORY, 0, "no memory for the stacks of %zu ranks", count);
    }
    stacks.base = base;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(base, count * stacks.bytes, MADV_NOHUGEPAGE); /* otherwise the first byte of a stack costs 2 MiB */
#endif
    for (size_t i = 0; i < count && count <= GUARDED_MAX; i++) {
        (void)mprotect(stacks.base + i * stacks.bytes, page_bytes, PROT_NONE);
    }
    *stacks_p = stacks;
    return HK_OK;
}

void hk_stacks_close(hk_stacks_t *stacks)
{
    if (stacks->base != NULL) {
        (void)munmap(stacks->base, stacks->count * stacks->bytes);
    }
    *stacks = (hk_stacks_t){0};
}

/* The end of a stack, from where it grows down. Staggered: stacks with equal offsets in their pages would share few
 * cache sets. */
static unsigned char *end_of_stack(const hk_stacks_t *stacks, size_t i)
{
    return stacks->base + (i + 1) * stacks->bytes - i % COLOURS * LINE_BYTES;
}

/* ---- in assembly ------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__linux__) && !defined(HK_ASAN)

/* Saves the callee-saved registers on top of the current stack. This touches one cache line per switch, where setjmp
 * touches four. A new coroutine finds its body in rbx and the argument in r12. */
void hk_switch_stacks(hk_place_t **here_p, hk_place_t *to);
void hk_switch_begin(void);

__asm__(".text\n"
        ".type hk_switch_stacks, @function\n"
        "hk_switch_stacks:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size hk_switch_stacks, . - hk_switch_stacks\n"
        ".type hk_switch_begin, @function\n"
        "hk_switch_begin:\n"
        "    mov %r12, %rdi\n"
        "    call *%rbx\n"
        "    ud2\n"
        ".size hk_switch_begin, . - hk_switch_begin\n");

void hk_switch(hk_place_t **here_p, hk_place_t *to)
{
    hk_switch_stacks(here_p, to);
}

void hk_switch_new(hk_place_t **here_p, const hk_stacks_t *stacks, size_t i, void (*body)(void *), void *arg)
{
    enum { R15, R14, R13, R12, RBX, RBP, RETURN, TOP, WORDS = TOP + 2 }; /* the top is aligned to 16 bytes */
    uintptr_t *word = (uintptr_t *)(void *)end_of_stack(stacks, i) - WORDS;
    word[R12] = (uintptr_t)arg;
    word[RBX] = (uintptr_t)body;
    word[RETURN] = (uintptr_t)hk_switch_begin;
    hk_switch_stacks(here_p, (hk_place_t *)(void *)word);
}

#else

/* ---- with the C library ------------------------------------------------------------------------------------------ */

struct hk_place {
    jmp_buf at;
#ifdef HK_ASAN
    const void *bottom;
    size_t bytes;
    void *fake;
#endif
};

#ifdef HK_ASAN
static _Thread_local hk_place_t *left; /* the coroutine last left; its stack is only known after the switch */

static void begin_asan(hk_place_t *here, const void *bottom, size_t bytes)
{
    left = here;
    __sanitizer_start_switch_fiber(&here->fake, bottom, bytes);
}

static void end_asan(const hk_place_t *here)
{
    __sanitizer_finish_switch_fiber(here != NULL ? here->fake : NULL, &left->bottom, &left->bytes);
}
#endif

/* The arguments of a new coroutine: makecontext passes only ints. */
typedef struct start {
    void (*body)(void *);
    void *arg;
} start_t;

static void begin(unsigned high, unsigned low)
{
    const start_t *handed = (const start_t *)((uintptr_t)high << 16 << 16 | (uintptr_t)low);
    const start_t start = *handed;
#ifdef HK_ASAN
    end_asan(NULL);
#endif
    start.body(start.arg);
    abort();
}

__attribute__((noinline)) void hk_switch(hk_place_t **here_p, hk_place_t *to)
{
    hk_place_t here;
    *here_p = &here;
#ifdef HK_ASAN
    begin_asan(&here, to->bottom, to->bytes);
#endif
    if (_setjmp(here.at) == 0) {
        _longjmp(to->at, 1);
    }
#ifdef HK_ASAN
    end_asan(&here);
#endif
}

__attribute__((noinline)) void hk_switch_new(hk_place_t **here_p, const hk_stacks_t *stacks, size_t i,
                                             void (*body)(void *), void *arg)
{
    hk_place_t here;
    const start_t start = {.body = body, .arg = arg};
    const uintptr_t handed = (uintptr_t)&start;
    ucontext_t context;
    *here_p = &here;
    if (getcontext(&context) != 0) {
        abort();
    }
    context.uc_stack.ss_sp = stacks->base + i * stacks->bytes;
    context.uc_stack.ss_size = (size_t)(end_of_stack(stacks, i) - (stacks->base + i * stacks->bytes));
    context.uc_link = NULL;
    makecontext(&context, (void (*)(void))begin, 2, (unsigned)(handed >> 16 >> 16), (unsigned)handed);
#ifdef HK_ASAN
    begin_asan(&here, context.uc_stack.ss_sp, context.uc_stack.ss_size);
#endif
    if (_setjmp(here.at) == 0) {
        (void)setcontext(&context);
    }
#ifdef HK_ASAN
    end_asan(&here);
#endif
}

#endif
