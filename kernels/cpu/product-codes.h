/*
 * The codes of a panel (panel.h) as numbers that products multiply, of four columns of several rows
 * at a time; their scales; and the bytes of x and their sums. Part of loops.inc, and of products by
 * tiles.
 */

/* Quad `j` of a half of a block of 32 columns: `half` 1 is the last 16 columns. */
LANES_INLINE ivec codes_of(const enum row_type type, const uint8_t *block, const uint32_t half,
                           const uint32_t j, const uint32_t lane)
{
        const struct slab *s = &slabs[type];
        const uint8_t *low = block + slab_low_at(s) + lane * 4;
        const uint8_t *high = block + slab_high_at(s, half) + lane * 4;
        const uint32_t above = s->low == LOW_PAIRS ? 2 : 4;
        ivec z;

        if (s->low == LOW_BYTES)
                return load_dwords(low + (half * 4 + j) * SLAB_QUADS);
        if (s->low == LOW_NIBBLES) {
                z = load_dwords(low + j * SLAB_QUADS);
                z = (half ? shift_down(z, 4) : z) & 0x0f0f0f0f;
        } else {
                z = shift_down(load_dwords(low + half * SLAB_QUADS), 2 * j) & 0x03030303;
        }
        if (s->high == HIGH_FIFTHS)
                z |= bits_to(load_dwords(high), half * 4 + j, above) & (0x01010101 << above);
        if (s->high == HIGH_PAIRS)
                z |= bits_to(load_dwords(high), 2 * j, above) & (0x03030303 << above);
        return z;
}

/* The tables' numbers + 128, like the codes of Q8_0. */
static const uint8_t iq4_codes[16] = { 1,   24,  45,  63,  79,  93,  106, 118,
                                       129, 141, 153, 166, 181, 197, 217, 241 };
static const uint8_t mxfp4_codes[16] = { 128, 129, 130, 131, 132, 134, 136, 140,
                                         128, 127, 126, 125, 124, 122, 120, 116 };

static const uint8_t iq3_xxs_codes[16] = { 130, 134, 138, 142, 146, 150, 154, 159,
                                           126, 122, 118, 114, 110, 106, 102, 97 };
static const uint8_t iq3_s_codes[16] = { 129, 131, 133, 135, 137, 139, 141, 143,
                                         127, 125, 123, 121, 119, 117, 115, 113 };
static const uint8_t iq2_codes[16] = { 136, 153, 171, 128, 120, 103, 85 };
static const uint8_t iq1_codes[16] = { 121, 129, 137, 128, 119, 127, 135 };

/* Replaces codes by the table's numbers, if the type has a table. */
LANES_INLINE ivec numbers_of(const enum row_type type, ivec codes)
{
        switch (type) {
        case ROW_IQ4_NL:
        case ROW_IQ4_XS:
                return look_up(iq4_codes, codes);
        case ROW_MXFP4:
        case ROW_NVFP4:
                return look_up(mxfp4_codes, codes);
        case ROW_IQ3_XXS:
                return look_up(iq3_xxs_codes, codes);
        case ROW_IQ3_S:
                return look_up(iq3_s_codes, codes);
        case ROW_IQ2_XXS:
        case ROW_IQ2_XS:
        case ROW_IQ2_S:
                return look_up(iq2_codes, codes);
        case ROW_IQ1_S:
        case ROW_IQ1_M:
                return look_up(iq1_codes, codes);
        default:
                return codes;
        }
}

/*
 * The largest code, or of a table the largest number; and the value that is subtracted from all
 * codes.
 */
LANES_INLINE uint32_t code_most(const enum row_type type)
{
        const struct slab *s = &slabs[type];
        const uint32_t low = s->low == LOW_BYTES ? 8 : s->low == LOW_NIBBLES ? 4 : 2;

        switch (type) {
        case ROW_Q8_0:
        case ROW_IQ4_NL:
        case ROW_IQ4_XS:
                return 129;
        case ROW_MXFP4:
        case ROW_NVFP4:
                return 12;
        case ROW_IQ3_XXS:
                return 31;
        case ROW_IQ3_S:
                return 15;
        case ROW_IQ2_XXS:
        case ROW_IQ2_XS:
        case ROW_IQ2_S:
                return 43;
        case ROW_IQ1_S:
        case ROW_IQ1_M:
                return 9;
        default:
                return (1u << (low + s->high)) - 1;
        }
}

LANES_INLINE uint32_t code_zero(const enum row_type type)
{
        return slabs[type].has_table ? 128 : slabs[type].zero;
}

/* ---- scales ---- */

LANES_INLINE vec scale_load(const enum row_type type, const uint8_t *at)
{
        const float factor = 1 / (float)(1u << slabs[type].halvings);

        if (type == ROW_NVFP4)
                return load((const float *)at) * (256 * factor);
        if (type == ROW_MXFP4)
                return load_bfloat((const uint16_t *)at);
        return slabs[type].halvings ? load_half((const uint16_t *)at) * factor
                                    : load_half((const uint16_t *)at);
}

/*
 * Whole-number scales of the 16-column halves of a block: half 0 is the first 16 columns, 1 the
 * last.
 */
LANES_INLINE ivec run_load(const enum row_type type, const uint8_t *block, const uint32_t row,
                           const uint32_t half)
{
        const int32_t mask = slabs[type].runs == RUNS_HALVES ? 15 : -1;

        return widen_bytes(block + half * PANEL + row) & mask;
}

/* Scales and least values of eight runs, times those of the block: exact in floats. */
LANES_INLINE void six_bits_load(const uint32_t width, const uint32_t row, float runs[16][PANEL],
                                const uint8_t *slab)
{
        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                const uint32_t at = row + g * LANES;
                const uint8_t *from = slab + 2 * SLAB_SCALES + at * 4;
                vec scale = load_half((const uint16_t *)(slab + at * 2));
                vec min = load_half((const uint16_t *)(slab + SLAB_SCALES + at * 2));
                ivec six[3], last;

                UNROLL for (uint32_t w = 0; w < 3; w++)
                {
                        six[w] = load_dwords(from + w * SLAB_QUADS);
                }
                UNROLL for (uint32_t i = 0; i < 15; i++)
                {
                        ivec n = shift_down(six[i / 5], i % 5 * 6) & 63;

                        store(runs[i] + at, to_floats(n) * (i < 8 ? scale : min));
                }
                last = shift_down(six[0], 30) | shift_down(six[1], 30) << 2 |
                       shift_down(six[2], 30) << 4;
                store(runs[15] + at, to_floats(last) * min);
        }
}

/* ---- rows of x ---- */

/* Quantised rows of x, from a block on: its bytes and its sums. Rows are `stride` bytes apart. */
struct acts {
        const int8_t *bytes;
        const uint8_t *sums;
        size_t stride;
};

LANES_INLINE const int8_t *act_bytes_of(const struct acts *x, const uint32_t t)
{
        return x->bytes + t * x->stride;
}

LANES_INLINE const struct act_sums *act_sums_of(const struct acts *x, const uint32_t t)
{
        return (const struct act_sums *)(x->sums + t * x->stride);
}

LANES_INLINE void acts_next(struct acts *x)
{
        x->bytes += ACT_BLOCK;
        x->sums += sizeof(struct act_sums);
}
