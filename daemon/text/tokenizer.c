/*
 * The steps from a text to ids:
 *
 *      text        is cut at added tokens (token-places.c) into fragments
 *      fragment    is normalised (normaliser.h), and its blanks are written as the vocabulary has
 *                  them (blanks.c); is cut at the added tokens that are only found then; and is
 *                  split into pre-tokens (cutter.h, word-encoder.c)
 *      pre-token   gets a blank at its border, if words have one (vocabulary_border); is cut into
 *                  chunks where no merge can join, which only makes the work smaller
 *      chunk       is found in the cache (chunk-cache.h), or is divided (wordpiece.h), or becomes
 *                  symbols
 *      symbols     bytes or characters, which are merged (merge.h)
 *
 * With scores, a pre-token is divided by them instead (unigram.h).
 */
#include "daemon/text/tokenizer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/chunk-cache.h"
#include "daemon/text/encoder.h"

#define TEXT_BYTES_MAX (1u << 30)

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
        return t->vocab;
}

size_t tokenizer_piece_max(const struct tokenizer *t)
{
        return t->piece_max;
}

bool tokenizer_divisible(const struct tokenizer *t)
{
        return t->kind == VOCABULARY_BYTES;
}

bool tokenizer_adds_blank(const struct tokenizer *t)
{
        return leads_with_blank(t) || t->border == BORDER_FRONT;
}

enum entry_kind tokenizer_kind(const struct tokenizer *t, uint32_t id)
{
        assert(id < t->vocab);
        return id < t->entry_count ? (enum entry_kind)t->kinds[id] : ENTRY_UNUSED;
}

const char *tokenizer_spelling(const struct tokenizer *t, uint32_t id, size_t *ret_bytes)
{
        assert(id < t->vocab);
        if (id >= t->entry_count) {
                *ret_bytes = 0;
                return "";
        }
        *ret_bytes = t->begins[id + 1] - t->begins[id] - is_spaced(t, id);
        return t->bytes + t->begins[id] + is_spaced(t, id);
}

const char *tokenizer_piece(const struct tokenizer *t, uint32_t id, size_t *ret_bytes)
{
        uint32_t begin;

        *ret_bytes = 0;
        if (!entry_has_text(tokenizer_kind(t, id)) || id >= t->entry_count)
                return "";
        begin = t->begins[id] + !!(t->matching[id] & ENTRY_JOINS);
        *ret_bytes = t->begins[id + 1] - begin;
        return t->bytes + begin;
}

/* Every id stands for at least one byte: of the normalised text, or of an inserted blank. */
size_t tokenizer_ids_max(const struct tokenizer *t, size_t text_bytes)
{
        size_t blanks = t->blank == BLANK_NEVER ? 0 : 1, most = text_bytes;

        if (t->normaliser.count)
                most = most * t->normaliser.growth + t->normaliser.prefix;
        if ((t->blank == BLANK_EACH || t->blank == BLANK_LAST) && t->shortest_added)
                blanks += text_bytes / (t->shortest_added + 1);
        /* A prefix stands before each fragment. */
        if (t->normaliser.prefix && t->shortest_added)
                most += text_bytes / t->shortest_added * t->normaliser.prefix;
        return most + blanks;
}

/* ---- fragments ---- */

static bool has_blanks(const struct tokenizer *t)
{
        return has_bars(t) || t->blank != BLANK_NEVER;
}

static int encode_written(struct encoder *e, const char *text, size_t bytes, bool first)
{
        (void)first;
        return error_pass(encoder_put_words(e, text, bytes));
}

/* Writes the blanks of a fragment as the vocabulary has them; then `next` encodes it. */
static int encode_blanks(struct encoder *e, const char *text, size_t bytes, bool first,
                         fragment_fn next)
{
        const struct tokenizer *t = e->t;
        char *copy = malloc(bytes + 2);
        int r;

        if (!copy)
                return error_raise(-ENOMEM);
        bytes = tokenizer_write_blanks(
                t, text, bytes, first || t->blank == BLANK_EACH || t->blank == BLANK_LAST, copy);
        r = next(e, copy, bytes, first);
        free(copy);
        return error_pass(r);
}

/* A fragment that was normalised, without late tokens. */
static int encode_plain(struct encoder *e, const char *text, size_t bytes, bool first)
{
        if (!bytes)
                return 0;
        if (has_blanks(e->t) && !e->t->late_blanks)
                return error_pass(
                        encode_blanks(e, text, bytes, e->is_first && first, encode_written));
        return error_pass(encode_written(e, text, bytes, first));
}

static int encode_normalised(struct encoder *e, const char *text, size_t bytes, bool first)
{
        const struct search late = { .users = e->t->late };

        (void)first;
        return error_pass(encoder_cut(e, &late, text, bytes, encode_plain));
}

static int encode_fragment(struct encoder *e, const char *text, size_t bytes, bool first)
{
        const struct tokenizer *t = e->t;
        char *copy = NULL;
        int r;

        if (!bytes)
                return 0;
        e->how->steps += bytes;
        e->is_first = first;
        r = normaliser_run(&t->normaliser, text, bytes, &copy, &bytes, &e->how->steps);
        if (r)
                return error_pass(r);
        if (has_blanks(t) && t->late_blanks)
                r = encode_blanks(e, copy ? copy : text, bytes, first, encode_normalised);
        else
                r = encode_normalised(e, copy ? copy : text, bytes, first);
        free(copy);
        return error_pass(r);
}

/* ---- one encoding ---- */

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t text_bytes,
                     struct encoding *how, uint32_t *ret_ids, size_t *ret_count)
{
        struct encoding plain = { 0 };
        struct encoder e = { .t = t,
                             .how = how ? how : &plain,
                             .ids = ret_ids,
                             .capacity = tokenizer_ids_max(t, text_bytes) };
        const struct search search = { .users = t->users,
                                       .added = t->added,
                                       .parts = e.how->controls,
                                       .part_count = e.how->control_count };
        int r = 0;

        assert(text_bytes < TEXT_BYTES_MAX);
        if (t->kind == VOCABULARY_BYTES) {
                for (size_t i = 0; i < text_bytes; i++)
                        encoder_put(&e, (uint8_t)text[i]);
        } else {
                r = chunk_cache_init(&e.chunk_cache, text_bytes);
                if (!r)
                        r = encoder_cut(&e, &search, text, text_bytes, encode_fragment);
        }
        free(e.places);
        free(e.known.bytes);
        free(e.bordered.bytes);
        free(e.letters.bytes);
        cutting_deinit(&e.cutting);
        cutting_deinit(&e.letter_cutting);
        chunk_cache_deinit(&e.chunk_cache);
        merge_work_deinit(&e.work);
        unigram_work_deinit(&e.unigram_work);
        if (r)
                return error_pass(r);
        *ret_count = e.count;
        return 0;
}
