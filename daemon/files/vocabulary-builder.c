#include "daemon/files/vocabulary-builder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/vocabulary.h"
#include "json/shown.h"

#define BAR "\xE2\x96\x81"

/* Everything that vocabulary_close() frees. */
struct made {
        struct vocabulary v; /* first: it is the public part */
        struct entry *entries;
        struct merge *merges;
        struct vocabulary_cut cuts[VOCABULARY_CUTS_MAX];
        struct vocabulary_normal normals[VOCABULARY_NORMALS_MAX];
        char *bytes, *mark;
};

int vocabulary_builder_begin(struct vocabulary_builder *m, uint64_t entries, uint64_t merges,
                             size_t bytes, char *why, size_t why_bytes)
{
        int r;

        *m = (struct vocabulary_builder){ .why = why,
                                          .why_bytes = why_bytes,
                                          .bytes_capacity = bytes };
        m->v.bos = m->v.eos = m->v.unknown = VOCABULARY_NONE;
        if (!entries)
                return vocabulary_builder_refuse(m, "its vocabulary is empty: it has no tokens");
        if (entries > VOCABULARY_ENTRIES_MAX)
                return vocabulary_builder_refuse(m,
                                                 "a vocabulary of %" PRIu64 " tokens, not 1 to %u",
                                                 entries, VOCABULARY_ENTRIES_MAX);
        if (merges > VOCABULARY_MERGES_MAX)
                return vocabulary_builder_refuse(m, "%" PRIu64 " merges, more than %u", merges,
                                                 VOCABULARY_MERGES_MAX);
        m->entry_capacity = (uint32_t)entries;
        m->merge_capacity = (uint32_t)merges;
        m->entries = calloc(entries, sizeof(*m->entries));
        m->merges = calloc(merges + 1, sizeof(*m->merges));
        m->given = calloc(entries / 64 + 1, sizeof(*m->given));
        m->bytes = malloc(bytes + 1);
        r = m->entries && m->merges && m->given && m->bytes ? 0 : error_raise(-ENOMEM);
        if (!r)
                r = wordmap_new(m->entry_capacity, &m->by_name);
        if (r)
                return error_pass(errtext_set(why, why_bytes, r, "out of memory for its tables"));
        return 0;
}

static void free_cuts(struct vocabulary_cut *cuts, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                free((char *)cuts[i].expression);
}

static void free_normals(struct vocabulary_normal *normals, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                free((char *)normals[i].expression);
                free((char *)normals[i].content);
        }
}

void vocabulary_builder_drop_cuts(struct vocabulary_builder *m)
{
        free_cuts(m->cuts, m->v.cut_count);
        m->v.cut_count = 0;
}

void vocabulary_builder_free(struct vocabulary_builder *m)
{
        vocabulary_builder_drop_cuts(m);
        free_normals(m->normals, m->v.normal_count);
        free(m->entries);
        free(m->merges);
        free(m->given);
        free(m->bytes);
        wordmap_free(m->by_name);
}

/* The byte of a letter of one or two bytes of UTF-8; a printable byte is its own letter. */
static bool read_letter(const char *name, size_t bytes, size_t *at, char *ret_byte)
{
        static const struct {
                uint16_t first, last; /* bytes without a printable character of their own */
                uint16_t letter;      /* the letter of `first`; the others follow it */
        } others[] = { { 0, 32, 256 }, { 127, 160, 289 }, { 173, 173, 323 } };
        uint8_t a = (uint8_t)name[*at];
        uint32_t code = a;

        if (a >= 0x80) {
                if (a < 0xC2 || a > 0xDF || bytes - *at < 2 ||
                    ((uint8_t)name[*at + 1] & 0xC0) != 0x80)
                        return false;
                code = (a & 0x1Fu) << 6 | ((uint8_t)name[++*at] & 0x3Fu);
        }
        ++*at;
        for (unsigned i = 0; i < 3; i++) {
                if (code >= others[i].first && code <= others[i].last)
                        return false; /* this byte is written with another letter */
                if (code - others[i].letter <= (unsigned)(others[i].last - others[i].first)) {
                        *ret_byte = (char)(code - others[i].letter + others[i].first);
                        return true;
                }
        }
        *ret_byte = (char)code;
        return code < 256;
}

static bool read_letters(const char *name, size_t bytes, char *to, size_t *ret_bytes)
{
        size_t at = 0, count = 0;

        while (at < bytes)
                if (!read_letter(name, bytes, &at, &to[count++]))
                        return false;
        *ret_bytes = count;
        return true;
}

static size_t read_bars(const char *name, size_t bytes, char *to)
{
        size_t count = 0;

        for (size_t at = 0; at < bytes;) {
                if (bytes - at >= 3 && !memcmp(name + at, BAR, 3)) {
                        to[count++] = ' ';
                        at += 3;
                } else {
                        to[count++] = name[at++];
                }
        }
        return count;
}

static int hex(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hex(const char *name, size_t bytes, char *to)
{
        if (bytes != 6 || memcmp(name, "<0x", 3) || name[5] != '>' || hex(name[3]) < 0 ||
            hex(name[4]) < 0)
                return false;
        *to = (char)(hex(name[3]) * 16 + hex(name[4]));
        return true;
}

static bool begins_with(const char *name, size_t bytes, const char *text)
{
        size_t n = strlen(text);

        return bytes >= n && !memcmp(name, text, n);
}

/* Whether BERT's decoder leaves out the blank before this word. */
static bool is_joined(const char *word, size_t bytes)
{
        static const char *const joined[] = { ".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re" };

        for (size_t i = 0; i < sizeof(joined) / sizeof(*joined); i++)
                if (begins_with(word, bytes, joined[i]))
                        return true;
        return false;
}

/* An entry of words that have a blank in front, or of what comes behind the mark. */
static size_t read_front(const struct vocabulary_builder *m, const char *name, size_t bytes,
                         char *to)
{
        bool inside =
                m->mark_bytes && bytes >= m->mark_bytes && !memcmp(name, m->mark, m->mark_bytes);

        if (inside) {
                memcpy(to, name + m->mark_bytes, bytes - m->mark_bytes);
                return bytes - m->mark_bytes;
        }
        *to = ' ';
        memcpy(to + 1, name, bytes);
        return bytes + 1;
}

/*
 * An entry of words that have a blank behind.  The mark alone is no symbol of a word.  False: it
 * would be taken for another entry, which has the mark.
 */
static bool read_behind(const struct vocabulary_builder *m, const char *name, size_t bytes,
                        enum spelling spelling, char *to, size_t *ret_bytes, enum entry_kind *kind)
{
        bool ends = bytes >= m->mark_bytes &&
                    !memcmp(name + bytes - m->mark_bytes, m->mark, m->mark_bytes);
        size_t count = bytes - (ends ? m->mark_bytes : 0);

        if (spelling == SPELT_WORDS || !read_letters(name, count, to, ret_bytes)) {
                if (spelling == SPELT_LETTERS)
                        *kind = ENTRY_UNUSED;
                memcpy(to, name, count);
                *ret_bytes = count;
        }
        if (ends && !count)
                *kind = ENTRY_UNUSED;
        if (ends)
                to[(*ret_bytes)++] = ' ';
        else if (*ret_bytes > 1 && to[*ret_bytes - 1] == ' ' && *kind == ENTRY_NORMAL)
                return false;
        return true;
}

/* Writes the bytes of an entry. */
static int spell(struct vocabulary_builder *m, uint64_t id, const char *name, size_t bytes,
                 enum spelling spelling, char *to, size_t *ret_bytes, enum entry_kind *kind)
{
        bool words = spelling == SPELT_WORDS ||
                     (spelling == SPELT_LETTERS && m->v.border == BORDER_BEHIND);

        *ret_bytes = 1;
        if (spelling == SPELT_HEX) {
                if (!read_hex(name, bytes, to))
                        return vocabulary_builder_refuse(
                                m, "token %" PRIu64 " is a byte, but is not written like <0x00>",
                                id);
        } else if (spelling == SPELT_BARS) {
                *ret_bytes = read_bars(name, bytes, to);
        } else if (words && m->v.border == BORDER_FRONT) {
                *ret_bytes = read_front(m, name, bytes, to);
        } else if (words && m->v.border == BORDER_BEHIND) {
                if (!read_behind(m, name, bytes, spelling, to, ret_bytes, kind))
                        return vocabulary_builder_refuse(
                                m, "token %" PRIu64 " ends in a blank, and words end in '%s'", id,
                                shown(m->mark).text);
        } else if (spelling != SPELT_LETTERS || !read_letters(name, bytes, to, ret_bytes)) {
                /* A name not made of these letters is kept as it is, and no text produces it. */
                if (spelling == SPELT_LETTERS)
                        *kind = ENTRY_UNUSED;
                *ret_bytes = bytes;
                memcpy(to, name, bytes);
        }
        return 0;
}

/* The entry whose bytes come next in m->bytes. */
static void store(struct vocabulary_builder *m, uint64_t id, size_t count, enum entry_kind kind,
                  double score)
{
        const char *at = m->bytes + m->bytes_used;

        m->bytes_used += count;
        m->entries[id] = (struct entry){ at, (uint32_t)count, score, (uint8_t)kind, 0 };
        if (m->cleans && count && (kind == ENTRY_USER || (kind == ENTRY_NORMAL && *at == ' ')) &&
            is_joined(at + (kind == ENTRY_NORMAL), count - (kind == ENTRY_NORMAL)))
                m->entries[id].matching = ENTRY_JOINS;
}

int vocabulary_builder_add_entry(struct vocabulary_builder *m, uint64_t id, const char *name,
                                 size_t bytes, enum entry_kind kind, enum spelling spelling,
                                 double score)
{
        char *to = m->bytes + m->bytes_used;
        size_t count;
        int r;

        if (id >= m->entry_capacity)
                return vocabulary_builder_refuse(m, "token id %" PRIu64 ", but there are %u tokens",
                                                 id, m->entry_capacity);
        if (vocabulary_builder_has(m, id))
                return vocabulary_builder_refuse(m, "token id %" PRIu64 " occurs twice", id);
        assert(bytes + (spelling == SPELT_WORDS) <= m->bytes_capacity - m->bytes_used);
        r = spell(m, id, name, bytes, spelling, to, &count, &kind);
        if (r)
                return error_pass(r);
        if (count > VOCABULARY_ENTRY_BYTES_MAX)
                return vocabulary_builder_refuse(m,
                                                 "token %" PRIu64 " has %zu bytes, the limit is %u",
                                                 id, count, VOCABULARY_ENTRY_BYTES_MAX);
        m->given[id / 64] |= UINT64_C(1) << id % 64;
        store(m, id, count, kind, score);
        wordmap_put(m->by_name, name, bytes, (uint32_t)id);
        return 0;
}

void vocabulary_builder_respell(struct vocabulary_builder *m, uint32_t id, const char *name,
                                size_t bytes, enum entry_kind kind)
{
        assert(vocabulary_builder_has(m, id) && bytes <= VOCABULARY_ENTRY_BYTES_MAX &&
               bytes <= m->bytes_capacity - m->bytes_used);
        memcpy(m->bytes + m->bytes_used, name, bytes);
        store(m, id, bytes, kind, m->entries[id].score);
}

int vocabulary_builder_move_entry(struct vocabulary_builder *m, uint32_t from, uint64_t to,
                                  const char *name, size_t bytes)
{
        if (to >= m->entry_capacity || vocabulary_builder_has(m, to))
                return vocabulary_builder_refuse(m, "token id %" PRIu64 " occurs twice", to);
        m->entries[to] = m->entries[from];
        m->given[to / 64] |= UINT64_C(1) << to % 64;
        m->given[from / 64] &= ~(UINT64_C(1) << from % 64);
        wordmap_replace(m->by_name, name, bytes, (uint32_t)to);
        return 0;
}

void vocabulary_builder_set_matching(struct vocabulary_builder *m, uint32_t id, unsigned matching)
{
        m->entries[id].matching |= (uint8_t)matching;
}

bool vocabulary_builder_has(const struct vocabulary_builder *m, uint64_t id)
{
        return id < m->entry_capacity && m->given[id / 64] >> id % 64 & 1;
}

uint32_t vocabulary_builder_find(const struct vocabulary_builder *m, const char *name, size_t bytes)
{
        return wordmap_get(m->by_name, name, bytes);
}

int vocabulary_builder_add_merge(struct vocabulary_builder *m, const char *left, size_t left_bytes,
                                 const char *right, size_t right_bytes)
{
        char both[4 * VOCABULARY_ENTRY_BYTES_MAX];
        struct merge merge = { vocabulary_builder_find(m, left, left_bytes),
                               vocabulary_builder_find(m, right, right_bytes), VOCABULARY_NONE };
        uint32_t rank = m->v.merge_count;

        assert(rank < m->merge_capacity);
        /* The mark inside a word is written once, in front. */
        if (m->v.border == BORDER_FRONT && begins_with(right, right_bytes, m->mark)) {
                right += m->mark_bytes;
                right_bytes -= m->mark_bytes;
        }
        if (left_bytes + right_bytes <= sizeof(both)) {
                memcpy(both, left, left_bytes);
                memcpy(both + left_bytes, right, right_bytes);
                merge.result = vocabulary_builder_find(m, both, left_bytes + right_bytes);
        }
        if (merge.left == VOCABULARY_NONE || merge.right == VOCABULARY_NONE ||
            merge.result == VOCABULARY_NONE)
                return vocabulary_builder_refuse(
                        m, "merge %u uses or gives a text that is not a token", rank);
        m->merges[m->v.merge_count++] = merge;
        return 0;
}

int vocabulary_builder_add_merge_line(struct vocabulary_builder *m, const char *line, size_t bytes)
{
        const char *blank = memchr(line, ' ', bytes);
        size_t left = blank ? (size_t)(blank - line) : 0;

        if (!left || left + 1 == bytes || memchr(blank + 1, ' ', bytes - left - 1))
                return vocabulary_builder_refuse(
                        m, "merge %u is not two tokens with a blank between them",
                        m->v.merge_count);
        return error_pass(vocabulary_builder_add_merge(m, line, left, blank + 1, bytes - left - 1));
}

int vocabulary_builder_add_cut(struct vocabulary_builder *m, const char *expression,
                               enum cut_kind kind, bool inverted)
{
        char *copy;

        if (m->v.cut_count == VOCABULARY_CUTS_MAX)
                return vocabulary_builder_refuse(m, "its texts are split in more than %u ways",
                                                 VOCABULARY_CUTS_MAX);
        copy = strdup(expression);
        if (!copy)
                return error_raise(errtext_set(m->why, m->why_bytes, -ENOMEM, "out of memory"));
        m->cuts[m->v.cut_count++] = (struct vocabulary_cut){ copy, (uint8_t)kind, inverted };
        return 0;
}

int vocabulary_builder_add_cuts(struct vocabulary_builder *m, const struct splitter *splitter)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < splitter->cut_count; i++)
                r = vocabulary_builder_add_cut(m, splitter->cuts[i].expression,
                                               (enum cut_kind)splitter->cuts[i].kind,
                                               splitter->cuts[i].inverted);
        return error_pass(r);
}

int vocabulary_builder_add_normal(struct vocabulary_builder *m, enum normal_kind kind,
                                  const char *expression, const char *content, size_t bytes)
{
        struct vocabulary_normal *step = &m->normals[m->v.normal_count];

        if (m->v.normal_count == VOCABULARY_NORMALS_MAX)
                return vocabulary_builder_refuse(m, "its normalizer has more than %u steps",
                                                 VOCABULARY_NORMALS_MAX);
        *step = (struct vocabulary_normal){ .kind = (uint8_t)kind };
        m->v.normal_count++;
        if (expression)
                step->expression = strdup(expression);
        if (content) {
                char *copy = malloc(bytes + 1);

                if (copy)
                        memcpy(copy, content, bytes);
                step->content = copy;
                step->bytes = (uint32_t)bytes;
        }
        if ((expression && !step->expression) || (content && !step->content))
                return error_raise(errtext_set(m->why, m->why_bytes, -ENOMEM, "out of memory"));
        return 0;
}

int vocabulary_builder_finish(struct vocabulary_builder *m, struct vocabulary **ret_vocabulary)
{
        struct made *made = calloc(1, sizeof(*made));

        if (!made)
                return error_raise(
                        errtext_set(m->why, m->why_bytes, -ENOMEM, "out of memory for its tables"));
        /* An id that the file leaves out still exists, but no text produces it. */
        for (uint32_t id = 0; id < m->entry_capacity; id++)
                if (!vocabulary_builder_has(m, id))
                        m->entries[id] = (struct entry){ .bytes = "", .kind = ENTRY_UNUSED };
        made->mark = malloc(m->mark_bytes + 1);
        if (!made->mark) {
                free(made);
                return error_raise(
                        errtext_set(m->why, m->why_bytes, -ENOMEM, "out of memory for its tables"));
        }
        made->v = m->v;
        if (m->mark_bytes)
                memcpy(made->mark, m->mark, m->mark_bytes);
        made->v.mark = made->mark;
        made->v.mark_bytes = (uint32_t)m->mark_bytes;
        made->v.entry_count = m->entry_capacity;
        made->v.entries = made->entries = m->entries;
        made->v.merges = made->merges = m->merges;
        made->bytes = m->bytes;
        memcpy(made->cuts, m->cuts, sizeof(made->cuts));
        made->v.cuts = made->cuts;
        memcpy(made->normals, m->normals, sizeof(made->normals));
        made->v.normals = made->normals;
        m->v.cut_count = m->v.normal_count = 0;
        m->entries = NULL;
        m->merges = NULL;
        m->bytes = NULL;
        vocabulary_builder_free(m);
        *m = (struct vocabulary_builder){ 0 };
        *ret_vocabulary = &made->v;
        return 0;
}

struct vocabulary *vocabulary_close(struct vocabulary *v)
{
        struct made *made = (struct made *)v;

        if (!made)
                return NULL;
        free_cuts(made->cuts, made->v.cut_count);
        free_normals(made->normals, made->v.normal_count);
        free(made->entries);
        free(made->merges);
        free(made->bytes);
        free(made->mark);
        free(made);
        return NULL;
}
