/* The types of rows in files: names, sizes, and conversion to floats. */
#include <assert.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/convert.h"
#include "kernels/cpu/panel.h"
#include "kernels/kernels.h"

size_t row_bytes(enum row_type type, uint32_t columns)
{
        const struct block_format *blocks = block_format(type);

        switch (type) {
        case ROW_F32:
                return (size_t)columns * 4;
        case ROW_F16:
        case ROW_BF16:
                return (size_t)columns * 2;
        default:
                break;
        }
        if (!blocks || columns % blocks->numbers)
                return 0;
        return (size_t)(columns / blocks->numbers) * blocks->bytes;
}

size_t row_kept_bytes(enum row_type type, uint32_t columns)
{
        return row_bytes(type, columns) ? panel_bytes(type, columns) / PANEL : 0;
}

const char *row_type_name(enum row_type type)
{
        static const char *const names[ROW_TYPE_N] = {
                [ROW_F32] = "F32",         [ROW_F16] = "F16",         [ROW_BF16] = "BF16",
                [ROW_Q4_0] = "Q4_0",       [ROW_Q8_0] = "Q8_0",       [ROW_Q4_K] = "Q4_K",
                [ROW_Q5_K] = "Q5_K",       [ROW_Q6_K] = "Q6_K",       [ROW_Q4_1] = "Q4_1",
                [ROW_Q5_0] = "Q5_0",       [ROW_Q5_1] = "Q5_1",       [ROW_Q2_K] = "Q2_K",
                [ROW_Q3_K] = "Q3_K",       [ROW_IQ4_NL] = "IQ4_NL",   [ROW_MXFP4] = "MXFP4",
                [ROW_F8_E4M3] = "F8_E4M3", [ROW_IQ4_XS] = "IQ4_XS",   [ROW_IQ3_XXS] = "IQ3_XXS",
                [ROW_IQ3_S] = "IQ3_S",     [ROW_IQ2_XXS] = "IQ2_XXS", [ROW_IQ2_XS] = "IQ2_XS",
                [ROW_IQ2_S] = "IQ2_S",     [ROW_IQ1_S] = "IQ1_S",     [ROW_IQ1_M] = "IQ1_M",
                [ROW_TQ1_0] = "TQ1_0",     [ROW_TQ2_0] = "TQ2_0",     [ROW_NVFP4] = "NVFP4",
        };

        assert(type < ROW_TYPE_N);
        return names[type];
}

const char *kv_type_name(enum kv_type type)
{
        static const char *const names[KV_TYPES] = {
                [KV_F16] = "f16", [KV_BF16] = "bf16", [KV_INT8] = "int8",
                [KV_F32] = "f32", [KV_FP8] = "fp8",
        };

        assert(type < KV_TYPES);
        return names[type];
}

void row_to_floats(enum row_type type, const void *row, uint32_t columns, float *ret_floats)
{
        const struct block_format *blocks = block_format(type);
        const uint8_t *at = row;
        uint16_t u;

        switch (type) {
        case ROW_F32:
                memcpy(ret_floats, row, (size_t)columns * 4);
                return;
        case ROW_F16:
                for (uint32_t i = 0; i < columns; i++) {
                        memcpy(&u, at + (size_t)i * 2, 2);
                        ret_floats[i] = half_to_float(u);
                }
                return;
        case ROW_BF16:
                for (uint32_t i = 0; i < columns; i++) {
                        memcpy(&u, at + (size_t)i * 2, 2);
                        ret_floats[i] = bfloat_to_float(u);
                }
                return;
        default:
                break;
        }
        assert(blocks && columns % blocks->numbers == 0);
        for (uint32_t i = 0; i < columns; i += blocks->numbers, at += blocks->bytes)
                block_to_floats(blocks, at, ret_floats + i);
}
