/*
 * Weights of eight bits and their scales: which belong together, what config.json says about
 * them, and how the two become rows.  tests/golden/test-families.c checks the numbers against
 * other implementations.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/config-quantization.h"
#include "daemon/files/safetensors.h"
#include "daemon/files/scales.h"

static const struct scale_block usual = { SCALES_ROWS, SCALES_COLUMNS };
static char why[256];

/* ---- which go together ---- */

struct shaped {
        const char *name, *type;
        uint32_t rows, columns; /* rows 0: a vector; both: a number */
        unsigned bits;
};

struct joined {
        struct safetensors file;
        struct scales *scales;
};

/* Makes a file of such tensors, of which only the header is ever read. */
static void join(const struct shaped *shaped, unsigned count, const struct scale_block *block,
                 struct joined *ret)
{
        static uint8_t bytes[4096];
        char *header = (char *)bytes + 8;
        size_t n = 0, data = 0;

        for (unsigned i = 0; i < count; i++) {
                const struct shaped *s = &shaped[i];
                size_t own = (size_t)(s->rows ? s->rows : 1) * (s->columns ? s->columns : 1) *
                             s->bits / 8;
                char shape[32] = "";

                if (s->rows)
                        snprintf(shape, sizeof(shape), "%u,%u", s->rows, s->columns);
                else if (s->columns)
                        snprintf(shape, sizeof(shape), "%u", s->columns);
                n += (size_t)sprintf(
                        header + n,
                        "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                        i ? ',' : '{', s->name, s->type, shape, data, data + own);
                data += own;
        }
        header[n++] = '}';
        for (unsigned b = 0; b < 8; b++)
                bytes[b] = (uint8_t)((uint64_t)n >> (8 * b));
        if (safetensors_parse(bytes, 8 + n, 8 + n + data, &ret->file, why, sizeof(why)))
                fail_msg("%s", why);
        assert_int_equal(scales_join(&ret->file.tensors, block, &ret->scales), 0);
}

static void part(struct joined *j)
{
        safetensors_deinit(&j->file);
        free(j->scales);
}

#define WEIGHTS(rows, columns)                                                                     \
        {                                                                                          \
                "x.weight", "F8_E4M3", rows, columns, 8                                            \
        }
#define SCALES(ending, type, bits, rows, columns)                                                  \
        {                                                                                          \
                "x.weight" ending, type, rows, columns, bits                                       \
        }

static void attaches_scales_to_weights_and_derives_their_block_from_the_shape(void **state)
{
        static const struct {
                struct shaped tensors[2];
                struct scale_block block, covers;
        } cases[] = {
                { { WEIGHTS(300, 384), SCALES("_scale_inv", "F32", 32, 3, 3) },
                  { 128, 128 },
                  { 128, 128 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "BF16", 16, 3, 3) },
                  { 128, 128 },
                  { 128, 128 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 5, 2) },
                  { 64, 256 },
                  { 64, 256 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 1, 1) },
                  { 1024, 4096 },
                  { 300, 384 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "F16", 16, 300, 1) },
                  { 128, 128 },
                  { 1, 384 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 0, 1) },
                  { 128, 128 },
                  { 300, 384 } },
                { { WEIGHTS(300, 384), SCALES("_scale_inv", "F32", 32, 0, 0) },
                  { 128, 128 },
                  { 300, 384 } },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 1, 1) },
                  { 128, 128 },
                  { 300, 384 } },
                { { WEIGHTS(100, 128), SCALES("_scale", "F32", 32, 1, 1) },
                  { 128, 128 },
                  { 100, 128 } },
                { { WEIGHTS(129, 128), SCALES("_scale", "F32", 32, 2, 1) },
                  { 128, 128 },
                  { 128, 128 } },
                { { WEIGHTS(128, 128), SCALES("_scale", "F32", 32, 128, 1) },
                  { 1, 128 },
                  { 1, 128 } },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct joined j;
                const struct tensor *t;

                join(cases[i].tensors, 2, &cases[i].block, &j);
                assert_int_equal(j.file.tensors.count, 1);
                t = tensor_table_find(&j.file.tensors, "x.weight");
                if (!t || t->unserved)
                        fail_msg("case %zu: %s", i, t ? t->unserved : "lost");
                assert_true(t->type == ROW_F8_E4M3 && t->scales);
                assert_int_equal(t->scales->covers.rows, cases[i].covers.rows);
                assert_int_equal(t->scales->covers.columns, cases[i].covers.columns);
                assert_int_equal(tensor_taken_bytes(t),
                                 (uint64_t)t->rows * (t->columns / 128 * 132));
                part(&j);
        }
}

static void weights_with_ill_fitting_scales_are_unserved_with_both_shapes(void **state)
{
        static const struct {
                struct shaped tensors[2];
                const char *said;
        } cases[] = {
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 3, 2) },
                  "it is 300 x 384 and its scales are 3 x 2, not 1 x 1, 300 x 1 or 3 x 3" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 2, 3) }, "2 x 3, not" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 1, 300) }, "1 x 300, not" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 0, 300) }, "1 x 300, not" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 300, 3) }, "300 x 3, not" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 299, 1) }, "299 x 1, not" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F32", 32, 300, 384) }, "300 x 384, not" },
                { { WEIGHTS(4, 384), SCALES("_scale", "F32", 32, 4000000, 4000000) },
                  "4000000 x 4000000, not" },
                { { WEIGHTS(300, 100), SCALES("_scale", "F32", 32, 1, 1) },
                  "its rows of 100 8-bit numbers are not a multiple of 128" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F64", 64, 3, 3) },
                  "its scales are not floats: its type F64 is not supported" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F8_E8M0", 8, 3, 3) },
                  "its scales are not floats: its type F8_E8M0 is not supported yet" },
                { { WEIGHTS(300, 384), SCALES("_scale", "F8_E4M3", 8, 3, 3) },
                  "its scales are not floats: its type F8_E4M3 needs scales" },
                { { WEIGHTS(300, 384), SCALES("_scales", "F32", 32, 3, 3) },
                  "its type F8_E4M3 needs scales, and it has none" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct joined j;
                const struct tensor *t;

                join(cases[i].tensors, 2, &usual, &j);
                t = tensor_table_find(&j.file.tensors, "x.weight");
                assert_non_null(t);
                if (!t->unserved || !strstr(t->unserved, cases[i].said))
                        fail_msg("\"%s\" does not say \"%s\"", t->unserved ? t->unserved : "",
                                 cases[i].said);
                assert_int_equal(tensor_taken_bytes(t), t->bytes);
                part(&j);
        }
}

static void keeps_scales_without_fp8_weights_in_the_table(void **state)
{
        static const struct shaped all[] = {
                { "a.weight", "BF16", 2, 128, 16 },        { "a.weight_scale", "F32", 2, 1, 32 },
                { "b.weight", "F8_E4M3", 2, 128, 8 },      { "b.weight_scale", "F32", 2, 1, 32 },
                { "b.weight_scale_inv", "F32", 2, 1, 32 }, { "c.weight_scale", "F32", 2, 1, 32 },
                { "d.weight", "F8_E5M2", 2, 128, 8 },      { "d.weight_scale", "F32", 2, 1, 32 },
        };
        struct joined j;

        (void)state;
        join(all, 8, &usual, &j);
        assert_int_equal(j.file.tensors.count, 7);
        for (unsigned i = 0; i < 8; i++)
                assert_int_equal(!!tensor_table_find(&j.file.tensors, all[i].name), i != 4);
        assert_null(tensor_table_find(&j.file.tensors, "b.weight")->unserved);
        assert_non_null(tensor_table_find(&j.file.tensors, "d.weight")->unserved);
        part(&j);
}

/* ---- rows ---- */

#define ROWS    300u
#define COLUMNS 384u
#define ACROSS  (COLUMNS / 128)

static uint8_t code_of(uint32_t row, uint32_t column)
{
        return (uint8_t)(row * 31 + column * 7 + column / 128);
}

/* Codes at the end, as the file has them, then rows, block after block. */
static void weave(const struct tensor *t, uint32_t row, uint32_t rows)
{
        uint8_t *bytes = malloc((size_t)rows * ACROSS * 132), *at = bytes;
        uint8_t *codes = bytes + (size_t)rows * ACROSS * 4;
        const struct scales *s = t->scales;
        float *scales;
        uint64_t from;
        uint32_t count = scales_of(t, row, rows, &from);

        assert_true(bytes && from % 4 == 0 &&
                    from / 4 + count <= s->tensor.rows * s->tensor.columns);
        scales = malloc(count * sizeof(*scales));
        assert_non_null(scales);
        for (uint32_t i = 0; i < count; i++)
                scales[i] = (float)(from / 4 + i);
        for (uint32_t i = 0; i < rows * COLUMNS; i++)
                codes[i] = code_of(row + i / COLUMNS, i % COLUMNS);
        scales_interleave(t, row, rows, scales, bytes);
        for (uint32_t r = row; r < row + rows; r++) {
                for (uint32_t b = 0; b < ACROSS; b++, at += 132) {
                        float scale, own = (float)(r / s->covers.rows * s->tensor.columns +
                                                   b * 128 / s->covers.columns);

                        memcpy(&scale, at, sizeof(scale));
                        if (scale != own)
                                fail_msg("row %u, block %u: scale %g, not %g", r, b, (double)scale,
                                         (double)own);
                        for (uint32_t i = 0; i < 128; i++)
                                assert_int_equal(at[4 + i], code_of(r, b * 128 + i));
                }
        }
        free(scales);
        free(bytes);
}

static void any_range_of_rows_gets_its_scales(void **state)
{
        static const struct scale_block blocks[] = {
                { 128, 128 }, { 64, 256 }, { 1, 128 }, { 7, 384 }
        };
        static const uint32_t ranges[][2] = { { 0, 1 },    { 0, ROWS }, { 127, 2 }, { 128, 128 },
                                              { 100, 57 }, { 299, 1 },  { 3, 4 } };
        const struct scale_block shares[] = { { ROWS, COLUMNS }, { 1, COLUMNS }, blocks[0],
                                              blocks[1],         blocks[2],      blocks[3] };

        (void)state;
        for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
                struct scales s = {
                        .tensor = { .type = ROW_F32,
                                    .rows = (ROWS + shares[i].rows - 1) / shares[i].rows,
                                    .columns =
                                            (COLUMNS + shares[i].columns - 1) / shares[i].columns },
                        .covers = shares[i],
                };
                struct tensor t = {
                        .type = ROW_F8_E4M3, .rows = ROWS, .columns = COLUMNS, .scales = &s
                };

                for (size_t k = 0; k < sizeof(ranges) / sizeof(*ranges); k++)
                        weave(&t, ranges[k][0], ranges[k][1]);
        }
}

/* ---- config.json ---- */

static int read_config(const char *members, struct scale_block *ret_block)
{
        struct json_document *json;
        char text[2048];
        int r;

        snprintf(text, sizeof(text), "{\"vocab_size\":7%s%s}", *members ? "," : "", members);
        if (json_parse(text, strlen(text), 1000, &json, why, sizeof(why)))
                fail_msg("the test's own text: %s", why);
        why[0] = 0;
        r = config_quantization(json, ret_block, why, sizeof(why));
        json_free(json);
        return r;
}

#define METHOD(members) "\"quantization_config\":{\"quant_method\":" members "}"
#define GROUP(weights)                                                                             \
        "{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8,\"type\":\"float\"," weights "}}"
#define GROUPS(groups)                                                                             \
        METHOD("\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{" groups  \
               "}")

static void accepts_the_known_fp8_quantization_configs(void **state)
{
        static const struct {
                const char *members;
                struct scale_block block;
        } cases[] = {
                { "", { 128, 128 } },
                { "\"quantization_config\":null", { 128, 128 } },
                { METHOD("\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128],"
                         "\"activation_scheme\":\"dynamic\",\"scale_fmt\":\"ue8m0\""),
                  { 128, 128 } },
                { METHOD("\"fp8\",\"weight_block_size\":[64,256]"), { 64, 256 } },
                { METHOD("\"fp8\",\"weight_block_size\":null,\"activation_scheme\":\"static\","
                         "\"kv_cache_scheme\":\"static\""),
                  { 128, 128 } },
                { METHOD("\"fbgemm_fp8\",\"activation_scale_ub\":1200.0"), { 128, 128 } },
                { GROUPS("\"group_0\":" GROUP("\"strategy\":\"channel\",\"symmetric\":true,"
                                              "\"block_structure\":null,\"dynamic\":false")),
                  { 128, 128 } },
                { GROUPS("\"a\":" GROUP("\"strategy\":\"tensor\"") ",\"b\":" GROUP(
                          "\"strategy\":\"block\",\"block_structure\":[32,128]")),
                  { 32, 128 } },
                { METHOD("\"compressed-tensors\",\"format\":\"mixed-precision\",\"config_groups\":{"
                         "\"a\":{\"format\":\"naive-quantized\",\"weights\":{\"num_bits\":8,"
                         "\"type\":\"float\",\"strategy\":\"channel\"}}},"
                         "\"sparsity_config\":{\"format\":\"dense\"},\"transform_config\":{},"
                         "\"kv_cache_scheme\":{\"num_bits\":8}"),
                  { 128, 128 } },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct scale_block block = { 0 };

                if (read_config(cases[i].members, &block))
                        fail_msg("%s: %s", cases[i].members, why);
                assert_true(block.rows == cases[i].block.rows &&
                            block.columns == cases[i].block.columns);
        }
}

#define NOT_YET(key, value)                                                                        \
        "config.json's 'quantization_config." key "' is '" value "', which is not supported yet"
#define WEIGHTS_OF(key) "config_groups.a.weights." key

static void refuses_other_quantization_configs_by_name(void **state)
{
        static const struct {
                const char *members, *said;
        } cases[] = {
                { METHOD("\"gptq\",\"bits\":4"), NOT_YET("quant_method", "gptq") },
                { METHOD("\"mxfp4\""), NOT_YET("quant_method", "mxfp4") },
                { METHOD("\"\\u001b[2J\""), NOT_YET("quant_method", "?[2J") },
                { METHOD("7"), "quant_method' is not a string" },
                { METHOD("null"), "quant_method' is missing" },
                { "\"quantization_config\":{\"bits\":4}", "quant_method' is missing" },
                { "\"quantization_config\":[1]", "quant_method' is missing" },
                { "\"quantization_config\":\"fp8\"", "quant_method' is missing" },
                { METHOD("\"fp8\",\"fmt\":\"e5m2\""), NOT_YET("fmt", "e5m2") },
                { METHOD("\"fp8\",\"weight_block_size\":[128,64]"),
                  "weight_block_size' is 128 x 64, which is not supported yet" },
                { METHOD("\"fp8\",\"weight_block_size\":[0,128]"), "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":[128,0]"), "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":[-1,128]"), "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":[128,4294967296]"),
                  "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":[128,128,128]"),
                  "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":[128]"), "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":128"), "is not a list of two sizes" },
                { METHOD("\"fp8\",\"weight_block_size\":{\"a\":1,\"b\":2}"),
                  "is not a list of two sizes" },
                { METHOD("\"compressed-tensors\",\"format\":\"pack-quantized\""),
                  NOT_YET("format", "pack-quantized") },
                { METHOD("\"compressed-tensors\",\"format\":\"float-quantized\""),
                  "'quantization_config.config_groups' is missing" },
                { GROUPS(""), "'quantization_config.config_groups' is missing" },
                { GROUPS("\"a\":7"), WEIGHTS_OF("type") "' is missing" },
                { GROUPS("\"a\":{\"weights\":null}"), WEIGHTS_OF("type") "' is missing" },
                { GROUPS("\"a\":{\"weights\":{\"type\":\"int\",\"num_bits\":8}}"),
                  NOT_YET(WEIGHTS_OF("type"), "int") },
                { GROUPS("\"a\":{\"weights\":{\"type\":\"float\",\"num_bits\":4}}"),
                  WEIGHTS_OF("num_bits") "' is 4, not 8 to 8" },
                { GROUPS("\"a\":" GROUP("\"strategy\":\"group\"")),
                  NOT_YET(WEIGHTS_OF("strategy"), "group") },
                { GROUPS("\"a\":" GROUP("\"strategy\":null")), WEIGHTS_OF("strategy") "' is miss" },
                { GROUPS("\"a\":" GROUP("\"strategy\":\"tensor\",\"symmetric\":false")),
                  WEIGHTS_OF("symmetric") "' is false, which is not supported yet" },
                { GROUPS("\"a\":{\"format\":\"nvfp4-pack-quantized\"}"),
                  NOT_YET("config_groups.a.format", "nvfp4-pack-quantized") },
                { GROUPS("\"a\":" GROUP("\"strategy\":\"block\",\"block_structure\":[128,"
                                        "128]") ",\"b\":" GROUP("\"strategy\":\"block\",\"block_"
                                                                "structure\":[64,128]")),
                  "config_groups.b.weights.block_structure' differs from that of another "
                  "group" },
                { GROUPS("\"a\":" GROUP("\"strategy\":\"channel\"") ",\"b\":{}"),
                  "config_groups.b.weights.type' is missing" },
                { GROUPS("\"\\u001b[2J\":" GROUP("\"strategy\":\"channel\"")),
                  "config_groups.?[2J.weights.type' is missing" },
                { METHOD("\"compressed-tensors\",\"sparsity_config\":{"
                         "\"format\":\"sparse-24-bitmask\"}"),
                  NOT_YET("sparsity_config.format", "sparse-24-bitmask") },
                { METHOD("\"compressed-tensors\",\"transform_config\":{\"config_groups\":{}"
                         "}"),
                  "'quantization_config.transform_config' has a value that is not supported yet" },
        };
        unsigned wrong = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct scale_block block = { 0 };
                int r = read_config(cases[i].members, &block);

                if (r == -EINVAL && !block.rows && strstr(why, cases[i].said))
                        continue;
                wrong++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", cases[i].members, r, why,
                            cases[i].said);
        }
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(attaches_scales_to_weights_and_derives_their_block_from_the_shape),
                cmocka_unit_test(weights_with_ill_fitting_scales_are_unserved_with_both_shapes),
                cmocka_unit_test(keeps_scales_without_fp8_weights_in_the_table),
                cmocka_unit_test(any_range_of_rows_gets_its_scales),
                cmocka_unit_test(accepts_the_known_fp8_quantization_configs),
                cmocka_unit_test(refuses_other_quantization_configs_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
