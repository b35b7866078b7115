/* Data of a message that lies in memory with gaps: shared by patterns and transports.
 *
 * The message is `blocks` blocks of block_bytes. Block i lies in the memory of a buffer:
 *   contiguous  at i * block_bytes: without gaps, but named by a type
 *   vector      at i * stride_bytes
 *   indexed     at at[i]: in order, at distances that differ
 *   struct      as a record of two fields, at i * stride_bytes: the first half of the block at its start, the second
 *               half at the end of the stride
 * All these numbers are multiples of HK_LAYOUT_WORD. */
#ifndef HK_LAYOUT_H
#define HK_LAYOUT_H

#include <stddef.h>

enum { HK_LAYOUT_WORD = 8 };

typedef enum hk_layout_kind { HK_CONTIGUOUS, HK_VECTOR, HK_INDEXED, HK_STRUCT } hk_layout_kind_t;

typedef struct hk_layout {
    hk_layout_kind_t kind;
    size_t blocks, block_bytes, stride_bytes;
    const size_t *at; /* [blocks] of an indexed one */
    void *own;        /* the transport's */
} hk_layout_t;

#endif
