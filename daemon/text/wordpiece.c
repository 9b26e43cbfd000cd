/*
 * The word is read once, from its end to its begin.  So the longest entry that begins at each byte
 * is known before the word is divided (added-tokens.h).
 */
#include "daemon/text/wordpiece.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

static bool begins_word(const struct entry *entry)
{
        return entry->count && *entry->bytes == ' ';
}

/* The entries that one automaton finds, and the bytes of those that are written anew. */
struct collected {
        struct added_token *words;
        uint32_t count;
        char *bytes;
        size_t used;
};

static void add(struct collected *c, const char *bytes, uint32_t count, uint32_t id)
{
        c->words[c->count++] = (struct added_token){ bytes, count, id };
}

/* An entry inside words, as it is at the begin of a word: behind a blank and the mark. */
static void add_marked(struct collected *c, const struct vocabulary *v, uint32_t id)
{
        const struct entry *entry = &v->entries[id];
        char *to = c->bytes + c->used;

        *to = ' ';
        memcpy(to + 1, v->mark, v->mark_bytes);
        memcpy(to + 1 + v->mark_bytes, entry->bytes, entry->count);
        add(c, to, 1 + v->mark_bytes + entry->count, id);
        c->used += 1 + v->mark_bytes + entry->count;
}

static void collect(const struct vocabulary *v, bool begins, struct collected *c)
{
        for (uint32_t id = 0; id < v->entry_count; id++) {
                const struct entry *entry = &v->entries[id];

                if (entry->kind != ENTRY_NORMAL)
                        continue;
                if (begins && !begins_word(entry) && v->mark_bytes)
                        add_marked(c, v, id);
                /* A blank alone begins no word. */
                if (entry->count > begins && begins_word(entry) == begins)
                        add(c, entry->bytes, entry->count, id);
        }
}

/* Finds the entries that begin a word, or the others. */
static int build(const struct vocabulary *v, bool begins, uint64_t bytes,
                 struct added_tokens **ret_added_tokens)
{
        struct collected c = {
                .words = calloc((size_t)v->entry_count + 1, sizeof(*c.words)),
                .bytes = malloc(bytes + 1),
        };
        int r = c.words && c.bytes ? 0 : error_raise(-ENOMEM);

        if (!r) {
                collect(v, begins, &c);
                r = added_tokens_new(c.words, c.count, ret_added_tokens);
        }
        free(c.words);
        free(c.bytes);
        return error_pass(r);
}

int wordpiece_open(struct wordpiece *ret_wordpiece, const struct vocabulary *v, char *why,
                   size_t why_bytes)
{
        struct wordpiece w = { 0 };
        uint64_t bytes = 0;
        int r;

        for (uint32_t id = 0; id < v->entry_count; id++)
                bytes += v->entries[id].count + 1 + v->mark_bytes;
        if (bytes > WORDPIECE_BYTES_MAX)
                return error_raise(
                        errtext_set(why, why_bytes, -EINVAL,
                                    "its tokens have more than %u bytes together, with marks",
                                    WORDPIECE_BYTES_MAX));
        r = build(v, true, bytes, &w.begins);
        if (!r)
                r = build(v, false, bytes, &w.others);
        if (r) {
                wordpiece_close(&w);
                return error_pass(r);
        }
        *ret_wordpiece = w;
        return 0;
}

void wordpiece_close(struct wordpiece *w)
{
        w->begins = added_tokens_free(w->begins);
        w->others = added_tokens_free(w->others);
}

bool wordpiece_divide(const struct wordpiece *w, const char *word, size_t bytes, uint32_t *ids,
                      uint32_t *nexts, uint64_t *steps)
{
        uint32_t begins = 0, others = 0, count = 0;

        assert(bytes > 1 && *word == ' ');
        for (size_t at = bytes; at--;) {
                begins = added_tokens_step(w->begins, begins, word[at], steps);
                if (at) {
                        others = added_tokens_step(w->others, others, word[at], steps);
                        ids[at] = added_token(w->others, others, &count);
                } else {
                        ids[at] = added_token(w->begins, begins, &count);
                }
                nexts[at] = (uint32_t)at + count;
        }
        for (size_t at = 0; at < bytes; at = nexts[at])
                if (ids[at] == VOCABULARY_NONE)
                        return false;
        return true;
}
