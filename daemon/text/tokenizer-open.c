/*
 * Makes a tokenizer of a vocabulary.  It first checks everything that encoding relies on, even if
 * other code checked it before; then it builds the tables.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"
#include "daemon/text/tokenizer-state.h"
#include "daemon/why.h"

struct opening {
        const struct vocabulary *v;
        struct tokenizer *t;
        char *why;
        size_t why_bytes;
        uint64_t bytes; /* of all entries that have text, together */
};

#define refuse(o, ...) error_raise(why_say((o)->why, (o)->why_bytes, -EINVAL, __VA_ARGS__))

/* True if a token of this kind is text that a reader sees. */
static bool has_text(enum entry_kind kind)
{
        return kind != ENTRY_CONTROL && kind != ENTRY_UNKNOWN;
}

static bool mergeable(enum entry_kind kind)
{
        return kind == ENTRY_NORMAL || kind == ENTRY_USER || kind == ENTRY_UNUSED;
}

/* ---- checks ---- */

static int check_entry(struct opening *o, uint32_t id)
{
        const struct entry *e = &o->v->entries[id];

        if (e->kind >= ENTRY_KIND_N)
                return refuse(o, "token %u is of the unknown kind %u", id, e->kind);
        if (e->count > VOCABULARY_ENTRY_BYTES_MAX)
                return refuse(o, "token %u has %u bytes; at most %u may be", id, e->count,
                              VOCABULARY_ENTRY_BYTES_MAX);
        if (e->score != e->score)
                return refuse(o, "the score of token %u is no number", id);
        if (e->kind == ENTRY_BYTE && (e->count != 1 || o->v->kind != VOCABULARY_CHARACTERS))
                return refuse(o, "token %u is a byte, which cannot be here", id);
        if (has_text(e->kind))
                o->bytes += e->count;
        return 0;
}

static int check_merge(struct opening *o, uint32_t rank)
{
        const struct merge *m = &o->v->merges[rank];
        const uint32_t ids[] = { m->left, m->right, m->result };
        const struct entry *e[3];

        for (int i = 0; i < 3; i++) {
                if (ids[i] >= o->v->entry_count)
                        return refuse(o, "merge %u has token %u of %u", rank, ids[i],
                                      o->v->entry_count);
                e[i] = &o->v->entries[ids[i]];
                if (!mergeable((enum entry_kind)e[i]->kind) || !e[i]->count)
                        return refuse(o, "merge %u has token %u, which has no text of its own",
                                      rank, ids[i]);
        }
        if (e[0]->count + e[1]->count != e[2]->count ||
            memcmp(e[2]->bytes, e[0]->bytes, e[0]->count) ||
            memcmp(e[2]->bytes + e[0]->count, e[1]->bytes, e[1]->count))
                return refuse(o, "merge %u makes token %u, whose bytes are others", rank,
                              m->result);
        return 0;
}

static int check_id(struct opening *o, const char *name, uint32_t id)
{
        if (id != VOCABULARY_NONE && id >= o->v->entry_count)
                return refuse(o, "the %s token is %u; the vocabulary has %u", name, id,
                              o->v->entry_count);
        return 0;
}

static int check_vocabulary(struct opening *o, uint32_t vocab)
{
        const struct vocabulary *v = o->v;
        int r = 0;

        if (!v->entry_count || v->entry_count > vocab || vocab > VOCABULARY_ENTRIES_MAX)
                return refuse(o, "a vocabulary of %u tokens for a model of %u", v->entry_count,
                              vocab);
        if (v->splitter >= SPLITTER_N || v->merge_count > VOCABULARY_MERGES_MAX)
                return refuse(o, "%u merges, and the splitter %u", v->merge_count,
                              (unsigned)v->splitter);
        if (v->kind == VOCABULARY_CHARACTERS && v->normaliser != NORMALISER_NONE)
                return refuse(o, "a normaliser before characters is not served");
        for (uint32_t id = 0; !r && id < v->entry_count; id++)
                r = check_entry(o, id);
        for (uint32_t rank = 0; !r && rank < v->merge_count; rank++)
                r = check_merge(o, rank);
        if (!r)
                r = check_id(o, "bos", v->bos);
        if (!r)
                r = check_id(o, "eos", v->eos);
        if (!r)
                r = check_id(o, "unknown", v->unknown);
        if (!r && o->bytes > UINT32_MAX / 2)
                r = refuse(o, "its tokens have %llu bytes together", (unsigned long long)o->bytes);
        return r;
}

/* ---- tables ---- */

static int copy_pieces(struct opening *o)
{
        struct tokenizer *t = o->t;
        uint32_t at = 0;

        t->bytes = malloc(o->bytes + 1);
        t->begins = calloc((size_t)t->entry_count + 1, sizeof(*t->begins));
        t->strips = calloc(t->entry_count, sizeof(*t->strips));
        if (!t->bytes || !t->begins || !t->strips)
                return error_raise(-ENOMEM);
        for (uint32_t id = 0; id < t->entry_count; id++) {
                const struct entry *e = &o->v->entries[id];

                t->begins[id] = at;
                t->strips[id] = e->strips;
                if (!has_text((enum entry_kind)e->kind) || !e->count)
                        continue;
                memcpy(t->bytes + at, e->bytes, e->count);
                at += e->count;
                if (e->count > t->piece_max)
                        t->piece_max = e->count;
        }
        t->begins[t->entry_count] = at;
        return 0;
}

/* Finds the entries of single bytes.  Without them and an unknown token, a text might lack ids. */
static int find_bytes(struct opening *o)
{
        struct tokenizer *t = o->t;
        uint32_t found = 0;
        enum entry_kind kind = t->kind == VOCABULARY_BYTE_LEVEL ? ENTRY_NORMAL : ENTRY_BYTE;

        for (unsigned b = 0; b < 256; b++)
                t->byte_ids[b] = VOCABULARY_NONE;
        for (uint32_t id = 0; id < t->entry_count; id++) {
                const struct entry *e = &o->v->entries[id];
                uint32_t *slot;

                if (e->kind != kind || e->count != 1)
                        continue;
                slot = &t->byte_ids[(uint8_t)e->bytes[0]];
                if (*slot == VOCABULARY_NONE) {
                        *slot = id;
                        found++;
                }
        }
        if (!found && t->kind == VOCABULARY_CHARACTERS) {
                if (t->unknown == VOCABULARY_NONE)
                        return refuse(o, "it has neither tokens for bytes nor an unknown token");
                return 0;
        }
        for (unsigned b = 0; b < 256; b++)
                if (t->byte_ids[b] == VOCABULARY_NONE)
                        return refuse(o, "no token for the byte 0x%02x", b);
        return 0;
}

static int map_words(struct opening *o)
{
        struct tokenizer *t = o->t;
        int r;

        if (t->kind != VOCABULARY_CHARACTERS && !t->whole_wins)
                return 0;
        r = wordmap_new(t->entry_count, &t->words);
        for (uint32_t id = 0; !r && id < t->entry_count; id++) {
                size_t bytes;
                const char *piece = tokenizer_piece(t, id, &bytes);

                if (o->v->entries[id].kind == ENTRY_NORMAL && bytes)
                        wordmap_put(t->words, piece, bytes, id);
        }
        return error_pass(r);
}

static int match(struct opening *o, bool users, bool controls, struct matcher **ret_matcher)
{
        struct matcher_word *words = calloc(o->v->entry_count, sizeof(*words));
        uint32_t count = 0, bytes = 0;
        int r = 0;

        if (!words)
                return error_raise(-ENOMEM);
        for (uint32_t id = 0; id < o->v->entry_count; id++) {
                const struct entry *e = &o->v->entries[id];

                if (!e->count ||
                    !((e->kind == ENTRY_USER && users) || (e->kind == ENTRY_CONTROL && controls)))
                        continue;
                words[count++] = (struct matcher_word){ e->bytes, e->count, id };
                bytes += e->count; /* cannot overflow: one entry has 2^10 bytes at most */
                if (bytes > MATCHER_BYTES_MAX) {
                        free(words);
                        return refuse(o, "its added tokens have more than %u bytes together",
                                      MATCHER_BYTES_MAX);
                }
                if (!o->t->shortest_added || e->count < o->t->shortest_added)
                        o->t->shortest_added = e->count;
        }
        if (count)
                r = matcher_new(words, count, ret_matcher);
        free(words);
        return error_pass(r);
}

static int build(struct opening *o)
{
        int r;

        if ((r = copy_pieces(o)) || (r = find_bytes(o)) || (r = map_words(o)) ||
            (r = match(o, true, false, &o->t->users)) ||
            (r = match(o, !o->t->late_users, true, &o->t->added)))
                return error_pass(r);
        return error_pass(merge_book_init(&o->t->book, o->v));
}

int tokenizer_open(const struct vocabulary *v, uint32_t vocab, struct tokenizer **ret_tokenizer,
                   char *why, size_t why_bytes)
{
        struct opening o = { .v = v, .why = why, .why_bytes = why_bytes };
        int r;

        if (v->kind == VOCABULARY_BYTES && vocab < 256)
                return refuse(&o, "a vocabulary of %u ids cannot have every byte", vocab);
        if (v->kind == VOCABULARY_BYTES)
                return error_pass(tokenizer_open_bytes(vocab, ret_tokenizer));
        r = check_vocabulary(&o, vocab);
        if (r)
                return error_pass(r);
        o.t = calloc(1, sizeof(*o.t));
        if (!o.t)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its tables"));
        *o.t = (struct tokenizer){
                .kind = v->kind,
                .splitter = v->splitter,
                .normaliser = v->normaliser,
                .blank = v->blank,
                .blank_once = v->blank_once,
                .whole_wins = v->whole_wins,
                .unknown_run = v->unknown_run,
                .squeezes = v->squeezes,
                /* SentencePiece itself does it so; newer tokenizers cut at added tokens first. */
                .late_users = !v->merge_count && (v->blank == BLANK_FIRST || v->squeezes),
                .vocab = vocab,
                .entry_count = v->entry_count,
                .unknown = v->unknown,
        };
        r = build(&o);
        if (r) {
                if (r != -EINVAL)
                        why_say(why, why_bytes, r, "its tables: %s", strerror(-r));
                tokenizer_close(o.t);
                return error_pass(r);
        }
        *ret_tokenizer = o.t;
        return 0;
}

int tokenizer_open_bytes(uint32_t vocab, struct tokenizer **ret_tokenizer)
{
        struct tokenizer *t;

        if (vocab < 256)
                return error_raise(-EINVAL);
        t = calloc(1, sizeof(*t));
        if (!t)
                return error_raise(-ENOMEM);
        *t = (struct tokenizer){
                .kind = VOCABULARY_BYTES, .vocab = vocab, .entry_count = 256, .piece_max = 1
        };
        t->bytes = malloc(256);
        t->begins = calloc(257, sizeof(*t->begins));
        if (!t->bytes || !t->begins) {
                tokenizer_close(t);
                return error_raise(-ENOMEM);
        }
        for (uint32_t i = 0; i < 256; i++) {
                t->bytes[i] = (char)i;
                t->begins[i + 1] = i + 1;
        }
        *ret_tokenizer = t;
        return 0;
}

struct tokenizer *tokenizer_close(struct tokenizer *t)
{
        if (!t)
                return NULL;
        merge_book_deinit(&t->book);
        matcher_free(t->users);
        matcher_free(t->added);
        wordmap_free(t->words);
        free(t->strips);
        free(t->begins);
        free(t->bytes);
        free(t);
        return NULL;
}
