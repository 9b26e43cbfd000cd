/*
 * A vocabulary of any entries and merges, and any text: (vocabulary, text).
 *
 *      kind, splitter, blank, border | switches | entry count | each: kind and length, its bytes
 *      | merge count | each: left, right | the text: all the rest
 *
 * The checks: the pieces give the text back; merges, paths of scores, and the division of a word do
 * the same as the definition, done naively; steps grow as n log n at most.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/splitters.h"
#include "daemon/text/tokenizer.h"
#include "json/utf8.h"

#define ENTRIES_MAX 400u
#define TEXT_MAX    4096u
#define NAIVE_MAX   64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
        const uint8_t *at;
        size_t left;
};

static char one_byte[256];
static struct entry entries[ENTRIES_MAX];
static struct merge merges[ENTRIES_MAX];
static char bytes[ENTRIES_MAX * 64];
static size_t bytes_used;

static uint8_t next_byte(struct input *input)
{
        if (!input->left)
                return 0;
        input->left--;
        return *input->at++;
}

static void read_entries(struct vocabulary *v, struct input *input)
{
        static const uint8_t kinds[] = { ENTRY_NORMAL, ENTRY_NORMAL, ENTRY_CONTROL, ENTRY_USER,
                                         ENTRY_UNUSED, ENTRY_NORMAL, ENTRY_NORMAL,  ENTRY_UNKNOWN };

        for (unsigned count = next_byte(input) % 64; count; count--) {
                uint8_t head = next_byte(input), length = (head >> 3 & 7) + 1;
                struct entry *e = &entries[v->entry_count++];

                *e = (struct entry){ bytes + bytes_used, length, (float)(head >> 6),
                                     kinds[head & 7], 0 };
                for (unsigned i = 0; i < length; i++)
                        bytes[bytes_used++] = (char)next_byte(input);
                if (e->kind == ENTRY_UNKNOWN)
                        v->unknown = v->entry_count - 1;
                if (e->kind == ENTRY_CONTROL || e->kind == ENTRY_USER)
                        e->matching = head >> 6;
        }
}

/* Each merge makes an entry of its own, so that all of them are valid. */
static void read_merges(struct vocabulary *v, struct input *input)
{
        for (unsigned count = next_byte(input) % 64; count; count--) {
                uint32_t left = next_byte(input) | (next_byte(input) & 1u) << 8;
                uint32_t right = next_byte(input) | (next_byte(input) & 1u) << 8;
                const struct entry *l = &entries[left % v->entry_count];
                const struct entry *r = &entries[right % v->entry_count];

                if (l->kind != ENTRY_NORMAL || r->kind != ENTRY_NORMAL || l->count + r->count > 60)
                        continue;
                memcpy(bytes + bytes_used, l->bytes, l->count);
                memcpy(bytes + bytes_used + l->count, r->bytes, r->count);
                entries[v->entry_count] = (struct entry){ bytes + bytes_used, l->count + r->count,
                                                          0, ENTRY_NORMAL, 0 };
                bytes_used += l->count + r->count;
                merges[v->merge_count++] = (struct merge){ left % v->entry_count,
                                                           right % v->entry_count, v->entry_count };
                v->entry_count++;
        }
}

static void read_vocabulary(struct vocabulary *v, struct input *input)
{
        static const char *const names[] = { "none", "gpt2", "llama3", "qwen2" };
        static const struct vocabulary_normal nfc = { .kind = NORMAL_NFC };
        uint8_t shape = next_byte(input), switches = next_byte(input);
        const struct splitter *splitter = splitter_named(names[shape >> 1 & 3]);

        bytes_used = 0;
        *v = (struct vocabulary){ .kind = !(shape & 1)    ? VOCABULARY_BYTE_LEVEL
                                          : switches & 64 ? VOCABULARY_UNIGRAM
                                                          : VOCABULARY_CHARACTERS,
                                  .cuts = splitter->cuts,
                                  .cut_count = splitter->cut_count,
                                  .blank = shape & 1 ? (shape >> 3) % 4 : BLANK_NEVER,
                                  .normals = &nfc,
                                  .normal_count = !(shape & 1) && switches & 1,
                                  .whole_wins = switches & 2,
                                  .unknown_run = switches & 4,
                                  .squeezes = shape & 1 && switches & 8,
                                  .squeezes_all = shape & 1 && switches & 128,
                                  .unknown_score = -5,
                                  .single_sums = switches & 1,
                                  .bos = VOCABULARY_NONE,
                                  .eos = VOCABULARY_NONE,
                                  .unknown = VOCABULARY_NONE,
                                  .border = shape >> 6 == 3 ? BORDER_FRONT : shape >> 6,
                                  .keeps_bars = shape >> 6,
                                  .by_score = shape & 1 && !(switches & 64),
                                  .word_max = switches & 128 ? 20 : 0,
                                  .mark = "#",
                                  .mark_bytes = switches & 32 ? 1 : 0,
                                  .entry_count = 256,
                                  .entries = entries,
                                  .merges = merges };
        if (shape >> 6 == 3)
                v->kind = VOCABULARY_WORDPIECE;
        if (v->kind == VOCABULARY_UNIGRAM) {
                v->border = BORDER_NONE;
                v->keeps_bars = false;
        }
        for (unsigned b = 0; b < 256; b++) {
                one_byte[b] = (char)b;
                entries[b] = (struct entry){ &one_byte[b], 1, 0,
                                             v->kind == VOCABULARY_CHARACTERS ||
                                                             v->kind == VOCABULARY_UNIGRAM
                                                     ? ENTRY_BYTE
                                                     : ENTRY_NORMAL,
                                             0 };
                if (v->kind == VOCABULARY_WORDPIECE && switches & 16)
                        entries[b].kind = ENTRY_UNUSED;
        }
        read_entries(v, input);
        if (v->kind != VOCABULARY_UNIGRAM && v->kind != VOCABULARY_WORDPIECE &&
            (!(shape & 1) || switches & 16))
                read_merges(v, input);
        if (v->kind == VOCABULARY_CHARACTERS && switches & 32 && v->unknown != VOCABULARY_NONE)
                for (unsigned b = 0; b < 256; b++)
                        entries[b] = (struct entry){ "", 0, 0, ENTRY_UNUSED, 0 };
}

static bool has_kind(const struct vocabulary *v, uint8_t kind)
{
        for (uint32_t id = 0; id < v->entry_count; id++)
                if (entries[id].kind == kind && entries[id].count)
                        return true;
        return false;
}

/* ---- the definition, naively ---- */

struct symbol {
        const char *at;
        uint32_t count, id;
        double rank;   /* of the pair that begins here */
        uint32_t made; /* the token that the merge makes */
};

static uint32_t entry_of(const struct vocabulary *v, const char *at, uint32_t count)
{
        for (uint32_t id = 0; id < v->entry_count; id++)
                if (entries[id].count == count && entries[id].kind == ENTRY_NORMAL &&
                    *entries[id].bytes == *at && !memcmp(entries[id].bytes, at, count))
                        return id;
        return VOCABULARY_NONE;
}

/* The rank of a pair: less is better; NAN: it does not merge. */
static double rank(const struct vocabulary *v, const struct symbol *a, const struct symbol *b,
                   uint32_t *ret_id)
{
        if (v->merge_count || !v->by_score) {
                for (uint32_t i = 0; i < v->merge_count; i++)
                        if (merges[i].left == a->id && merges[i].right == b->id) {
                                *ret_id = merges[i].result;
                                return i;
                        }
                return __builtin_nan("");
        }
        *ret_id = entry_of(v, a->at, a->count + b->count);
        return *ret_id == VOCABULARY_NONE ? __builtin_nan("") : -(double)entries[*ret_id].score;
}

static void judge(const struct vocabulary *v, struct symbol *s, size_t i, size_t count)
{
        s[i].rank = i + 1 < count ? rank(v, &s[i], &s[i + 1], &s[i].made) : __builtin_nan("");
}

/* Merges one pair of s; false: no pair merges. */
static bool merge_best(const struct vocabulary *v, struct symbol *s, size_t count)
{
        size_t best = SIZE_MAX;

        for (size_t i = 0; i + 1 < count; i++)
                if (s[i].rank == s[i].rank && (best == SIZE_MAX || s[i].rank < s[best].rank))
                        best = i;
        if (best == SIZE_MAX)
                return false;
        s[best].count += s[best + 1].count;
        s[best].id = s[best].made;
        memmove(&s[best + 1], &s[best + 2], (count - best - 2) * sizeof(*s));
        judge(v, s, best, count - 1);
        if (best)
                judge(v, s, best - 1, count - 1);
        return true;
}

static void check_merges(const struct vocabulary *v, const char *text, size_t size,
                         const uint32_t *ids, size_t id_count)
{
        struct symbol s[NAIVE_MAX];
        size_t count = 0, told = 0;

        for (size_t at = 0, n; at < size; at += n) {
                int length = utf8_character(text + at, size - at);

                n = v->kind == VOCABULARY_BYTE_LEVEL || length < 1 ? 1 : (size_t)length;
                s[count++] = (struct symbol){ text + at, (uint32_t)n,
                                              entry_of(v, text + at, (uint32_t)n), 0, 0 };
        }
        for (size_t i = 0; i < count; i++)
                judge(v, s, i, count);
        while (merge_best(v, s, count))
                count--;
        for (size_t i = 0; i < count; i++)
                if (s[i].id != VOCABULARY_NONE) {
                        assert(told < id_count && ids[told] == s[i].id);
                        told++;
                } else {
                        told += s[i].count; /* its number of bytes */
                }
        assert(told == id_count);
}

/* The last one, as of equal entries the last one has the score. */
static uint32_t scored_entry(const struct vocabulary *v, const char *at, size_t count)
{
        for (uint32_t id = v->entry_count; id--;)
                if (entries[id].count == count && entries[id].kind == ENTRY_NORMAL &&
                    !memcmp(entries[id].bytes, at, count))
                        return id;
        return VOCABULARY_NONE;
}

struct path {
        double sum;
        size_t from; /* of its last entry; SIZE_MAX: there is no path */
        uint32_t id; /* VOCABULARY_NONE: a character that is no entry */
};

static void offer(struct path *to, const struct path *from, size_t at, uint32_t id, double score)
{
        if (to->from == SIZE_MAX || from->sum + score > to->sum)
                *to = (struct path){ from->sum + score, at, id };
}

/* All paths, place by place.  The scores are whole numbers, whose sums are exact. */
static void find_path(const struct vocabulary *v, const char *text, size_t size, struct path *paths)
{
        for (size_t at = 0; at <= size; at++)
                paths[at].from = SIZE_MAX;
        paths[0] = (struct path){ .from = 0 };
        for (size_t at = 0, n; at < size; at += n) {
                int length = utf8_character(text + at, size - at);

                n = length < 1 ? 1 : (size_t)length;
                for (size_t end = at + 1; end <= size; end++) {
                        uint32_t id = scored_entry(v, text + at, end - at);

                        if (id != VOCABULARY_NONE)
                                offer(&paths[end], &paths[at], at, id, entries[id].score);
                }
                if (scored_entry(v, text + at, n) == VOCABULARY_NONE)
                        offer(&paths[at + n], &paths[at], at, VOCABULARY_NONE, v->unknown_score);
        }
}

/* From the end: characters that are no entry are one entry together, or else bytes. */
static void check_path(const struct vocabulary *v, const char *text, size_t size,
                       const uint32_t *ids, size_t id_count)
{
        struct path paths[NAIVE_MAX + 1];
        size_t at = size, from, left = id_count;

        find_path(v, text, size, paths);
        for (; at; at = from) {
                uint32_t id = paths[at].id;

                from = paths[at].from;
                while (id == VOCABULARY_NONE && from && paths[from].id == VOCABULARY_NONE)
                        from = paths[from].from;
                if (id == VOCABULARY_NONE)
                        id = scored_entry(v, text + from, at - from);
                assert(left);
                if (id != VOCABULARY_NONE)
                        assert(ids[--left] == id);
                for (size_t i = at; id == VOCABULARY_NONE && i-- > from;)
                        assert(left && ids[--left] == (uint8_t)text[i]);
        }
        assert(!left);
}

/* ---- a word, naively ---- */

/* Whether the entry is what stands between two places of a word. */
static bool stands(const struct vocabulary *v, const struct entry *e, const char *word, size_t at,
                   size_t end)
{
        bool begins = *e->bytes == ' ';

        if (e->kind != ENTRY_NORMAL || (begins && (at || e->count == 1)))
                return false;
        if (!at && !begins) { /* behind the mark, as the file writes it */
                if (!v->mark_bytes || end < 2 || word[1] != *v->mark)
                        return false;
                at = 2;
        }
        return e->count == end - at && !memcmp(e->bytes, word + at, end - at);
}

/* The longest entry from there on, of which `*at` becomes the end. */
static uint32_t longest_of(const struct vocabulary *v, const char *word, size_t size, size_t *at)
{
        for (size_t end = size; end > *at; end--)
                for (uint32_t id = 0; id < v->entry_count; id++)
                        if (entries[id].count && stands(v, &entries[id], word, *at, end)) {
                                *at = end;
                                return id;
                        }
        return VOCABULARY_NONE;
}

static void check_word(const struct vocabulary *v, const char *text, size_t size,
                       const uint32_t *ids, size_t count)
{
        char word[NAIVE_MAX + 1] = " ";
        uint32_t wanted[NAIVE_MAX + 1];
        size_t at = 0, told = 0;

        memcpy(word + 1, text, size);
        while (at < size + 1 && size) {
                wanted[told] = longest_of(v, word, size + 1, &at);
                if (wanted[told++] != VOCABULARY_NONE)
                        continue;
                wanted[0] = v->unknown;
                told = v->unknown != VOCABULARY_NONE;
                break;
        }
        assert(told == count && !memcmp(wanted, ids, told * sizeof(*ids)));
}

/* ---- */

static void check_back(const struct tokenizer *t, const char *text, size_t size, bool blank,
                       const uint32_t *ids, size_t count)
{
        size_t at = 0, n;

        for (size_t i = 0; i < count; i++) {
                const char *piece = tokenizer_piece(t, ids[i], &n);

                assert(n <= tokenizer_piece_max(t));
                if (blank && n) {
                        assert(*piece == ' ');
                        blank = false;
                        piece++;
                        n--;
                }
                assert(n <= size - at && !memcmp(piece, text + at, n));
                at += n;
        }
        assert(at == size);
}

static bool has_bar(const char *text, size_t size)
{
        for (size_t i = 0; i + 3 <= size; i++)
                if (!memcmp(text + i, "\xE2\x96\x81", 3))
                        return true;
        return false;
}

static void check(const struct vocabulary *v, const struct tokenizer *t, const char *text,
                  size_t size, bool controls)
{
        static uint32_t ids[4 * TEXT_MAX];
        struct encoding how = { .controls = &text_whole, .control_count = controls };
        bool added = has_kind(v, ENTRY_USER) || (controls && has_kind(v, ENTRY_CONTROL));
        bool bytes_told = v->kind == VOCABULARY_BYTE_LEVEL || entries[0].kind == ENTRY_BYTE;
        uint64_t log = 1;
        size_t count;

        assert(tokenizer_vocab(t) == v->entry_count && !tokenizer_divisible(t));
        assert(tokenizer_ids_max(t, size) <= sizeof(ids) / sizeof(*ids));
        assert(!tokenizer_encode(t, text, size, &how, ids, &count));
        while (size >> log)
                log++;
        assert(how.steps <= (40 + 12 * log) * (size + 1));
        for (size_t i = 0; i < count; i++)
                assert(ids[i] < v->entry_count);

        if (v->kind == VOCABULARY_WORDPIECE && size <= NAIVE_MAX && !v->normal_count && !added &&
            !v->cut_count && !v->word_max && !v->whole_wins && !v->blank && !v->squeezes &&
            !v->squeezes_all)
                check_word(v, text, size, ids, count);
        if (!bytes_told || v->border || v->kind == VOCABULARY_WORDPIECE || v->normal_count ||
            v->squeezes || v->squeezes_all || added || v->blank == BLANK_LAST ||
            (v->kind != VOCABULARY_BYTE_LEVEL && has_bar(text, size)))
                return;
        check_back(t, text, size, tokenizer_adds_blank(t) && size, ids, count);
        if (size <= NAIVE_MAX && !v->cut_count && !v->blank && v->kind == VOCABULARY_UNIGRAM)
                check_path(v, text, size, ids, count);
        else if (size <= NAIVE_MAX && !v->cut_count && !v->whole_wins && !v->blank)
                check_merges(v, text, size, ids, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };
        struct vocabulary v;
        struct tokenizer *t;
        char why[256] = "";
        int r;

        read_vocabulary(&v, &input);
        r = tokenizer_open(&v, v.entry_count, &t, why, sizeof(why));
        if (r) {
                assert(why[0]);
                return 0;
        }
        if (input.left > TEXT_MAX)
                input.left = TEXT_MAX;
        check(&v, t, (const char *)input.at, input.left, size & 1);
        tokenizer_close(t);
        return 0;
}
