/* The decoder and the post_processor of tokenizer.json. */
#include "daemon/files/vocabulary-json-parts.h"

#include <string.h>

static bool is_mark(const struct json_tokenizer *rd, uint32_t step, const char *key,
                    const char *absent)
{
        size_t bytes = strlen(absent);
        const char *mark = json_string(rd->json, json_tokenizer_member(rd, step, key), &bytes);

        return bytes == rd->m.mark_bytes && !memcmp(mark ? mark : absent, rd->m.mark, bytes);
}

/*
 * The decoder of words with a mark at their border.  It must have the model's mark, as the pieces
 * are the text that it would make.  An absent one makes no text that could be read; then the pieces
 * are as if it were there.
 */
static int read_words_decoder(struct json_tokenizer *rd, uint32_t step)
{
        bool front = rd->m.v.border == BORDER_FRONT;

        if (front && json_tokenizer_is(rd, step, "WordPiece") &&
            (!rd->m.mark_bytes || is_mark(rd, step, "prefix", "##"))) {
                rd->m.cleans = json_tokenizer_is_on(rd, step, "cleanup", true);
                return 0;
        }
        if (rd->m.v.border == BORDER_BEHIND && json_tokenizer_is(rd, step, "BPEDecoder") &&
            is_mark(rd, step, "suffix", "</w>"))
                return 0;
        return json_tokenizer_refuse(rd, "decoder", step);
}

/* One step.  *ret_bars: it makes blanks of bars. */
static int read_decoder(struct json_tokenizer *rd, uint32_t step, bool *ret_bars)
{
        if (json_tokenizer_is(rd, step, "WordPiece") || json_tokenizer_is(rd, step, "BPEDecoder"))
                return error_pass(read_words_decoder(rd, step));
        if (json_tokenizer_replaces(rd, step, BAR, " ") ||
            (json_tokenizer_is(rd, step, "Metaspace") &&
             json_tokenizer_says(rd, step, "replacement", BAR))) {
                *ret_bars = true;
                return 0;
        }
        if (json_tokenizer_is(rd, step, "ByteFallback") || json_tokenizer_is(rd, step, "Fuse") ||
            (json_tokenizer_is(rd, step, "Strip") && json_tokenizer_says(rd, step, "content", " ")))
                return 0;
        return json_tokenizer_refuse(rd, "decoder", step);
}

/*
 * The decoder says how pieces are written; without one, what writes them says it.  The blank in
 * front, which Strip removes again, is handled by the caller: tokenizer_adds_blank().
 */
int json_tokenizer_decoder(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "decoder"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "decoders");
        bool bars = json_tokenizer_has(rd, "pre_tokenizer", "pretokenizers", "Metaspace");
        int r = 0;

        rd->letters = json_tokenizer_is(rd, part, "ByteLevel") ||
                      (json_tokenizer_is_null(rd, part) &&
                       json_tokenizer_has(rd, "pre_tokenizer", "pretokenizers", "ByteLevel"));
        if (rd->letters)
                return 0;
        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE)
                r = read_decoder(rd, step, &bars);
        rd->plain = !bars;
        return error_pass(r);
}

/* ---- what stands around a text ---- */

/* The id of a token that a template names. */
static bool read_special(struct json_tokenizer *rd, uint32_t node, uint32_t at, uint32_t *ret_id)
{
        uint32_t token = json_tokenizer_member(rd, at, "SpecialToken"), ids;
        const char *name = json_string(rd->json, json_tokenizer_member(rd, token, "id"), NULL);
        uint64_t id;

        if (!name)
                return false;
        ids = json_tokenizer_member(
                rd,
                json_tokenizer_member(rd, json_tokenizer_member(rd, node, "special_tokens"), name),
                "ids");
        if (json_count(rd->json, ids) != 1 ||
            !json_whole(rd->json, json_first(rd->json, ids), &id) || id >= rd->m.entry_capacity)
                return false;
        *ret_id = (uint32_t)id;
        return true;
}

static bool add_end(struct json_tokenizer *rd, uint32_t id)
{
        struct vocabulary *v = &rd->m.v;

        if (v->end_count == VOCABULARY_ENDS_MAX)
                return false;
        v->ends[v->end_count++] = id;
        return true;
}

/* One token may stand before the text, and some may follow it. */
static int read_template(struct json_tokenizer *rd, uint32_t node)
{
        uint32_t at = json_first(rd->json, json_tokenizer_member(rd, node, "single")), id;

        if (read_special(rd, node, at, &id)) {
                rd->m.v.bos = id;
                rd->m.v.add_bos = true;
                at = json_next(rd->json, at);
        }
        if (json_tokenizer_member(rd, at, "Sequence") == JSON_NONE)
                return json_tokenizer_refuse(rd, "post_processor", node);
        while ((at = json_next(rd->json, at)) != JSON_NONE)
                if (!read_special(rd, node, at, &id) || !add_end(rd, id))
                        return json_tokenizer_refuse(rd, "post_processor", node);
        return 0;
}

/* The second element of ["</s>", 2]. */
static bool read_pair(struct json_tokenizer *rd, uint32_t node, const char *key, uint32_t *ret_id)
{
        uint32_t pair = json_tokenizer_member(rd, node, key);
        uint64_t id;

        if (json_count(rd->json, pair) != 2 ||
            !json_whole(rd->json, json_next(rd->json, json_first(rd->json, pair)), &id) ||
            id >= rd->m.entry_capacity)
                return false;
        *ret_id = (uint32_t)id;
        return true;
}

/* BERT's and RoBERTa's: `cls` before a text, and `sep` behind it. */
static int read_bert(struct json_tokenizer *rd, uint32_t node)
{
        uint32_t id;

        if (!read_pair(rd, node, "cls", &rd->m.v.bos) || !read_pair(rd, node, "sep", &id) ||
            !add_end(rd, id))
                return json_tokenizer_refuse(rd, "post_processor", node);
        rd->m.v.add_bos = true;
        return 0;
}

int json_tokenizer_ends(struct json_tokenizer *rd)
{
        struct json_steps steps = json_tokenizer_steps(
                rd, json_tokenizer_member(rd, 0, "post_processor"), "processors");
        uint32_t step;
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                if (json_tokenizer_is(rd, step, "TemplateProcessing"))
                        r = read_template(rd, step);
                else if (json_tokenizer_is(rd, step, "RobertaProcessing") ||
                         json_tokenizer_is(rd, step, "BertProcessing"))
                        r = read_bert(rd, step);
                else if (!json_tokenizer_is(rd, step, "ByteLevel"))
                        r = json_tokenizer_refuse(rd, "post_processor", step);
        }
        return error_pass(r);
}
