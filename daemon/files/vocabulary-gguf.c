/*
 * Reads a vocabulary from GGUF metadata, with llama.cpp's defaults for absent keys.
 *
 * GGUF has no key for normalisation but that of t5's rules.  Qwen-2's tokenizer.json composes text
 * (NFC); for its GGUF files text is taken as it is, both in llama.cpp and here.
 *
 * The kind bert does not say whether its texts are in lower case.  They are if no word has a
 * capital letter of ASCII: every vocabulary of texts with capitals has some.
 */
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/files/gguf.h"
#include "daemon/files/vocabulary-bert.h"
#include "daemon/files/vocabulary-builder.h"
#include "daemon/files/vocabulary.h"

#define KEY(name)       "tokenizer.ggml." name
#define UNKNOWN_PENALTY 10.0f

struct vocabulary_reader {
        struct vocabulary_builder m;
        const struct gguf *gguf;
        bool letters; /* gpt2: byte-level */
        bool unigram; /* t5 */
        bool merged;  /* gemma4: characters, with bars for blanks, and a list of merges */
        bool words;   /* bert: WordPiece */
};

static const struct {
        enum entry_kind kind;
        enum spelling gpt2, llama;
} kinds[] = {
        [1] = { ENTRY_NORMAL, SPELT_LETTERS, SPELT_BARS },
        [2] = { ENTRY_UNKNOWN, SPELT_PLAIN, SPELT_PLAIN },
        [3] = { ENTRY_CONTROL, SPELT_PLAIN, SPELT_PLAIN },
        [4] = { ENTRY_USER, SPELT_PLAIN, SPELT_BARS },
        [5] = { ENTRY_UNUSED, SPELT_PLAIN, SPELT_BARS },
        [6] = { ENTRY_BYTE, SPELT_PLAIN, SPELT_HEX },
};

/* The array must exist and have `count` elements; `optional`: it may also be absent. */
static int find_array(struct vocabulary_reader *rd, const char *key, bool optional, uint64_t count,
                      struct gguf_array *ret_array)
{
        *ret_array = (struct gguf_array){ 0 };
        if (optional && !gguf_has(rd->gguf, key))
                return 0;
        if (!gguf_array(rd->gguf, key, ret_array))
                return vocabulary_builder_refuse(&rd->m, "metadata '%s' is missing or not an array",
                                                 key);
        if (ret_array->left != count && count != UINT64_MAX)
                return vocabulary_builder_refuse(
                        &rd->m, "metadata '%s' has %" PRIu64 " elements for %" PRIu64 " tokens",
                        key, ret_array->left, count);
        return 0;
}

static void set_unknown_score(struct vocabulary_reader *rd)
{
        float lowest = FLT_MAX;

        for (uint32_t id = 0; id < rd->m.entry_capacity; id++)
                if (rd->m.entries[id].kind == ENTRY_NORMAL && rd->m.entries[id].score < lowest)
                        lowest = (float)rd->m.entries[id].score;
        rd->m.v.unknown_score = (double)(lowest - UNKNOWN_PENALTY);
}

static int read_entries(struct vocabulary_reader *rd, struct gguf_array tokens)
{
        uint64_t count = tokens.left;
        struct gguf_array types, scores;
        int r;

        r = find_array(rd, KEY("token_type"), true, count, &types);
        if (!r)
                r = find_array(rd, KEY("scores"), rd->letters || rd->words, count, &scores);
        for (uint64_t id = 0; !r && id < count; id++) {
                bool typed = types.at, scored = scores.at;
                uint32_t type = 1;
                float score = 0;
                const char *name;
                size_t bytes;

                if (!gguf_next_string(&tokens, &name, &bytes))
                        return vocabulary_builder_refuse(
                                &rd->m, "metadata '%s' is not an array of strings", KEY("tokens"));
                if (typed && (!gguf_next_u32(&types, &type) || !type || type > 6))
                        return vocabulary_builder_refuse(
                                &rd->m, "the type of token %" PRIu64 " is not 1 to 6", id);
                if (scored && !gguf_next_f32(&scores, &score))
                        return vocabulary_builder_refuse(
                                &rd->m, "the score of token %" PRIu64 " is not a number", id);
                if (rd->words && kinds[type].kind == ENTRY_USER && bytes > 3 &&
                    !memcmp(name, "\xE2\x96\x81", 3)) {
                        name += 3; /* it is found as it is */
                        bytes -= 3;
                }
                r = vocabulary_builder_add_entry(&rd->m, id, name, bytes, kinds[type].kind,
                                                 rd->letters ? kinds[type].gpt2 : kinds[type].llama,
                                                 rd->unigram && type == 4 ? 0 : score);
        }
        if (rd->unigram)
                set_unknown_score(rd);
        return error_pass(r);
}

static int read_merges(struct vocabulary_reader *rd, struct gguf_array merges)
{
        const char *line;
        size_t bytes;
        int r = 0;

        while (!r && merges.left) {
                if (!gguf_next_string(&merges, &line, &bytes))
                        return vocabulary_builder_refuse(
                                &rd->m, "metadata '%s' is not an array of strings", KEY("merges"));
                r = vocabulary_builder_add_merge_line(&rd->m, line, bytes);
        }
        return error_pass(r);
}

static int read_switch(struct vocabulary_reader *rd, const char *key, bool *value)
{
        if (gguf_has(rd->gguf, key) && !gguf_bool(rd->gguf, key, value))
                return vocabulary_builder_refuse(&rd->m, "metadata '%s' is not true or false", key);
        return 0;
}

/* Some writers set all bits if there is no such token. */
static int read_id(struct vocabulary_reader *rd, const char *key, uint32_t *id)
{
        if (!gguf_has(rd->gguf, key))
                return 0;
        if (!gguf_u32(rd->gguf, key, id))
                return vocabulary_builder_refuse(
                        &rd->m, "metadata '%s' is not a whole number of 32 bits", key);
        if (*id != VOCABULARY_NONE && *id >= rd->m.entry_capacity)
                return vocabulary_builder_refuse(&rd->m,
                                                 "metadata '%s' is %u, but there are %u tokens",
                                                 key, *id, rd->m.entry_capacity);
        return 0;
}

static int read_splitter(struct vocabulary_reader *rd, const char *given)
{
        const char *name = given ? given : gguf_string(rd->gguf, KEY("pre"));
        const struct splitter *splitter;

        if (!rd->letters)
                return given ? vocabulary_builder_refuse(
                                       &rd->m, "a splitter was given, but this tokenizer uses none")
                             : 0;
        if (!name)
                return vocabulary_builder_refuse(&rd->m,
                                                 "metadata '%s' is missing: name the splitter "
                                                 "with tokenizer = PATH=SPLITTER",
                                                 KEY("pre"));
        splitter = splitter_named(name);
        if (!splitter)
                return vocabulary_builder_refuse(&rd->m, "the splitter '%s' is not supported",
                                                 shown(name).text);
        rd->m.v.whole_wins = splitter->whole_wins;
        rd->m.v.add_bos = splitter->add_bos;
        return error_pass(vocabulary_builder_add_cuts(&rd->m, splitter));
}

static int read_charsmap(struct vocabulary_reader *rd)
{
        struct gguf_array rules;
        const char *bytes;

        if (!gguf_has(rd->gguf, KEY("precompiled_charsmap")))
                return 0;
        if (!gguf_array(rd->gguf, KEY("precompiled_charsmap"), &rules) ||
            !gguf_bytes(&rules, &bytes))
                return vocabulary_builder_refuse(&rd->m, "metadata '%s' is not an array of bytes",
                                                 KEY("precompiled_charsmap"));
        if (!rules.left)
                return 0;
        return error_pass(
                vocabulary_builder_add_normal(&rd->m, NORMAL_RULES, NULL, bytes, rules.left));
}

/* What only t5 has.  Its special tokens are those of T5, unless the file has others. */
static int read_unigram(struct vocabulary_reader *rd, bool *ret_suffix)
{
        struct vocabulary *v = &rd->m.v;
        bool escapes = true;
        int r = read_charsmap(rd);

        v->eos = rd->m.entry_capacity > 1 ? 1 : VOCABULARY_NONE;
        v->unknown = rd->m.entry_capacity > 2 ? 2 : VOCABULARY_NONE;
        if (!r)
                r = read_switch(rd, KEY("remove_extra_whitespaces"), &v->squeezes);
        if (!r)
                r = read_switch(rd, KEY("treat_whitespace_as_suffix"), ret_suffix);
        if (!r)
                r = read_switch(rd, KEY("escape_whitespaces"), &escapes);
        if (!r && !escapes)
                r = vocabulary_builder_refuse(
                        &rd->m, "it does not write blanks as bars, which is not supported");
        return error_pass(r);
}

static int read_end(struct vocabulary_reader *rd)
{
        struct vocabulary *v = &rd->m.v;
        bool adds = true;
        int r = read_switch(rd, KEY("add_eos_token"), &adds);

        if (!r && adds && v->eos != VOCABULARY_NONE)
                v->ends[v->end_count++] = v->eos;
        return error_pass(r);
}

/* Characters that merge by the scores of what they give, as in SentencePiece. */
static bool is_llama(const struct vocabulary_reader *rd)
{
        return !rd->letters && !rd->words && !rd->unigram && !rd->merged;
}

static int read_blank(struct vocabulary_reader *rd, bool suffix)
{
        bool blank = is_llama(rd);
        int r = read_switch(rd, KEY("add_space_prefix"), &blank);

        if (!r && blank && rd->letters)
                r = vocabulary_builder_refuse(&rd->m,
                                              "a blank before a byte-level text is not supported");
        rd->m.v.blank = !blank || rd->words ? BLANK_NEVER : suffix ? BLANK_LAST : BLANK_EACH;
        return error_pass(r);
}

static bool has_capitals(struct gguf_array tokens)
{
        const char *name;
        size_t bytes;

        while (gguf_next_string(&tokens, &name, &bytes))
                for (size_t i = 0; i < bytes && *name != '['; i++)
                        if (name[i] >= 'A' && name[i] <= 'Z')
                                return true;
        return false;
}

static int read_words(struct vocabulary_reader *rd, struct gguf_array tokens)
{
        struct vocabulary *v = &rd->m.v;
        bool lower = !has_capitals(tokens);
        int r = vocabulary_bert_normals(&rd->m, true, true, lower, lower);

        v->kind = VOCABULARY_WORDPIECE;
        v->border = BORDER_FRONT;
        v->word_max = 100;
        rd->m.cleans = true;
        if (rd->m.entry_capacity > 102) {
                v->unknown = 100;
                v->bos = 101;
                v->eos = 102;
        }
        if (!r)
                r = read_id(rd, KEY("cls_token_id"), &v->bos);
        return r ? error_pass(r) : error_pass(vocabulary_bert_cuts(&rd->m));
}

static int read_rules(struct vocabulary_reader *rd, const char *splitter, struct gguf_array tokens)
{
        struct vocabulary *v = &rd->m.v;
        bool suffix = false;
        int r;

        v->kind = rd->letters   ? VOCABULARY_BYTE_LEVEL
                  : rd->unigram ? VOCABULARY_UNIGRAM
                                : VOCABULARY_CHARACTERS;
        v->add_bos = !rd->letters && !rd->unigram;
        v->by_score = is_llama(rd);
        v->unknown_run = !rd->words;
        r = read_splitter(rd, splitter);
        if (!r)
                r = read_switch(rd, KEY("add_bos_token"), &v->add_bos);
        if (!r && rd->unigram)
                r = read_unigram(rd, &suffix);
        if (!r)
                r = read_blank(rd, suffix);
        if (!r && rd->words)
                r = read_words(rd, tokens);
        if (!r && rd->merged) /* newlines are apart from the text between them */
                r = vocabulary_builder_add_cut(&rd->m, "[^\\n]+|[\\n]+", CUT_APART, false);
        if (!r)
                r = read_id(rd, KEY("bos_token_id"), &v->bos);
        if (!r)
                r = read_id(rd, KEY("eos_token_id"), &v->eos);
        if (!r)
                r = read_id(rd, KEY("unknown_token_id"), &v->unknown);
        if (!r && (rd->unigram || rd->words))
                r = read_end(rd);
        return error_pass(r);
}

/* Bytes of all tokens' names together; they are part of the header, so no more than its bytes. */
static uint64_t count_bytes(struct gguf_array tokens)
{
        const char *name;
        size_t bytes;
        uint64_t sum = 0;

        while (gguf_next_string(&tokens, &name, &bytes))
                sum += bytes;
        return sum;
}

static int read_all(struct vocabulary_reader *rd, const char *splitter, char *why, size_t why_bytes)
{
        struct gguf_array tokens = { 0 }, merges = { 0 };
        int r;

        rd->m = (struct vocabulary_builder){ .why = why, .why_bytes = why_bytes };
        r = find_array(rd, KEY("tokens"), false, UINT64_MAX, &tokens);
        if (!r)
                r = find_array(rd, KEY("merges"), !rd->letters && !rd->merged, UINT64_MAX, &merges);
        if (!r && !rd->letters && !rd->merged)
                merges.left = 0; /* merging by scores uses no merges */
        if (!r)
                r = vocabulary_builder_begin(&rd->m, tokens.left, merges.left, count_bytes(tokens),
                                             why, why_bytes);
        if (!r)
                r = read_rules(rd, splitter, tokens);
        if (!r)
                r = read_entries(rd, tokens);
        if (!r)
                r = read_merges(rd, merges);
        return error_pass(r);
}

static int make_bytes(struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        struct vocabulary_builder m;
        int r = vocabulary_builder_begin(&m, 1, 0, 0, why, why_bytes);

        if (!r)
                r = vocabulary_builder_finish(&m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&m);
        return error_pass(r);
}

int vocabulary_from_gguf(const struct gguf *gguf, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        const char *kind = gguf_string(gguf, KEY("model"));
        struct vocabulary_reader rd = { .gguf = gguf };
        int r;

        if (!kind)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "metadata '%s' is missing or not a string",
                                               KEY("model")));
        if (!strcmp(kind, "bytes"))
                return error_pass(make_bytes(ret_vocabulary, why, why_bytes));
        rd.letters = !strcmp(kind, "gpt2");
        rd.unigram = !strcmp(kind, "t5");
        rd.merged = !strcmp(kind, "gemma4");
        rd.words = !strcmp(kind, "bert");
        if (is_llama(&rd) && strcmp(kind, "llama"))
                return error_raise(
                        errtext_set(why, why_bytes, -EINVAL,
                                    "its tokenizer is of the kind '%s', which is not supported",
                                    shown(kind).text));
        r = read_all(&rd, splitter, why, why_bytes);
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        return error_pass(r);
}
