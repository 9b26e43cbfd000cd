/*
 * A fragment is split into pre-tokens, these into chunks, and chunks into symbols, which are
 * merged; tokenizer.c has the whole way.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/encoder.h"
#include "daemon/text/unicode.h"

static int copy_grow(struct copy *copy, size_t bytes)
{
        char *more;

        if (copy->capacity >= bytes)
                return 0;
        more = realloc(copy->bytes, 2 * bytes);
        if (!more)
                return error_raise(-ENOMEM);
        *copy = (struct copy){ more, 2 * bytes };
        return 0;
}

/*
 * A symbol that has no entry: its bytes, if all of them have one; else the unknown token.  If there
 * is none, keep_known() has left the symbol out.
 */
static void put_foreign(struct encoder *e, const char *text, size_t bytes)
{
        const struct tokenizer *t = e->t;
        size_t known = 0;

        while (!t->border && known < bytes && t->byte_ids[(uint8_t)text[known]] != VOCABULARY_NONE)
                known++;
        if (known == bytes) {
                for (size_t i = 0; i < bytes; i++)
                        encoder_put(e, t->byte_ids[(uint8_t)text[i]]);
                return;
        }
        assert(t->unknown != VOCABULARY_NONE);
        if (t->unknown_run && e->was_unknown)
                return;
        encoder_put(e, t->unknown);
        e->was_unknown = true;
}

static void fill_bytes(struct encoder *e, const char *text, size_t bytes)
{
        for (uint32_t i = 0; i < bytes; i++) {
                e->work.ids[i] = e->t->byte_ids[(uint8_t)text[i]];
                e->work.nexts[i] = i + 1;
        }
}

/* Bytes of the symbol there: a byte or a character, with the blank at the border of the word. */
static size_t symbol_bytes(const struct tokenizer *t, const char *word, size_t bytes, size_t at)
{
        uint32_t code;
        size_t n = 1;

        if (t->border == BORDER_FRONT && !at && bytes > 1 && *word == ' ')
                n += unicode_next(word + 1, bytes - 1, &code);
        else if (t->kind == VOCABULARY_CHARACTERS)
                n = unicode_next(word + at, bytes - at, &code);
        if (t->border == BORDER_BEHIND && at + n + 1 == bytes && word[at + n] == ' ')
                n++;
        return n;
}

static uint32_t symbol_id(const struct tokenizer *t, const char *symbol, size_t bytes)
{
        if (t->kind == VOCABULARY_BYTE_LEVEL && bytes == 1)
                return t->byte_ids[(uint8_t)*symbol];
        return wordmap_get(t->words, symbol, bytes);
}

static bool has_ids(const struct tokenizer *t, const char *symbol, size_t bytes)
{
        if (symbol_id(t, symbol, bytes) != VOCABULARY_NONE)
                return true;
        for (size_t i = 0; i < bytes; i++)
                if (t->border || t->byte_ids[(uint8_t)symbol[i]] == VOCABULARY_NONE)
                        return false;
        return true;
}

static bool drops_some(const struct tokenizer *t, const char *word, size_t bytes)
{
        for (size_t at = 0, n; t->drops && at < bytes; at += n) {
                n = symbol_bytes(t, word, bytes, at);
                if (!has_ids(t, word + at, n))
                        return true;
        }
        return false;
}

static void fill_symbols(struct encoder *e, const char *text, size_t bytes)
{
        for (size_t i = 0, n; i < bytes; i += n) {
                n = symbol_bytes(e->t, text, bytes, i);
                e->work.ids[i] = symbol_id(e->t, text + i, n);
                e->work.nexts[i] = (uint32_t)(i + n);
        }
}

/* Fills the symbols that have ids, and copies their text.  Those beside a dropped one may merge. */
static int keep_known(struct encoder *e, const char **text, size_t *bytes)
{
        size_t count = 0;
        int r = copy_grow(&e->known, *bytes);

        if (r)
                return error_pass(r);
        for (size_t at = 0, n; at < *bytes; at += n) {
                n = symbol_bytes(e->t, *text, *bytes, at);
                if (!has_ids(e->t, *text + at, n))
                        continue;
                memcpy(e->known.bytes + count, *text + at, n);
                e->work.ids[count] = symbol_id(e->t, *text + at, n);
                e->work.nexts[count] = (uint32_t)(count + n);
                count += n;
        }
        *text = e->known.bytes;
        *bytes = count;
        return 0;
}

static int merge_chunk(struct encoder *e, const char **text, size_t *bytes)
{
        int r = 0;

        if (e->is_dropping)
                r = keep_known(e, text, bytes);
        else if (e->t->kind == VOCABULARY_BYTE_LEVEL && !e->t->border)
                fill_bytes(e, *text, *bytes);
        else
                fill_symbols(e, *text, *bytes);
        if (r)
                return error_pass(r);
        return merge_run(&e->t->merges, e->t->words, &e->work, *text, *bytes, e->how);
}

static size_t count_characters(const char *text, size_t bytes)
{
        size_t count = 0;
        uint32_t code;

        for (size_t at = 0; at < bytes; at += unicode_next(text + at, bytes - at, &code))
                count++;
        return count;
}

/* A word that cannot be divided becomes one symbol without an entry. */
static void divide_word(struct encoder *e, const char *word, size_t bytes)
{
        const struct tokenizer *t = e->t;
        struct merge_work *work = &e->work;

        e->how->steps += bytes;
        if ((!t->word_max || count_characters(word, bytes) - 1 <= t->word_max) &&
            wordpiece_divide(&t->wordpiece, word, bytes, work->ids, work->nexts, &e->how->steps))
                return;
        work->ids[0] = VOCABULARY_NONE;
        work->nexts[0] = (uint32_t)bytes;
}

static int encode_chunk(struct encoder *e, const char *text, size_t bytes)
{
        const struct cached_chunk *known = chunk_cache_find(&e->chunk_cache, text, bytes);
        const struct merge_work *work = &e->work;
        const size_t before = e->count;
        const char *kept = text;
        size_t kept_bytes = bytes;
        bool is_foreign = false;
        int r;

        for (size_t i = 0; known && i < known->id_count; i++)
                encoder_put(e, known->ids[i]);
        if (known)
                return 0;
        r = merge_work_grow(&e->work, bytes);
        if (!r && e->t->kind == VOCABULARY_WORDPIECE)
                divide_word(e, text, bytes);
        else if (!r)
                r = merge_chunk(e, &kept, &kept_bytes);
        if (r)
                return error_pass(r);
        for (uint32_t at = 0; at < kept_bytes; at = work->nexts[at]) {
                if (work->ids[at] != VOCABULARY_NONE) {
                        encoder_put(e, work->ids[at]);
                } else if (e->t->kind != VOCABULARY_WORDPIECE || e->t->unknown != VOCABULARY_NONE) {
                        put_foreign(e, kept + at, work->nexts[at] - at);
                        is_foreign = true;
                }
        }
        if (!is_foreign)
                chunk_cache_put(&e->chunk_cache, text, bytes, e->ids + before, e->count - before);
        return 0;
}

/* The end of the first chunk.  No character is cut, and no two bytes that a merge might join. */
static size_t chunk_end(const struct encoder *e, const char *text, size_t bytes)
{
        const struct merge_table *merges = &e->t->merges;
        size_t at = 0;
        uint32_t code;

        if (e->t->border || e->is_dropping)
                return bytes; /* the border must be told, and what a dropped symbol joins */
        do {
                at += e->t->kind == VOCABULARY_BYTE_LEVEL
                              ? 1
                              : unicode_next(text + at, bytes - at, &code);
        } while (at < bytes && !merge_never_joins(merges, text[at - 1], text[at]));
        return at;
}

/* ---- by scores ---- */

static void put_unknown(struct encoder *e)
{
        size_t bytes = e->unknown.bytes;
        uint32_t id;

        e->unknown.bytes = 0;
        if (!bytes)
                return;
        /* Together they may be an entry, which these scores do not prefer. */
        id = unigram_find(e->t->unigram, e->unknown.text, bytes);
        if (id != VOCABULARY_NONE)
                encoder_put(e, id);
        else
                put_foreign(e, e->unknown.text, bytes);
}

static void put_scored(void *arg, uint32_t id, const char *text, size_t bytes)
{
        struct encoder *e = arg;

        if (id == e->t->unknown) {
                if (!e->unknown.bytes)
                        e->unknown.text = text;
                e->unknown.bytes += bytes;
                return;
        }
        put_unknown(e);
        encoder_put(e, id);
}

static int encode_scored(struct encoder *e, const char *text, size_t bytes)
{
        int r = unigram_run(e->t->unigram, &e->unigram_work, text, bytes, e->how, put_scored, e);

        put_unknown(e);
        return error_pass(r);
}

/* Copies the word with the blank at its border. */
static int add_border(struct encoder *e, const char **text, size_t *bytes)
{
        bool front = e->t->border == BORDER_FRONT;
        int r = copy_grow(&e->bordered, *bytes + 1);

        if (r)
                return error_pass(r);
        e->bordered.bytes[front ? 0 : *bytes] = ' ';
        memcpy(e->bordered.bytes + front, *text, *bytes);
        *text = e->bordered.bytes;
        ++*bytes;
        return 0;
}

static bool encode_whole(struct encoder *e, const char *text, size_t bytes)
{
        uint32_t id;

        if (!e->t->whole_wins || bytes > e->t->piece_max)
                return false;
        e->how->steps += bytes / 8;
        id = wordmap_get(e->t->words, text, bytes);
        if (id == WORDMAP_NONE)
                return false;
        encoder_put(e, id);
        return true;
}

static int encode_word(struct encoder *e, const char *text, size_t bytes)
{
        size_t n;
        int r = 0;

        e->was_unknown = false;
        if (e->t->unigram)
                return error_pass(encode_scored(e, text, bytes));
        if (e->t->border == BORDER_FRONT)
                r = add_border(e, &text, &bytes);
        if (!r && encode_whole(e, text, bytes))
                return 0;
        if (!r && e->t->border == BORDER_BEHIND)
                r = add_border(e, &text, &bytes);
        if (r)
                return error_pass(r);
        e->is_dropping = drops_some(e->t, text, bytes);
        for (size_t at = 0; at < bytes; at += n) {
                n = chunk_end(e, text + at, bytes - at);
                e->how->steps += n;
                if (encoding_cancelled(e->how))
                        return -ECANCELED;
                r = encode_chunk(e, text + at, n);
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* GPT-2's letter of a byte; the order of the bytes without a printable character is theirs, too. */
static uint32_t letter_of(uint8_t byte)
{
        if (byte <= 32)
                return 256u + byte;
        if (byte >= 127 && byte <= 160)
                return 289u + byte - 127u;
        return byte == 173 ? 323u : byte;
}

/* Writes the pre-token in letters, cuts that, and encodes the bytes of each piece. */
static int encode_letters(struct encoder *e, const char *text, size_t bytes)
{
        size_t count = 0, begin, end, at = 0, n;
        uint32_t code;
        int r = copy_grow(&e->letters, 2 * bytes);

        if (r)
                return error_pass(r);
        for (size_t i = 0; i < bytes; i++)
                count += unicode_write(letter_of((uint8_t)text[i]), e->letters.bytes + count);
        r = cutting_begin(&e->letter_cutting, &e->t->letter_cutter, e->letters.bytes, count,
                          &e->how->steps);
        for (size_t byte = 0; !r && (r = cutting_next(&e->letter_cutting, &begin, &end)) == 1;) {
                size_t first;

                for (; at < begin; at += unicode_next(e->letters.bytes + at, count - at, &code))
                        byte++;
                first = byte;
                for (; at < end; at += n, byte++)
                        n = unicode_next(e->letters.bytes + at, count - at, &code);
                r = encode_word(e, text + first, byte - first);
        }
        return error_pass(r);
}

int encoder_put_words(struct encoder *e, const char *text, size_t bytes)
{
        const bool letters = e->t->letter_cutter.count;
        size_t begin, end;
        int r = cutting_begin(&e->cutting, &e->t->cutter, text, bytes, &e->how->steps);

        while (!r && (r = cutting_next(&e->cutting, &begin, &end)) == 1)
                r = letters ? encode_letters(e, text + begin, end - begin)
                            : encode_word(e, text + begin, end - begin);
        return error_pass(r);
}
