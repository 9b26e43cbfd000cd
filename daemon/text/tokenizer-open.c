/*
 * Makes a tokenizer of a vocabulary.  It first checks everything that encoding relies on, even if
 * other code checked it before; then it builds the tables.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/tokenizer-state.h"
#include "daemon/text/tokenizer.h"

struct build {
        const struct vocabulary *v;
        struct tokenizer *t;
        char *why;
        size_t why_bytes;
        uint64_t bytes; /* of all entries together */
};

#define refuse(b, ...) error_raise(errtext_set((b)->why, (b)->why_bytes, -EINVAL, __VA_ARGS__))

static bool mergeable(enum entry_kind kind)
{
        return kind == ENTRY_NORMAL || kind == ENTRY_USER || kind == ENTRY_UNUSED;
}

/* ---- checks ---- */

static int check_entry(struct build *b, uint32_t id)
{
        const struct entry *e = &b->v->entries[id];

        if (e->kind >= ENTRY_KIND_N)
                return refuse(b, "token %u is of the unknown kind %u", id, e->kind);
        if (e->count > VOCABULARY_ENTRY_BYTES_MAX)
                return refuse(b, "token %u has %u bytes, the limit is %u", id, e->count,
                              VOCABULARY_ENTRY_BYTES_MAX);
        if (e->score != e->score)
                return refuse(b, "the score of token %u is not a number", id);
        if (e->kind == ENTRY_BYTE && (e->count != 1 || b->v->kind == VOCABULARY_BYTE_LEVEL))
                return refuse(b, "token %u is a byte, which this kind of vocabulary does not have",
                              id);
        b->bytes += e->count + 1;
        return 0;
}

static int check_border(struct build *b)
{
        const struct vocabulary *v = b->v;

        if (v->border > BORDER_BEHIND ||
            (v->kind == VOCABULARY_WORDPIECE && (v->border != BORDER_FRONT || v->merge_count)))
                return refuse(b, "%u merges, and words of the kind %u", v->merge_count,
                              (unsigned)v->border);
        if (v->kind == VOCABULARY_BYTE_LEVEL && v->border == BORDER_FRONT)
                return refuse(b, "tokens of bytes that begin a word differ from others");
        for (uint32_t i = 0; i < v->cut_count; i++)
                if (v->kind != VOCABULARY_BYTE_LEVEL
                            ? v->cuts[i].letters
                            : i && v->cuts[i - 1].letters && !v->cuts[i].letters)
                        return refuse(b, "a text is split in letters, and then without them");
        for (uint32_t id = 0; id < v->entry_count; id++)
                if (v->entries[id].matching & ENTRY_JOINS &&
                    (v->border != BORDER_FRONT ||
                     (v->entries[id].kind != ENTRY_USER &&
                      (!v->entries[id].count || *v->entries[id].bytes != ' '))))
                        return refuse(b, "token %u has no blank in front to leave out", id);
        return 0;
}

static int check_merge(struct build *b, uint32_t rank)
{
        const struct merge *m = &b->v->merges[rank];
        const uint32_t ids[] = { m->left, m->right, m->result };
        const struct entry *e[3];

        for (int i = 0; i < 3; i++) {
                if (ids[i] >= b->v->entry_count)
                        return refuse(b, "merge %u has token %u of %u", rank, ids[i],
                                      b->v->entry_count);
                e[i] = &b->v->entries[ids[i]];
                if (!mergeable((enum entry_kind)e[i]->kind) || !e[i]->count)
                        return refuse(b, "merge %u has token %u, which has no text of its own",
                                      rank, ids[i]);
        }
        if (e[0]->count + e[1]->count != e[2]->count ||
            memcmp(e[2]->bytes, e[0]->bytes, e[0]->count) ||
            memcmp(e[2]->bytes + e[0]->count, e[1]->bytes, e[1]->count))
                return refuse(b, "merge %u gives token %u, whose bytes differ", rank, m->result);
        return 0;
}

static int check_id(struct build *b, const char *name, uint32_t id)
{
        if (id != VOCABULARY_NONE && id >= b->v->entry_count)
                return refuse(b, "the %s token is %u; the vocabulary has %u", name, id,
                              b->v->entry_count);
        return 0;
}

static int check_vocabulary(struct build *b, uint32_t vocab)
{
        const struct vocabulary *v = b->v;
        int r = 0;

        if (!v->entry_count || v->entry_count > vocab || vocab > VOCABULARY_ENTRIES_MAX)
                return refuse(b, "a vocabulary of %u tokens for a model of %u", v->entry_count,
                              vocab);
        if (v->unknown_score != v->unknown_score || v->end_count > VOCABULARY_ENDS_MAX)
                return refuse(b,
                              "the score of its unknown token is not a number, or %u tokens "
                              "end a text",
                              v->end_count);
        if (v->normal_count > VOCABULARY_NORMALS_MAX)
                return refuse(b, "%u steps that normalise a text", v->normal_count);
        if (v->cut_count > VOCABULARY_CUTS_MAX || v->merge_count > VOCABULARY_MERGES_MAX)
                return refuse(b, "%u merges, and %u ways to split", v->merge_count, v->cut_count);
        for (uint32_t id = 0; !r && id < v->entry_count; id++)
                r = check_entry(b, id);
        for (uint32_t rank = 0; !r && rank < v->merge_count; rank++)
                r = check_merge(b, rank);
        if (!r)
                r = check_id(b, "bos", v->bos);
        if (!r)
                r = check_id(b, "eos", v->eos);
        if (!r)
                r = check_id(b, "unknown", v->unknown);
        if (!r)
                r = check_border(b);
        if (!r && b->bytes > UINT32_MAX / 2)
                r = refuse(b, "its tokens have %llu bytes together", (unsigned long long)b->bytes);
        return r;
}

/* ---- tables ---- */

static int copy_pieces(struct build *b)
{
        struct tokenizer *t = b->t;
        uint32_t at = 0;

        t->bytes = malloc(b->bytes + 1);
        t->begins = calloc((size_t)t->entry_count + 1, sizeof(*t->begins));
        t->kinds = calloc(t->entry_count, sizeof(*t->kinds));
        t->matching = calloc(t->entry_count, sizeof(*t->matching));
        if (!t->bytes || !t->begins || !t->kinds || !t->matching)
                return error_raise(-ENOMEM);
        for (uint32_t id = 0; id < t->entry_count; id++) {
                const struct entry *e = &b->v->entries[id];

                t->begins[id] = at;
                t->kinds[id] = e->kind;
                t->matching[id] = e->matching;
                if (!e->count)
                        continue;
                if (is_spaced(t, id))
                        t->bytes[at++] = ' ';
                memcpy(t->bytes + at, e->bytes, e->count);
                at += e->count;
                if (at - t->begins[id] > t->piece_max)
                        t->piece_max = at - t->begins[id];
        }
        t->begins[t->entry_count] = at;
        return 0;
}

/*
 * Finds the entries of single bytes.  Text that has neither these nor an unknown token has no ids;
 * vocabularies often leave out the bytes that no UTF-8 has.
 */
static int find_bytes(struct build *b)
{
        struct tokenizer *t = b->t;
        uint32_t found = 0;
        enum entry_kind kind = t->kind == VOCABULARY_BYTE_LEVEL ? ENTRY_NORMAL : ENTRY_BYTE;

        for (unsigned byte = 0; byte < 256; byte++)
                t->byte_ids[byte] = VOCABULARY_NONE;
        for (uint32_t id = 0; id < t->entry_count; id++) {
                const struct entry *e = &b->v->entries[id];
                uint32_t *slot;

                if (e->kind != kind || e->count != 1)
                        continue;
                slot = &t->byte_ids[(uint8_t)e->bytes[0]];
                if (*slot == VOCABULARY_NONE) {
                        *slot = id;
                        found++;
                }
        }
        if (t->kind == VOCABULARY_UNIGRAM && t->unknown == VOCABULARY_NONE)
                return refuse(b, "it has no unknown token, which its scores need");
        if (!found && t->unknown == VOCABULARY_NONE && !t->keeps_bars &&
            t->kind != VOCABULARY_WORDPIECE)
                return refuse(b, "it has neither tokens for bytes nor an unknown token");
        t->drops = (found < 256 || t->border) && t->unknown == VOCABULARY_NONE &&
                   t->kind != VOCABULARY_WORDPIECE;
        return 0;
}

static int map_words(struct build *b)
{
        struct tokenizer *t = b->t;
        int r;

        if (t->kind != VOCABULARY_CHARACTERS && !t->whole_wins && !t->border)
                return 0;
        r = wordmap_new(t->entry_count, &t->words);
        for (uint32_t id = 0; !r && id < t->entry_count; id++) {
                size_t bytes;
                const char *spelling = tokenizer_spelling(t, id, &bytes);

                if (b->v->entries[id].kind == ENTRY_NORMAL && bytes)
                        wordmap_put(t->words, spelling, bytes, id);
        }
        return error_pass(r);
}

/* Which added tokens one search finds. */
enum { FIND_USERS = 1, FIND_CONTROLS = 2, FIND_LATE = 4 };

static bool finds(const struct build *b, const struct entry *e, unsigned what)
{
        bool first = e->matching & ENTRY_FIRST;
        bool late = e->kind == ENTRY_USER &&
                    ((b->t->late_users && !first) || e->matching & ENTRY_NORMALISED);

        if (e->kind == ENTRY_USER && b->t->no_users && !first)
                return false;
        if (!e->count || (e->kind != ENTRY_USER && e->kind != ENTRY_CONTROL))
                return false;
        if (late || what & FIND_LATE)
                return late && what & FIND_LATE;
        return what & (e->kind == ENTRY_USER ? FIND_USERS : FIND_CONTROLS);
}

/* The spelling that is searched, which is normalised if the entry says so.  The caller frees it. */
static int spell(struct build *b, const struct entry *e, struct added_token *ret_word)
{
        struct tokenizer *t = b->t;
        uint64_t steps = 0;
        size_t bytes = e->count;
        char *copy = NULL, *written;
        int r = 0;

        if (e->matching & ENTRY_NORMALISED)
                r = normaliser_run(&t->normaliser, e->bytes, e->count, &copy, &bytes, &steps);
        if (r)
                return error_pass(r);
        written = malloc(bytes + 2);
        if (!written) {
                free(copy);
                return error_raise(-ENOMEM);
        }
        memcpy(written, copy ? copy : e->bytes, bytes);
        if (e->matching & ENTRY_NORMALISED && t->late_blanks)
                bytes = tokenizer_write_blanks(t, copy ? copy : e->bytes, bytes,
                                               t->blank != BLANK_NEVER, written);
        free(copy);
        ret_word->bytes = written;
        ret_word->count = (uint32_t)bytes;
        return 0;
}

static void free_words(struct added_token *words, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                free((char *)words[i].bytes);
        free(words);
}

static int match(struct build *b, unsigned what, struct added_tokens **ret_added_tokens)
{
        struct added_token *words = calloc(b->v->entry_count, sizeof(*words));
        uint32_t count = 0, bytes = 0;
        int r = words ? 0 : error_raise(-ENOMEM);

        for (uint32_t id = 0; !r && id < b->v->entry_count; id++) {
                const struct entry *e = &b->v->entries[id];

                if (!finds(b, e, what))
                        continue;
                words[count].id = id;
                r = spell(b, e, &words[count]);
                if (r)
                        break;
                if (!words[count].count) {
                        free((char *)words[count].bytes);
                        continue;
                }
                bytes += words[count].count; /* one has 256 KiB at most */
                if (!b->t->shortest_added || words[count].count < b->t->shortest_added)
                        b->t->shortest_added = words[count].count;
                count++;
                if (bytes > ADDED_TOKENS_BYTES_MAX)
                        r = refuse(b, "its added tokens have more than %u bytes together",
                                   ADDED_TOKENS_BYTES_MAX);
        }
        if (!r && count)
                r = added_tokens_new(words, count, ret_added_tokens);
        free_words(words, words ? count : 0);
        return error_pass(r);
}

/* The characters of words: \w of the regular expressions of Rust, which has the joiners, too. */
static int find_word(struct charset *ret_word)
{
        int r = charset_shorthand(ret_word, 'w');

        return r ? error_pass(r) : error_pass(charset_add(ret_word, 0x200C, 0x200D));
}

static int find_added(struct build *b)
{
        struct tokenizer *t = b->t;
        bool alone = false;
        int r = match(b, FIND_USERS, &t->users);

        if (!r)
                r = match(b, FIND_USERS | FIND_CONTROLS, &t->added);
        if (!r)
                r = match(b, FIND_LATE, &t->late);
        for (uint32_t id = 0; id < t->entry_count; id++)
                alone = alone || t->matching[id] & ENTRY_ALONE;
        return r || !alone ? error_pass(r) : error_pass(find_word(&t->word));
}

/* The USER entries, which SentencePiece's rules leave as they are. */
static int keep_users(struct build *b)
{
        struct trie_word *words = NULL;
        uint32_t count = 0;
        bool is_needed = false;
        int r = 0;

        for (uint32_t i = 0; i < b->v->normal_count; i++)
                is_needed = is_needed || b->v->normals[i].kind == NORMAL_RULES;
        if (!is_needed)
                return 0;
        words = calloc(b->v->entry_count, sizeof(*words));
        if (!words)
                return error_raise(-ENOMEM);
        for (uint32_t id = 0; id < b->v->entry_count; id++) {
                const struct entry *e = &b->v->entries[id];

                if (e->kind == ENTRY_USER && e->count && !(e->matching & ENTRY_FIRST))
                        words[count++] = (struct trie_word){ e->bytes, e->count, id };
        }
        if (count)
                r = trie_new(words, count, &b->t->kept);
        b->t->normaliser.kept = b->t->kept;
        free(words);
        return error_pass(r);
}

static int open_cuts(struct build *b)
{
        const struct vocabulary_cut *cuts = b->v->cuts;
        uint32_t plain = 0;
        int r;

        while (plain < b->v->cut_count && !cuts[plain].letters)
                plain++;
        r = cutter_open(&b->t->cutter, cuts, plain, b->why, b->why_bytes);
        if (r || plain == b->v->cut_count)
                return error_pass(r);
        return error_pass(cutter_open(&b->t->letter_cutter, cuts + plain, b->v->cut_count - plain,
                                      b->why, b->why_bytes));
}

static int build(struct build *b)
{
        int r;

        if ((r = open_cuts(b)) ||
            (r = normaliser_open(&b->t->normaliser, b->v->normals, b->v->normal_count, b->why,
                                 b->why_bytes)) ||
            (r = keep_users(b)) || (r = copy_pieces(b)) || (r = find_bytes(b)) ||
            (r = map_words(b)) || (r = find_added(b)))
                return error_pass(r);
        if (b->v->kind == VOCABULARY_UNIGRAM)
                return error_pass(unigram_new(b->v, &b->t->unigram));
        if (b->v->kind == VOCABULARY_WORDPIECE)
                return error_pass(wordpiece_open(&b->t->wordpiece, b->v, b->why, b->why_bytes));
        return error_pass(merge_table_init(&b->t->merges, b->v));
}

/* From a file of SentencePiece itself, whose BPE has no list of merges. */
static bool is_original(const struct vocabulary *v)
{
        if (v->kind == VOCABULARY_UNIGRAM || v->original)
                return v->original || v->single_sums;
        return v->kind == VOCABULARY_CHARACTERS && !v->merge_count && v->by_score &&
               (v->blank == BLANK_FIRST || v->blank == BLANK_LAST || v->squeezes);
}

int tokenizer_open(const struct vocabulary *v, uint32_t vocab, struct tokenizer **ret_tokenizer,
                   char *why, size_t why_bytes)
{
        struct build b = { .v = v, .why = why, .why_bytes = why_bytes };
        int r;

        if (v->kind == VOCABULARY_BYTES && vocab < 256)
                return refuse(&b, "a vocabulary of %u ids is too small to have every byte", vocab);
        if (v->kind == VOCABULARY_BYTES)
                return error_pass(tokenizer_open_bytes(vocab, ret_tokenizer));
        r = check_vocabulary(&b, vocab);
        if (r)
                return error_pass(r);
        b.t = calloc(1, sizeof(*b.t));
        if (!b.t)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for its tables"));
        *b.t = (struct tokenizer){
                .kind = v->kind,
                .blank = v->blank,
                .blank_once = v->blank_once,
                .whole_wins = v->whole_wins,
                .unknown_run = v->unknown_run,
                .squeezes = v->squeezes,
                .squeezes_all = v->squeezes_all,
                .keeps_bars = v->keeps_bars,
                .border = v->border,
                .word_max = v->word_max,
                .no_users = v->single_sums,
                /* SentencePiece itself does it so; newer tokenizers cut at added tokens first. */
                .late_users = is_original(v),
                .late_blanks = v->normal_blanks || is_original(v),
                .blank_alone = is_original(v) && !v->squeezes,
                .vocab = vocab,
                .entry_count = v->entry_count,
                .unknown = v->unknown,
        };
        r = build(&b);
        if (r) {
                if (r != -EINVAL)
                        errtext_set(why, why_bytes, r, "its tables: %s", strerror(-r));
                tokenizer_close(b.t);
                return error_pass(r);
        }
        *ret_tokenizer = b.t;
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
        t->kinds = calloc(256, sizeof(*t->kinds));
        t->matching = calloc(256, sizeof(*t->matching));
        if (!t->bytes || !t->begins || !t->kinds || !t->matching) {
                tokenizer_close(t);
                return error_raise(-ENOMEM);
        }
        for (uint32_t i = 0; i < 256; i++) {
                t->bytes[i] = (char)i;
                t->begins[i + 1] = i + 1;
                t->kinds[i] = ENTRY_NORMAL;
        }
        *ret_tokenizer = t;
        return 0;
}

struct tokenizer *tokenizer_close(struct tokenizer *t)
{
        if (!t)
                return NULL;
        cutter_close(&t->cutter);
        cutter_close(&t->letter_cutter);
        wordpiece_close(&t->wordpiece);
        normaliser_close(&t->normaliser);
        charset_deinit(&t->word);
        added_tokens_free(t->late);
        merge_table_deinit(&t->merges);
        unigram_free(t->unigram);
        trie_free(t->kept);
        added_tokens_free(t->users);
        added_tokens_free(t->added);
        wordmap_free(t->words);
        free(t->matching);
        free(t->kinds);
        free(t->begins);
        free(t->bytes);
        free(t);
        return NULL;
}
