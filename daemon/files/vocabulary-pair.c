/*
 * Reads a vocabulary from two files: names and ids as one JSON object, and merges as lines.  GPT-2
 * used encoder.json and vocab.bpe; later models use vocab.json and merges.txt.
 */
#include <string.h>

#include "daemon/files/side-tokens.h"
#include "daemon/files/vocabulary-builder.h"
#include "daemon/files/vocabulary-json.h"
#include "daemon/files/vocabulary.h"

struct lines {
        const char *at;
        size_t left;
};

static bool next_line(struct lines *lines, const char **ret_line, size_t *ret_bytes)
{
        const char *end;

        if (!lines->left)
                return false;
        end = memchr(lines->at, '\n', lines->left);
        *ret_line = lines->at;
        *ret_bytes = end ? (size_t)(end - lines->at) : lines->left;
        lines->at += *ret_bytes + !!end;
        lines->left -= *ret_bytes + !!end;
        if (*ret_bytes && (*ret_line)[*ret_bytes - 1] == '\r')
                --*ret_bytes;
        return true;
}

/* The first line may state the file's version; it is not a merge. */
static struct lines lines_of(const char *text, size_t bytes)
{
        static const char version[] = "#version";
        struct lines lines = { text, bytes };
        const char *line;

        if (bytes >= strlen(version) && !memcmp(text, version, strlen(version)))
                next_line(&lines, &line, &bytes);
        return lines;
}

static uint64_t count_lines(struct lines lines)
{
        const char *line;
        uint64_t count = 0;
        size_t bytes;

        while (next_line(&lines, &line, &bytes))
                count += bytes != 0;
        return count;
}

static int read_merges(struct vocabulary_builder *m, struct lines lines)
{
        const char *line;
        size_t bytes;
        int r = 0;

        while (!r && next_line(&lines, &line, &bytes))
                if (bytes)
                        r = vocabulary_builder_add_merge_line(m, line, bytes);
        return error_pass(r);
}

static int read_both(struct vocabulary_builder *m, const struct json_document *json,
                     struct lines lines, const struct splitter *splitter,
                     const struct side_files *side, char *why, size_t why_bytes)
{
        struct json_words words;
        uint64_t ids = 0;
        int r = json_words_measure(json, 0, &words, why, why_bytes);

        if (!r)
                r = json_words_fit(&words, why, why_bytes);
        if (!r)
                r = side_files_fit(side, words.ids, &ids, why, why_bytes);
        if (!r)
                r = vocabulary_builder_begin(m, ids, count_lines(lines),
                                             words.bytes + side_files_bytes(side), why, why_bytes);
        if (!r)
                r = json_words_read(json, 0, m, SPELT_LETTERS, false);
        if (!r)
                r = read_merges(m, lines);
        if (!r)
                r = side_tokens_add(side, m);
        if (r)
                return error_pass(r);
        side_tokens_set_ends(side, m);
        m->v.kind = VOCABULARY_BYTE_LEVEL;
        m->v.whole_wins = splitter->whole_wins;
        if (side_files_has_class(side, "Qwen2Tokenizer")) /* it composes texts */
                r = vocabulary_builder_add_normal(m, NORMAL_NFC, NULL, NULL, 0);
        return r ? error_pass(r) : error_pass(vocabulary_builder_add_cuts(m, splitter));
}

int vocabulary_from_pair(const char *vocab, size_t vocab_bytes, const char *merges,
                         size_t merges_bytes, const char *splitter, const struct side_files *side,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        struct vocabulary_builder m = { 0 };
        struct json_document *json = NULL;
        int r;

        if (!splitter)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "a vocabulary with merges does not name its "
                                               "splitter: use tokenizer = PATH=SPLITTER"));
        if (!splitter_named(splitter))
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the splitter '%s' is not supported",
                                               shown(splitter).text));
        r = error_raise(
                json_parse(vocab, vocab_bytes, VOCABULARY_ENTRIES_MAX + 1, &json, why, why_bytes));
        if (!r)
                r = read_both(&m, json, lines_of(merges, merges_bytes), splitter_named(splitter),
                              side, why, why_bytes);
        if (!r)
                r = vocabulary_builder_finish(&m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&m);
        json_free(json);
        return error_pass(r);
}
