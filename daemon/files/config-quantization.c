#include "daemon/files/config-quantization.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/config-keys.h"

#define CONFIG "quantization_config"
#define GROUPS CONFIG ".config_groups"

static bool is_one_of(const char *name, const char *const *names)
{
        for (; *names; names++)
                if (!strcmp(name, *names))
                        return true;
        return false;
}

/* NULL: a fault, or the key is absent and may be. */
static const char *read_name(struct trait_reader *rd, const char *key, const char *const *names,
                             bool may_lack)
{
        const char *name = trait_reader_text(rd, key);

        if (!name && !may_lack)
                trait_reader_fault(rd, "config.json's '%s' is missing", rd->key);
        if (!name || is_one_of(name, names))
                return name;
        trait_reader_fault(rd, "config.json's '%s' is '%s', which is not supported yet", rd->key,
                           shown(name).text);
        return NULL;
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Two numbers, rows and columns. */
static void read_block(struct trait_reader *rd, const char *key, struct scale_block *ret_block)
{
        uint32_t first;
        uint64_t rows, columns;

        if (!trait_reader_has(rd, key))
                return;
        first = json_first(rd->from, rd->node);
        if (json_kind(rd->from, rd->node) != JSON_ARRAY || json_count(rd->from, rd->node) != 2 ||
            !json_whole(rd->from, first, &rows) ||
            !json_whole(rd->from, json_next(rd->from, first), &columns) || !rows || !columns ||
            rows > UINT32_MAX || columns > UINT32_MAX)
                trait_reader_fault(rd, "config.json's '%s' is not a list of two sizes", rd->key);
        else if (columns % SCALES_COLUMNS)
                trait_reader_fault(
                        rd,
                        "config.json's '%s' is %" PRIu64 " x %" PRIu64
                        ", which is not supported yet: its columns are not a multiple of %u",
                        rd->key, rows, columns, SCALES_COLUMNS);
        else
                *ret_block = (struct scale_block){ (uint32_t)rows, (uint32_t)columns };
}

/*
 * Both formats store the numbers as they are; the groups say which kind of numbers.
 * "mixed-precision" leaves the format to the groups.
 */
static void read_format(struct trait_reader *rd, const char *key)
{
        (void)read_name(rd, key, NAMES("float-quantized", "naive-quantized", "mixed-precision"),
                        true);
}

/* One of compressed-tensors' groups; rd->prefix is its path. */
static void read_group(struct trait_reader *rd, struct scale_block *block, bool *has_block)
{
        struct scale_block own = *block;
        const char *strategy;

        read_format(rd, ".format");
        (void)read_name(rd, ".weights.type", NAMES("float"), false);
        (void)trait_reader_whole(rd, ".weights.num_bits", 8, 8, NULL);
        if (!trait_reader_flag(rd, ".weights.symmetric", true))
                trait_reader_fault(rd, "config.json's '%s' is false, which is not supported yet",
                                   rd->key);
        strategy = read_name(rd, ".weights.strategy", NAMES("tensor", "channel", "block"), false);
        if (!strategy || strcmp(strategy, "block"))
                return;
        read_block(rd, ".weights.block_structure", &own);
        if (*has_block && (own.rows != block->rows || own.columns != block->columns))
                trait_reader_fault(rd, "config.json's '%s' differs from that of another group",
                                   rd->key);
        *block = own;
        *has_block = true;
}

static void read_compressed_tensors(struct trait_reader *rd, struct scale_block *block)
{
        bool has_block = false;
        char prefix[KEY_MAX];

        read_format(rd, ".format");
        (void)read_name(rd, ".sparsity_config.format", NAMES("dense"), true);
        if (trait_reader_has(rd, ".transform_config") && json_count(rd->from, rd->node))
                trait_reader_fault(rd, "config.json's '%s' has a value that is not supported yet",
                                   rd->key);
        if (!trait_reader_has(rd, ".config_groups") || !json_count(rd->from, rd->node))
                trait_reader_fault(rd, "config.json's '%s' is missing", rd->key);
        for (uint32_t at = json_first(rd->from, rd->node); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *key = json_key(rd->from, at, NULL);

                snprintf(prefix, sizeof(prefix), GROUPS ".%s", shown(key ? key : "?").text);
                rd->prefix = prefix;
                read_group(rd, block, &has_block);
        }
        rd->prefix = CONFIG;
}

int config_quantization(const struct json_document *json, struct scale_block *ret_block, char *why,
                        size_t why_bytes)
{
        struct trait_reader rd = { .kind = &config_keys,
                                   .from = json,
                                   .prefix = CONFIG,
                                   .why = why,
                                   .why_bytes = why_bytes };
        struct scale_block block = { SCALES_ROWS, SCALES_COLUMNS };
        const char *method = NULL;

        if (trait_reader_has(&rd, CONFIG))
                method = read_name(&rd, ".quant_method",
                                   NAMES("fp8", "fbgemm_fp8", "compressed-tensors", "modelopt"),
                                   false);
        if (method && !strcmp(method, "fp8")) {
                (void)read_name(&rd, ".fmt", NAMES("e4m3"), true);
                read_block(&rd, ".weight_block_size", &block);
        } else if (method && !strcmp(method, "compressed-tensors")) {
                read_compressed_tensors(&rd, &block);
        } else if (method && !strcmp(method, "modelopt")) {
                (void)read_name(&rd, ".quant_algo", NAMES("FP8"), false);
        }
        if (rd.r)
                return error_raise(rd.r);
        *ret_block = block;
        return 0;
}
