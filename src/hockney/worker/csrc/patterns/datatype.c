/* Datatype: a ping-pong of data that lies in memory with gaps (layout.h). The time is half a round trip on the source.
 *
 * The option `pack`: "library" sends and receives by the library's own types, made before the samples; "hand" copies
 * the data into a buffer, sends that, receives into another one, and copies the data out of it; "none" sends as many
 * bytes without gaps. "auto" is the library's where it has types, else by hand. The first over the second is the worth
 * of the library's types, over the third their cost. */
#include <stdio.h>
#include <string.h>

#include "../layout.h"
#include "../mix.h"
#include "roundtrip.h"

enum { DATATYPE_LAYOUT = HK_ROLE_TARGET + 1, DATATYPE_PACK, DATATYPE_BLOCK, DATATYPE_STRIDE };
enum { DATATYPE_PACK_AUTO, DATATYPE_PACK_LIBRARY, DATATYPE_PACK_HAND, DATATYPE_PACK_NONE };
enum { DATATYPE_ALIGNMENT = 64 };

typedef struct datatype_state {
    hk_layout_t layout;
    size_t packed_at; /* in `out` and `in` */
    bool is_made;
    size_t at[]; /* [blocks] */
} datatype_state_t;

static int64_t datatype_pack(const hk_run_t *run)
{
    const int64_t pack = run->option[DATATYPE_PACK];
    const bool has_types = (run->ctx->tp->caps & HK_CAP_LAYOUTS) != 0;
    return pack != DATATYPE_PACK_AUTO ? pack : has_types ? DATATYPE_PACK_LIBRARY : DATATYPE_PACK_HAND;
}

/* Without the places of its blocks. */
static hk_layout_t datatype_layout(const hk_run_t *run)
{
    const size_t block_bytes = (size_t)run->option[DATATYPE_BLOCK], stride_bytes = (size_t)run->option[DATATYPE_STRIDE];
    const hk_layout_kind_t kind = (hk_layout_kind_t)run->option[DATATYPE_LAYOUT];
    return (hk_layout_t){.kind = kind,
                         .blocks = run->bytes / block_bytes,
                         .block_bytes = block_bytes,
                         .stride_bytes = kind == HK_CONTIGUOUS ? block_bytes : stride_bytes};
}

static size_t datatype_extent(const hk_layout_t *layout)
{
    return (layout->blocks * layout->stride_bytes + DATATYPE_ALIGNMENT - 1) / DATATYPE_ALIGNMENT * DATATYPE_ALIGNMENT;
}

static size_t datatype_grain(const hk_run_t *run)
{
    return (size_t)run->option[DATATYPE_BLOCK];
}

static bool datatype_fits(const hk_run_t *run, char *why, size_t len)
{
    const int64_t block = run->option[DATATYPE_BLOCK], stride = run->option[DATATYPE_STRIDE];
    const hk_layout_t layout = datatype_layout(run);
    if (datatype_pack(run) == DATATYPE_PACK_LIBRARY && (run->ctx->tp->caps & HK_CAP_LAYOUTS) == 0) {
        snprintf(why, len,
                 "pack=library needs messages of data with gaps, which %s does not offer: use pack=hand or none",
                 run->ctx->tp->name);
        return false;
    }
    if (block % HK_LAYOUT_WORD != 0 || stride % HK_LAYOUT_WORD != 0 || stride < block) {
        snprintf(why, len,
                 "block=%lld and stride=%lld: both are multiples of 8, and a stride is no smaller than a block",
                 (long long)block, (long long)stride);
        return false;
    }
    snprintf(why, len,
             "the places of %zu blocks, one each %zu B, do not fit 32 bits: take a smaller stride=", layout.blocks,
             layout.stride_bytes);
    return layout.blocks * layout.stride_bytes / HK_LAYOUT_WORD <= INT32_MAX && hk_roles_fit(run, why, len);
}

static hk_plan_t datatype_plan(const hk_run_t *run)
{
    const hk_layout_t layout = datatype_layout(run);
    static const char *const ways[] = {NULL, "library", "hand", "none"};
    const size_t room = datatype_extent(&layout) + (datatype_pack(run) == DATATYPE_PACK_HAND ? run->bytes : 0);
    return (hk_plan_t){.out_bytes = room,
                       .in_bytes = room,
                       .state_bytes = sizeof(datatype_state_t) + layout.blocks * sizeof(size_t),
                       HK_MOVES(run, 2),
                       .divisor = 2,
                       .algorithm = ways[datatype_pack(run)],
                       .root = hk_source(run->option)};
}

/* Where block i lies. Those of an indexed layout are anywhere in their stride. */
static size_t datatype_place(const hk_layout_t *layout, size_t i)
{
    const size_t free_words = (layout->stride_bytes - layout->block_bytes) / HK_LAYOUT_WORD;
    const uint64_t bits = hk_mix((i + 1) * HK_MIX_STEP);
    const size_t shift = layout->kind == HK_INDEXED ? bits % (free_words + 1) * HK_LAYOUT_WORD : 0;
    return i * layout->stride_bytes + shift;
}

static hk_status_t datatype_prepare(hk_run_t *run)
{
    datatype_state_t *state = run->state;
    hk_layout_t *layout = &state->layout;
    *layout = datatype_layout(run);
    state->packed_at = datatype_extent(layout);
    for (size_t i = 0; i < layout->blocks; i++) {
        state->at[i] = datatype_place(layout, i);
    }
    layout->at = state->at;
    if (datatype_pack(run) == DATATYPE_PACK_LIBRARY) {
        HK_TRY(run->ctx->tp->make_layout(run->ctx, layout));
        state->is_made = true;
    }
    return HK_OK;
}

/* ---- pack=hand --------------------------------------------------------------------------------------------------- */

/* Copies all blocks, from their places or (`unpack`) to them. `size`, `indexed` and `unpack` are constants in most
 * calls, so that a copy of a word is one, and evenly spaced blocks need no table of places. */
static inline void datatype_copy_blocks(const datatype_state_t *state, unsigned char *data, unsigned char *packed,
                                        const size_t size, const bool indexed, const bool unpack)
{
    const size_t blocks = state->layout.blocks, stride = state->layout.stride_bytes;
    for (size_t i = 0; i < blocks; i++) {
        unsigned char *block = data + (indexed ? state->at[i] : i * stride), *there = packed + i * size;
        memcpy(unpack ? block : there, unpack ? there : block, size);
    }
}

static inline void datatype_copy_records(const datatype_state_t *state, unsigned char *data, unsigned char *packed,
                                         const size_t half, const bool unpack)
{
    const size_t blocks = state->layout.blocks, stride = state->layout.stride_bytes;
    for (size_t i = 0; i < blocks; i++) {
        unsigned char *first = data + i * stride, *second = first + stride - half, *record = packed + 2 * i * half;
        memcpy(unpack ? first : record, unpack ? record : first, half);
        memcpy(unpack ? second : record + half, unpack ? record + half : second, half);
    }
}

static inline void datatype_copy(const datatype_state_t *state, unsigned char *data, unsigned char *packed,
                                 const bool unpack)
{
    const size_t block = state->layout.block_bytes;
    const bool is_word = block == HK_LAYOUT_WORD;
    switch (state->layout.kind) {
    case HK_CONTIGUOUS:
        memcpy(unpack ? data : packed, unpack ? packed : data, state->layout.blocks * block);
        break;
    case HK_VECTOR:
        if (is_word) {
            datatype_copy_blocks(state, data, packed, HK_LAYOUT_WORD, false, unpack);
        } else {
            datatype_copy_blocks(state, data, packed, block, false, unpack);
        }
        break;
    case HK_INDEXED:
        if (is_word) {
            datatype_copy_blocks(state, data, packed, HK_LAYOUT_WORD, true, unpack);
        } else {
            datatype_copy_blocks(state, data, packed, block, true, unpack);
        }
        break;
    case HK_STRUCT:
        if (is_word) {
            datatype_copy_records(state, data, packed, HK_LAYOUT_WORD / 2, unpack);
        } else {
            datatype_copy_records(state, data, packed, block / 2, unpack);
        }
        break;
    }
}

static hk_status_t datatype_send_packed(hk_run_t *run, int peer)
{
    const datatype_state_t *state = run->state;
    unsigned char *packed = run->out + state->packed_at;
    datatype_copy(state, run->out, packed, false);
    return run->ctx->tp->send(run->ctx, peer, packed, run->bytes);
}

static hk_status_t datatype_receive_packed(hk_run_t *run, int peer)
{
    const datatype_state_t *state = run->state;
    unsigned char *packed = run->in + state->packed_at;
    HK_TRY(run->ctx->tp->recv(run->ctx, peer, packed, run->bytes));
    datatype_copy(state, run->in, packed, true);
    return HK_OK;
}

/* ---- pack=library ------------------------------------------------------------------------------------------------ */

static hk_status_t datatype_send(hk_run_t *run, int peer)
{
    return run->ctx->tp->send_layout(run->ctx, peer, run->out, &((const datatype_state_t *)run->state)->layout);
}

static hk_status_t datatype_receive(hk_run_t *run, int peer)
{
    return run->ctx->tp->recv_layout(run->ctx, peer, run->in, &((const datatype_state_t *)run->state)->layout);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static hk_status_t datatype_repeat(hk_run_t *run, uint64_t reps)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    const bool begins = run->ctx->rank == hk_source(run->option);
    if (peer < 0) {
        return HK_OK;
    }
    switch (datatype_pack(run)) {
    case DATATYPE_PACK_LIBRARY:
        return hk_trips(run, peer, begins, reps, datatype_send, datatype_receive);
    case DATATYPE_PACK_HAND:
        return hk_trips(run, peer, begins, reps, datatype_send_packed, datatype_receive_packed);
    default:
        return hk_round_trips(run, peer, begins, reps);
    }
}

/* Piece i of the data: a block, half a record, or all of it; false: there are no more. */
static bool datatype_piece(const hk_run_t *run, size_t i, size_t *at_p, size_t *bytes_p)
{
    const datatype_state_t *state = run->state;
    const hk_layout_t *layout = &state->layout;
    if (datatype_pack(run) == DATATYPE_PACK_NONE) {
        *at_p = 0;
        *bytes_p = run->bytes;
        return i == 0;
    }
    if (layout->kind == HK_STRUCT) {
        *bytes_p = layout->block_bytes / 2;
        *at_p = i / 2 * layout->stride_bytes + (i % 2 == 1 ? layout->stride_bytes - *bytes_p : 0);
        return i < 2 * layout->blocks;
    }
    *bytes_p = layout->block_bytes;
    *at_p = i < layout->blocks ? state->at[i] : 0;
    return i < layout->blocks;
}

static bool datatype_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    const int peer = hk_role_peer(run->ctx->rank, run->option);
    size_t at = 0, size_bytes = 0;
    const bool is_one = peer >= 0 && datatype_piece(run, i, &at, &size_bytes);
    *expected_p = (hk_expected_t){.in_offset = at, .from_offset = at, .size_bytes = size_bytes, .from_rank = peer};
    return is_one;
}

/* Whether nothing was received into the gaps. */
static hk_status_t datatype_check_gaps(const hk_run_t *run)
{
    size_t end = 0, at = 0, size_bytes = 0;
    for (size_t i = 0; datatype_piece(run, i, &at, &size_bytes); i++) {
        for (; end < at; end++) {
            if (run->in[end] != 0) {
                return hk_fail(HK_ERR_CORRUPT, run->ctx->rank, "byte %zu was received into a gap of the data", end);
            }
        }
        end = at + size_bytes;
    }
    return HK_OK;
}

static hk_status_t datatype_finish(hk_run_t *run)
{
    datatype_state_t *state = run->state;
    if (state->is_made) {
        run->ctx->tp->drop_layout(run->ctx, &state->layout);
    }
    return datatype_check_gaps(run);
}

const hk_pattern_t hk_pattern_datatype = {
    .name = "datatype",
    .summary = "a ping-pong of data that lies in memory with gaps; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .links = HK_LINKS_ENDS,
    .grain_bytes = HK_LAYOUT_WORD,
    .grain = datatype_grain,
    .option =
        {HK_ROLES_OPTIONS,
         {"layout", "contiguous|vector|indexed|struct", HK_VECTOR, 0, 0,
          "without gaps, or blocks at equal distances, at different ones, or in two fields of a record"},
         {"pack", "auto|library|hand|none", DATATYPE_PACK_AUTO, 0, 0,
          "by the library's types, copied by the rank, or as many bytes without gaps; auto: its types, else by hand"},
         {"block", NULL, 8, 8, 65536, "bytes of a block; the size of a message is a multiple"},
         {"stride", NULL, 16, 8, 1048576, "bytes from a block to the next; of indexed the mean"}},
    .fits = datatype_fits,
    .plan = datatype_plan,
    .prepare = datatype_prepare,
    .finish = datatype_finish,
    .meet = hk_roles_meet,
    .repeat = datatype_repeat,
    .expected = datatype_expected,
};
