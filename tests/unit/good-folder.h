/*
 * A good model in a folder of its own, small, for tests that damage it: config.json,
 * model.safetensors (all zeros) and tokenizer.json (a letter for every byte).
 */
#ifndef TESTS_UNIT_GOOD_FOLDER_H
#define TESTS_UNIT_GOOD_FOLDER_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG     "config.json"
#define WEIGHTS    "model.safetensors"
#define INDEX      "model.safetensors.index.json"
#define TOKENS     "tokenizer.json"
#define GGUF       "m.gguf"
#define FILE_BYTES (256u << 10)

static char folder[] = "/tmp/test-models-XXXXXX";
static char path[256];

static const char good_config[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":32,\"intermediate_size\":32,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"vocab_size\":264,"
        "\"rms_norm_eps\":1e-5,\"rope_theta\":10000,\"max_position_embeddings\":64,"
        "\"bos_token_id\":1,\"eos_token_id\":2}";

static const struct {
        const char *name;
        unsigned rows, columns; /* rows 0: a vector */
} tensors[] = {
        { "model.embed_tokens.weight", 264, 32 },
        { "lm_head.weight", 264, 32 },
        { "model.norm.weight", 0, 32 },
        { "model.layers.0.input_layernorm.weight", 0, 32 },
        { "model.layers.0.post_attention_layernorm.weight", 0, 32 },
        { "model.layers.0.self_attn.q_proj.weight", 32, 32 },
        { "model.layers.0.self_attn.k_proj.weight", 32, 32 },
        { "model.layers.0.self_attn.v_proj.weight", 32, 32 },
        { "model.layers.0.self_attn.o_proj.weight", 32, 32 },
        { "model.layers.0.mlp.gate_proj.weight", 32, 32 },
        { "model.layers.0.mlp.up_proj.weight", 32, 32 },
        { "model.layers.0.mlp.down_proj.weight", 32, 32 },
};
#define TENSORS (sizeof(tensors) / sizeof(*tensors))

static char weights[FILE_BYTES], tokens[16384];
static size_t weights_bytes, weights_header, tokens_bytes;

static inline const char *in_folder(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static inline void write_file(const char *name, const void *bytes, size_t count)
{
        FILE *out = fopen(in_folder(name), "wb");
        size_t n;

        assert(out);
        n = fwrite(bytes, 1, count, out);
        assert(n == count);
        n = (size_t)fclose(out);
        assert(!n);
}

static inline void write_text(const char *name, const char *text)
{
        write_file(name, text, strlen(text));
}

/* All weights are zeros. */
static inline void make_weights(void)
{
        size_t n = 8, at = 0;

        for (size_t i = 0; i < TENSORS; i++) {
                size_t bytes = 4 * tensors[i].columns * (tensors[i].rows ? tensors[i].rows : 1);
                char rows[16] = "";

                if (tensors[i].rows)
                        snprintf(rows, sizeof(rows), "%u,", tensors[i].rows);
                n += (size_t)snprintf(weights + n, sizeof(weights) - n,
                                      "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%s%u],"
                                      "\"data_offsets\":[%zu,%zu]}",
                                      i ? ',' : '{', tensors[i].name, rows, tensors[i].columns, at,
                                      at + bytes);
                at += bytes;
        }
        weights[n++] = '}';
        weights_header = n;
        for (unsigned i = 0; i < 8; i++)
                weights[i] = (char)((n - 8) >> (8 * i));
        weights_bytes = n + at;
        assert(weights_bytes <= sizeof(weights));
}

/* Every byte has a letter, as GPT-2 spells them. */
static inline void make_tokens(void)
{
        unsigned other = 256;
        size_t n = (size_t)sprintf(
                tokens, "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true}],"
                        "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                        "\"add_prefix_space\":false},\"post_processor\":null,"
                        "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                        "\"vocab\":{\"he\":1,\"ll\":2");

        for (unsigned b = 0; b < 256; b++) {
                bool own = (b > 32 && b < 127) || (b > 160 && b != 173);

                n += (size_t)sprintf(tokens + n, ",\"\\u%04x\":%u", own ? b : other++, b + 3);
        }
        n += (size_t)sprintf(tokens + n, "},\"merges\":[\"h e\",\"l l\"]}}");
        tokens_bytes = n;
        assert(n < sizeof(tokens));
}

static inline void mend(void)
{
        static const char *const names[] = { CONFIG, WEIGHTS, TOKENS, INDEX };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                (void)unlink(in_folder(names[i]));
        write_text(CONFIG, good_config);
        write_file(WEIGHTS, weights, weights_bytes);
        write_file(TOKENS, tokens, tokens_bytes);
}

/* False: there is no directory to put it in. */
static inline bool good_folder(void)
{
        if (!mkdtemp(folder))
                return false;
        make_weights();
        make_tokens();
        mend();
        return true;
}

static inline int remove_folder(void)
{
        static const char *const names[] = { CONFIG, WEIGHTS, TOKENS, INDEX, GGUF };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                unlink(in_folder(names[i]));
        return rmdir(folder);
}

#endif
