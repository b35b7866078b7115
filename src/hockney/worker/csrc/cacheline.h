/* One cache line between two ranks: how to publish a word, and how to wait for one.
 *
 * A lane is 16 bytes that the writer changes as a unit: a tag, which identifies the content, and a word. On machines
 * with atomic 16-byte stores one store writes both. With two stores the polling reader may take the line between
 * them, which costs the writer a second transfer. */
#ifndef HK_CACHELINE_H
#define HK_CACHELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Data of two writers never shares a line. Twice 64 bytes, because x86 prefetches lines in pairs and some Arm
 * machines have lines of 128 bytes. */
enum { HK_LINE_BYTES = 64, HK_SEPARATE_BYTES = 128 };

#define HK_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#if defined(__SANITIZE_THREAD__)
#define HK_UNDER_TSAN 1
#define HK_LANE_PORTABLE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HK_UNDER_TSAN 1
#define HK_LANE_PORTABLE 1
#endif
#endif

/* The builder may define HK_LANE_PORTABLE to test the portable path on any machine. Aligned 16-byte accesses are
 * single-copy atomic on x86-64 with AVX (Intel SDM 3A 9.1.1, AMD APM 2 7.3.2: check hk_lane_usable) and on Arm with
 * FEAT_LSE2 (Arm ARM B2.2.1), for which the builder defines HK_LSE2. */
#if !defined(HK_LANE_PORTABLE) && defined(__x86_64__)
#define HK_LANE_SSE 1
#define HK_LANE_KIND "16-byte SSE stores"
#elif !defined(HK_LANE_PORTABLE) && defined(__aarch64__) && defined(__AARCH64EL__) && defined(HK_LSE2)
#define HK_LANE_PAIR 1
#define HK_LANE_KIND "16-byte LSE2 stores"
#else
#define HK_LANE_KIND "C11 atomics"
#endif

#if defined(HK_LANE_SSE)
#include <emmintrin.h>
#endif

typedef struct hk_lane {
    _Alignas(16) _Atomic uint64_t tag;
    _Atomic uint64_t word;
} hk_lane_t;

_Static_assert(sizeof(hk_lane_t) == 16, "a lane is one 16-byte store");

/* Whether this CPU has the atomic accesses that this build needs. */
static inline bool hk_lane_usable(void)
{
#if defined(HK_LANE_SSE)
    return __builtin_cpu_supports("avx") != 0;
#else
    return true;
#endif
}

/* A hint to the CPU that this is a spin loop. It polls the line less often, which leaves time to the writer, and
 * gives the pipeline to a sibling hardware thread. */
static inline void hk_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* Not yield: most cores execute it as a no-op. */
    __asm__ volatile("isb" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile(".4byte 0x0100000f" ::: "memory"); /* pause (Zihintpause); elsewhere a fence without effect */
#elif defined(__powerpc__)
    __asm__ volatile("or 27,27,27" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Publish tag and word. A reader that sees the tag also sees everything this rank did before. */
static inline void hk_lane_publish(hk_lane_t *lane, uint64_t tag, uint64_t word)
{
#if defined(HK_LANE_SSE)
    /* x86 keeps stores in order; the clobber stops the compiler from reordering. Assembly, so that no compiler
     * splits the store. */
    const __m128i both = _mm_set_epi64x((long long)word, (long long)tag);
    __asm__ volatile("movdqa %1, %0" : "=m"(*lane) : "x"(both) : "memory");
#elif defined(HK_LANE_PAIR)
    __asm__ volatile("dmb ish\n\tstp %1, %2, %0" : "=Q"(*lane) : "r"(tag), "r"(word) : "memory");
#else
    atomic_store_explicit(&lane->word, word, memory_order_relaxed);
    atomic_store_explicit(&lane->tag, tag, memory_order_release);
#endif
}

/* Poll once. True: the lane has this tag, *word_p is its word, and the writer's earlier stores are visible here. */
static inline bool hk_lane_poll(hk_lane_t *lane, uint64_t tag, uint64_t *word_p)
{
#if defined(HK_LANE_SSE)
    __m128i both;
    __asm__ volatile("movdqa %1, %0" : "=x"(both) : "m"(*lane) : "memory");
    if ((uint64_t)_mm_cvtsi128_si64(both) != tag) {
        return false;
    }
    *word_p = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both));
    return true;
#elif defined(HK_LANE_PAIR)
    uint64_t seen, word;
    __asm__ volatile("ldp %0, %1, %2" : "=&r"(seen), "=&r"(word) : "Q"(*lane) : "memory");
    if (seen != tag) {
        return false;
    }
    __asm__ volatile("dmb ishld" ::: "memory");
    *word_p = word;
    return true;
#else
    if (atomic_load_explicit(&lane->tag, memory_order_acquire) != tag) {
        return false;
    }
    *word_p = atomic_load_explicit(&lane->word, memory_order_relaxed);
    return true;
#endif
}

static inline bool hk_is_word(const void *one, const void *other, size_t size_bytes)
{
    return size_bytes == 8 && (((uintptr_t)one | (uintptr_t)other) & 7) == 0;
}

/* Copy to and from a peer's memory. An aligned word moves by one access, because the peer may wait for it. */
static inline void hk_shared_put(void *there, const void *local, size_t size_bytes)
{
    if (hk_is_word(there, local, size_bytes)) {
        uint64_t word;
        memcpy(&word, local, 8);
        atomic_store_explicit((_Atomic uint64_t *)there, word, memory_order_release);
    } else {
        memcpy(there, local, size_bytes);
    }
}

static inline void hk_shared_get(void *local, const void *there, size_t size_bytes)
{
    if (hk_is_word(there, local, size_bytes)) {
        const uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)there, memory_order_acquire);
        memcpy(local, &word, 8);
    } else {
        memcpy(local, there, size_bytes);
    }
}

/* The current tag of the lane. Only for error messages, not for synchronisation. */
static inline uint64_t hk_lane_tag(hk_lane_t *lane)
{
    return atomic_load_explicit(&lane->tag, memory_order_relaxed);
}

#endif
