/*
 * The steps from a text to ids:
 *
 *      text        is cut at added tokens (added-tokens.h) into fragments
 *      fragment    is normalised (normaliser.h), and its blanks are written as the vocabulary has
 *                  them; is cut at the added tokens that are only found then; and is split into
 *                  pre-tokens (cutter.h)
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
#include "daemon/text/tokenizer-state.h"
#include "daemon/text/unicode.h"

#define TEXT_BYTES_MAX (1u << 30)
#define BAR            0x2581u /* the character by which SentencePiece writes a blank */

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

/* Before a whole text; a blank at the border is one before each word. */
static bool leads_with_blank(const struct tokenizer *t)
{
        return t->blank == BLANK_FIRST || t->blank == BLANK_EACH;
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

/* ---- one encoding ---- */

/* An added token in the text. */
struct place {
        uint32_t at, bytes, id;
};

/* Room that is used again and again. */
struct copy {
        char *bytes;
        size_t capacity;
};

struct encoder {
        const struct tokenizer *t;
        struct encoding *how;
        uint32_t *ids;
        size_t count, capacity;
        bool was_unknown;
        bool is_dropping; /* the word has symbols without ids, which are dropped */
        bool is_first;    /* the fragment that is being encoded begins the text */
        struct cutting cutting;
        struct merge_work work;
        struct unigram_work unigram_work;
        struct { /* characters that are no entry, one behind the other */
                const char *text;
                size_t bytes;
        } unknown;
        struct chunk_cache chunk_cache; /* only of chunks in which every character had an entry */
        struct copy known;              /* a word without the symbols that have no ids */
        struct copy bordered;           /* a word with the blank at its border */
        struct copy letters;            /* a pre-token in letters */
        struct cutting letter_cutting;
        struct place *places; /* from the last one in the text to the first */
        size_t place_count, place_capacity;
};

static void put(struct encoder *e, uint32_t id)
{
        assert(e->count < e->capacity);
        e->ids[e->count++] = id;
        e->was_unknown = false;
}

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
                        put(e, t->byte_ids[(uint8_t)text[i]]);
                return;
        }
        assert(t->unknown != VOCABULARY_NONE);
        if (t->unknown_run && e->was_unknown)
                return;
        put(e, t->unknown);
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
                put(e, known->ids[i]);
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
                        put(e, work->ids[at]);
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
                put(e, id);
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
        put(e, id);
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
        put(e, id);
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

static int encode_words(struct encoder *e, const char *text, size_t bytes)
{
        const bool letters = e->t->letter_cutter.count;
        size_t begin, end;
        int r = cutting_begin(&e->cutting, &e->t->cutter, text, bytes, &e->how->steps);

        while (!r && (r = cutting_next(&e->cutting, &begin, &end)) == 1)
                r = letters ? encode_letters(e, text + begin, end - begin)
                            : encode_word(e, text + begin, end - begin);
        return error_pass(r);
}

static bool begins_blank(const char *text, size_t bytes)
{
        uint32_t code;

        if (!bytes)
                return false;
        unicode_next(text, bytes, &code);
        return code == ' ' || code == BAR;
}

static size_t strip_left(const char *text, size_t low, size_t at)
{
        while (at > low) {
                size_t begin = at - 1;
                uint32_t code;

                while (begin > low && at - begin < 4 && ((uint8_t)text[begin] & 0xC0) == 0x80)
                        begin--;
                if (unicode_next(text + begin, at - begin, &code) != at - begin ||
                    unicode_kind(code) != UNICODE_BLANK)
                        break;
                at = begin;
        }
        return at;
}

/* Whether blanks are written as bars, so that a bar in the text is one. */
static bool has_bars(const struct tokenizer *t)
{
        return t->kind == VOCABULARY_UNIGRAM ||
               (t->kind == VOCABULARY_CHARACTERS && !t->keeps_bars);
}

/* A blank that is taken away where there is one already. */
static bool is_extra(const struct tokenizer *t, uint32_t code)
{
        return t->squeezes_all ? unicode_blank(code) : t->squeezes && code == ' ';
}

/* Writes the text without extra blanks, and with blanks for bars.  Returns the bytes written. */
static size_t write_text(const struct tokenizer *t, const char *text, size_t bytes, char *to)
{
        size_t count = 0;
        bool was_blank = false;

        for (size_t at = 0, n; at < bytes; at += n) {
                uint32_t code;

                n = unicode_next(text + at, bytes - at, &code);
                if (is_extra(t, code)) {
                        if (!was_blank)
                                to[count++] = ' ';
                        was_blank = true;
                } else if (code == BAR && has_bars(t)) {
                        if (!was_blank || !t->squeezes_all)
                                to[count++] = ' ';
                        was_blank = false;
                } else {
                        memcpy(to + count, text + at, n);
                        count += n;
                        was_blank = false;
                }
        }
        return count;
}

size_t tokenizer_write_blanks(const struct tokenizer *t, const char *text, size_t bytes, bool lead,
                              char *to)
{
        size_t count = 0, begin = 0, n;
        uint32_t code;

        while (begin < bytes) {
                n = unicode_next(text + begin, bytes - begin, &code);
                if (!is_extra(t, code))
                        break;
                begin += n;
        }
        lead = lead && (begin < bytes || t->blank_alone);
        if (lead && leads_with_blank(t) &&
            !(t->blank_once && begins_blank(text + begin, bytes - begin)))
                to[count++] = ' ';
        count += write_text(t, text + begin, bytes - begin, to + count);
        /*
         * SentencePiece strips the end last of all, so blanks that were bars, and the one in front,
         * are stripped, too.
         */
        while (t->squeezes && count && to[count - 1] == ' ')
                count--;
        if (t->squeezes_all && bytes && strip_left(text, begin, bytes) < bytes && count &&
            to[count - 1] == ' ')
                count--;
        if (lead && t->blank == BLANK_LAST)
                to[count++] = ' ';
        return count;
}

/* ---- added tokens ---- */

static int note_place(struct encoder *e, size_t at, uint32_t bytes, uint32_t id)
{
        if (e->place_count == e->place_capacity) {
                size_t capacity = e->place_capacity ? 2 * e->place_capacity : 64;
                struct place *places = reallocarray(e->places, capacity, sizeof(*places));

                if (!places)
                        return error_raise(-ENOMEM);
                e->places = places;
                e->place_capacity = capacity;
        }
        e->places[e->place_count++] = (struct place){ (uint32_t)at, bytes, id };
        return 0;
}

/* The search for added tokens on its way back through a text. */
struct walk {
        const struct added_tokens *added_tokens; /* NULL: it finds nothing */
        uint32_t state, id, bytes; /* id and bytes of the word found here; bytes 0: none */
};

static void walk_step(struct walk *walk, char byte, uint64_t *steps)
{
        walk->bytes = 0;
        if (!walk->added_tokens)
                return;
        walk->state = added_tokens_step(walk->added_tokens, walk->state, byte, steps);
        walk->id = added_token(walk->added_tokens, walk->state, &walk->bytes);
        if (walk->id == UINT32_MAX)
                walk->bytes = 0;
}

/* Whether a character of a word is before the place, or behind it. */
static bool word_before(const struct tokenizer *t, const char *text, size_t at)
{
        size_t begin = at - 1;
        uint32_t code;

        while (begin && at - begin < 4 && ((uint8_t)text[begin] & 0xC0) == 0x80)
                begin--;
        unicode_next(text + begin, at - begin, &code);
        return charset_has(&t->word, code);
}

static bool word_behind(const struct tokenizer *t, const char *text, size_t bytes, size_t at)
{
        uint32_t code;

        unicode_next(text + at, bytes - at, &code);
        return charset_has(&t->word, code);
}

static bool is_alone(const struct tokenizer *t, const char *text, size_t bytes,
                     const struct place *place)
{
        size_t end = place->at + place->bytes;

        return (!place->at || !word_before(t, text, place->at)) &&
               (end == bytes || !word_behind(t, text, bytes, end));
}

/* Where added tokens are searched: USER entries anywhere, CONTROL entries in parts of the text. */
struct search {
        const struct added_tokens *users, *added; /* see tokenizer-state.h */
        const struct text_part *parts;
        size_t part_count;
};

/*
 * Two walks side by side.  `anywhere` sees all of the text.  `inside` sees one part alone: it
 * enters the part at its end, as if the text ended there.  So it finds only tokens that lie wholly
 * in the part, not those that only begin or end there.  As always, the longer match wins.
 */
static int find_added(struct encoder *e, const struct search *search, const char *text,
                      size_t bytes)
{
        struct walk anywhere = { .added_tokens = search->users },
                    inside = { .added_tokens = search->added };
        const struct text_part *parts = search->parts;
        size_t left = search->part_count;
        uint64_t *steps = &e->how->steps;
        int r = 0;

        for (size_t at = bytes; !r && at;) {
                at--;
                if (encoding_cancelled(e->how))
                        return -ECANCELED;
                for (; left && at < parts[left - 1].begin; left--)
                        inside.state = 0;
                walk_step(&anywhere, text[at], steps);
                inside.bytes = 0;
                if (left && at < parts[left - 1].end)
                        walk_step(&inside, text[at], steps);
                if (inside.bytes && inside.bytes >= anywhere.bytes)
                        r = note_place(e, at, inside.bytes, inside.id);
                else if (anywhere.bytes)
                        r = note_place(e, at, anywhere.bytes, anywhere.id);
        }
        return error_pass(r);
}

static size_t strip_right(const char *text, size_t at, size_t bytes)
{
        while (at < bytes) {
                uint32_t code;
                size_t n = unicode_next(text + at, bytes - at, &code);

                if (unicode_kind(code) != UNICODE_BLANK)
                        break;
                at += n;
        }
        return at;
}

typedef int (*fragment_fn)(struct encoder *e, const char *text, size_t bytes, bool first);

/* Added tokens become ids; the text between them is passed to `fragment`. */
static int cut(struct encoder *e, const struct search *search, const char *text, size_t bytes,
               fragment_fn fragment)
{
        const uint8_t *matching = e->t->matching;
        size_t below = e->place_count, done = 0, end;
        int r = 0;

        if (search->users || search->part_count)
                r = find_added(e, search, text, bytes);
        while (!r && e->place_count > below) {
                const struct place place = e->places[--e->place_count];

                if (place.at < done ||
                    (matching[place.id] & ENTRY_ALONE && !is_alone(e->t, text, bytes, &place)))
                        continue;
                end = place.at;
                if (matching[place.id] & ENTRY_STRIPS_LEFT)
                        end = strip_left(text, done, end);
                r = fragment(e, text + done, end - done, !done);
                if (r)
                        break;
                put(e, place.id);
                done = place.at + place.bytes;
                if (matching[place.id] & ENTRY_STRIPS_RIGHT)
                        done = strip_right(text, done, bytes);
        }
        if (!r)
                r = fragment(e, text + done, bytes - done, !done);
        return error_pass(r);
}

/* ---- fragments ---- */

static bool has_blanks(const struct tokenizer *t)
{
        return has_bars(t) || t->blank != BLANK_NEVER;
}

static int encode_written(struct encoder *e, const char *text, size_t bytes, bool first)
{
        (void)first;
        return error_pass(encode_words(e, text, bytes));
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
        return error_pass(cut(e, &late, text, bytes, encode_plain));
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
                        put(&e, (uint8_t)text[i]);
        } else {
                r = chunk_cache_init(&e.chunk_cache, text_bytes);
                if (!r)
                        r = cut(&e, &search, text, text_bytes, encode_fragment);
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
