/*
 * Reads a vocabulary from vocab.txt, BERT's own file: a token a line, whose number is its id.  How
 * a text is prepared is in tokenizer_config.json, with the defaults of `BertTokenizer`.
 */
#include "daemon/files/vocabulary-bert.h"

#include <string.h>

#include "daemon/files/side-tokens.h"
#include "daemon/files/vocabulary.h"
#include "json/reader.h"

#define WORD_MAX         100u /* characters of a word; a longer one is unknown */
#define CONFIG_NODES_MAX (1u << 20)

int vocabulary_bert_normals(struct vocabulary_builder *m, bool clean, bool part_han,
                            bool drop_accents, bool lower)
{
        const struct {
                bool is_on;
                enum normal_kind kind;
        } steps[] = { { clean, NORMAL_CLEAN },
                      { part_han, NORMAL_PART_HAN },
                      { drop_accents, NORMAL_NFD },
                      { drop_accents, NORMAL_DROP_ACCENTS },
                      { lower, NORMAL_LOWER } };
        int r = 0;

        for (size_t i = 0; !r && i < sizeof(steps) / sizeof(*steps); i++)
                if (steps[i].is_on)
                        r = vocabulary_builder_add_normal(m, steps[i].kind, NULL, NULL, 0);
        return error_pass(r);
}

int vocabulary_bert_cuts(struct vocabulary_builder *m)
{
        int r = vocabulary_builder_add_cut(m, "\\s+", CUT_DROP, false);

        return r ? error_pass(r)
                 : error_pass(vocabulary_builder_add_cut(m, vocabulary_sign, CUT_APART, false));
}

struct bert {
        struct vocabulary_builder m;
        const struct json_document *config; /* NULL: there is none */
        const struct side_files *side;
};

static uint32_t member(const struct bert *rd, const char *key)
{
        return rd->config ? json_member(rd->config, 0, key) : JSON_NONE;
}

static bool is_on(const struct bert *rd, const char *key, bool absent)
{
        bool on = absent;

        if (rd->config)
                json_bool(rd->config, member(rd, key), &on);
        return on;
}

/* A special token: its text, or an object with it as 'content'. */
static const char *special(const struct bert *rd, const char *key, const char *absent,
                           size_t *ret_bytes)
{
        const char *text = NULL;

        if (rd->config)
                text = json_string(rd->config, member(rd, key), ret_bytes);
        if (!text && rd->config)
                text = json_string(rd->config, json_member(rd->config, member(rd, key), "content"),
                                   ret_bytes);
        if (!text)
                *ret_bytes = strlen(absent);
        return text ? text : absent;
}

static int read_rules(struct bert *rd)
{
        bool lower = is_on(rd, "do_lower_case", true);
        int r = vocabulary_bert_normals(&rd->m, true, is_on(rd, "tokenize_chinese_chars", true),
                                        is_on(rd, "strip_accents", lower), lower);

        return r ? error_pass(r) : error_pass(vocabulary_bert_cuts(&rd->m));
}

static bool is_special(const struct bert *rd, const char *name, size_t bytes)
{
        static const char *const specials[][2] = { { "unk_token", "[UNK]" },
                                                   { "cls_token", "[CLS]" },
                                                   { "sep_token", "[SEP]" },
                                                   { "pad_token", "[PAD]" },
                                                   { "mask_token", "[MASK]" } };

        for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++) {
                size_t n;
                const char *text = special(rd, specials[i][0], specials[i][1], &n);

                if (n == bytes && !memcmp(text, name, n))
                        return true;
        }
        return false;
}

/* Of a word that occurs twice, the last line is meant. */
static int read_line(struct bert *rd, uint32_t id, const char *name, size_t bytes)
{
        uint32_t found = vocabulary_builder_find(&rd->m, name, bytes);

        if (found != VOCABULARY_NONE)
                return error_pass(vocabulary_builder_move_entry(&rd->m, found, id, name, bytes));
        if (is_special(rd, name, bytes))
                return error_pass(vocabulary_builder_add_entry(&rd->m, id, name, bytes,
                                                               ENTRY_CONTROL, SPELT_PLAIN, 0));
        return error_pass(vocabulary_builder_add_entry(&rd->m, id, name, bytes, ENTRY_NORMAL,
                                                       SPELT_WORDS, 0));
}

static int read_lines(struct bert *rd, const char *text, size_t bytes)
{
        int r = 0;

        for (uint32_t id = 0; !r && bytes; id++) {
                const char *end = memchr(text, '\n', bytes);
                size_t n = end ? (size_t)(end - text) : bytes, kept = n;

                while (kept && strchr(" \t\r", text[kept - 1]))
                        kept--;
                r = read_line(rd, id, text, kept);
                text += n + !!end;
                bytes -= n + !!end;
        }
        return error_pass(r);
}

static uint32_t find_special(const struct bert *rd, const char *key, const char *absent)
{
        size_t bytes;
        const char *text = special(rd, key, absent, &bytes);

        return vocabulary_builder_find(&rd->m, text, bytes);
}

static int read_all(struct bert *rd, const char *text, size_t bytes, char *why, size_t why_bytes)
{
        struct vocabulary *v = &rd->m.v;
        uint64_t lines = bytes && text[bytes - 1] != '\n';
        uint64_t ids;
        int r;

        for (size_t i = 0; i < bytes; i++)
                lines += text[i] == '\n';
        r = side_files_fit(rd->side, lines, &ids, why, why_bytes);
        if (!r)
                r = vocabulary_builder_begin(
                        &rd->m, ids, 0, bytes + lines + side_files_bytes(rd->side), why, why_bytes);
        if (r)
                return error_pass(r);
        v->kind = VOCABULARY_WORDPIECE;
        v->border = BORDER_FRONT;
        v->word_max = WORD_MAX;
        rd->m.mark = "##";
        rd->m.mark_bytes = 2;
        rd->m.cleans = true;
        if ((r = read_rules(rd)) || (r = read_lines(rd, text, bytes)) ||
            (r = side_tokens_add(rd->side, &rd->m)))
                return error_pass(r);
        v->unknown = find_special(rd, "unk_token", "[UNK]");
        v->bos = find_special(rd, "cls_token", "[CLS]");
        v->add_bos = v->bos != VOCABULARY_NONE;
        return 0;
}

int vocabulary_from_words(const char *text, size_t bytes, const char *config, size_t config_bytes,
                          const struct side_files *side, struct vocabulary **ret_vocabulary,
                          char *why, size_t why_bytes)
{
        struct bert rd = { .m = { .why = why, .why_bytes = why_bytes }, .side = side };
        struct json_document *json = NULL;
        int r = 0;

        if (config)
                r = error_raise(json_parse_python(config, config_bytes, CONFIG_NODES_MAX, &json,
                                                  why, why_bytes));
        if (r)
                return error_pass(errtext_prefix(why, why_bytes, r, "tokenizer_config.json"));
        rd.config = json;
        r = read_all(&rd, text, bytes, why, why_bytes);
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        json_free(json);
        return error_pass(r);
}
