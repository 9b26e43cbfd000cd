/*
 * A place is an offset in the text.  Going from the left, each place with a path gives a candidate
 * to every place where an entry ends that begins here.  A place that no candidate has gone beyond
 * is part of every path: up to there the path is given, and the places begin anew.
 */
#include "daemon/text/unigram.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/trie.h"
#include "daemon/text/unicode.h"

#define HEX_BYTES 6u /* of <0x0A> */

struct unigram {
        struct trie *trie;
        double *scores; /* by id */
        double unknown_score;
        uint32_t unknown;
        bool single_sums;
};

/* ---- tables ---- */

/* Which entries the model makes of text; writes the spelling of a byte to `hex`. */
static bool read_word(const struct vocabulary *v, uint32_t id, char *hex, struct trie_word *word)
{
        const struct entry *e = &v->entries[id];

        *word = (struct trie_word){ e->bytes, e->count, id };
        if (!e->count || e->score == -INFINITY)
                return false;
        if (e->kind != ENTRY_BYTE)
                return e->kind == ENTRY_NORMAL || e->kind == ENTRY_USER;
        if (!v->spelt_bytes)
                return false;
        snprintf(hex, HEX_BYTES + 1, "<0x%02X>", (uint8_t)e->bytes[0]);
        word->bytes = hex;
        word->count = HEX_BYTES;
        return true;
}

static int make_trie(const struct vocabulary *v, struct unigram *u)
{
        struct trie_word *words = calloc(v->entry_count, sizeof(*words));
        char(*hex)[HEX_BYTES + 1] = calloc(256, sizeof(*hex));
        uint32_t count = 0;
        int r = -ENOMEM;

        for (uint32_t id = 0; words && hex && id < v->entry_count; id++) {
                const struct entry *e = &v->entries[id];
                uint8_t byte = e->kind == ENTRY_BYTE ? (uint8_t)e->bytes[0] : 0;

                count += read_word(v, id, hex[byte], &words[count]);
        }
        if (words && hex)
                r = trie_new(words, count, &u->trie);
        free(words);
        free(hex);
        return error_raise(r);
}

int unigram_new(const struct vocabulary *v, struct unigram **ret_unigram)
{
        struct unigram *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return error_raise(-ENOMEM);
        u->single_sums = v->single_sums;
        u->unknown = v->unknown;
        u->unknown_score = v->unknown_score;
        u->scores = calloc(v->entry_count, sizeof(*u->scores));
        for (uint32_t id = 0; u->scores && id < v->entry_count; id++)
                u->scores[id] = v->entries[id].score;
        r = u->scores ? make_trie(v, u) : error_raise(-ENOMEM);
        if (r) {
                unigram_free(u);
                return error_pass(r);
        }
        *ret_unigram = u;
        return 0;
}

struct unigram *unigram_free(struct unigram *u)
{
        if (!u)
                return NULL;
        trie_free(u->trie);
        free(u->scores);
        free(u);
        return NULL;
}

uint32_t unigram_find(const struct unigram *u, const char *text, size_t bytes)
{
        uint32_t node = TRIE_ROOT;

        for (size_t at = 0; at < bytes && node != TRIE_NONE; at++)
                node = trie_step(u->trie, node, text[at]);
        return node == TRIE_NONE ? VOCABULARY_NONE : trie_value(u->trie, node);
}

/* ---- paths ---- */

struct search {
        const struct unigram *u;
        struct unigram_work *work;
        const char *text; /* at the first place */
        size_t reach;     /* the last place that has a node */
        unigram_put_fn put;
        void *arg;
};

void unigram_work_deinit(struct unigram_work *work)
{
        free(work->nodes);
        *work = (struct unigram_work){ 0 };
}

/* Makes the nodes up to this place, without paths. */
static int extend(struct search *s, size_t place)
{
        struct unigram_work *work = s->work;

        if (place >= work->capacity) {
                size_t capacity = 2 * place + 256;
                struct unigram_node *nodes =
                        reallocarray(work->nodes, capacity, sizeof(*work->nodes));

                if (!nodes)
                        return error_raise(-ENOMEM);
                work->nodes = nodes;
                work->capacity = capacity;
        }
        while (s->reach < place)
                work->nodes[++s->reach] = (struct unigram_node){ 0 };
        return 0;
}

static int offer(struct search *s, size_t at, size_t end, uint32_t id, double score)
{
        struct unigram_node *node;
        double sum = s->work->nodes[at].sum + score;
        int r = end > s->reach ? extend(s, end) : 0;

        if (r)
                return error_pass(r);
        if (s->u->single_sums)
                sum = (double)(float)sum;
        node = &s->work->nodes[end];
        if (node->bytes && !(sum > node->sum))
                return 0;
        node->sum = sum;
        node->bytes = (uint32_t)(end - at);
        node->id = id;
        return 0;
}

/* Offers the path to `at` to all places where an entry ends that begins there. */
static int advance(struct search *s, size_t at, size_t bytes, size_t character, uint64_t *steps)
{
        const struct unigram *u = s->u;
        uint32_t node = TRIE_ROOT;
        bool is_known = false;
        size_t end = at;
        int r = 0;

        while (!r && end < bytes && (node = trie_step(u->trie, node, s->text[end])) != TRIE_NONE) {
                uint32_t id = trie_value(u->trie, node);

                end++;
                if (id == TRIE_NONE)
                        continue;
                r = offer(s, at, end, id, u->scores[id]);
                is_known = is_known || end == at + character;
        }
        *steps += end - at + 1;
        if (r || is_known)
                return error_pass(r);
        return error_pass(offer(s, at, at + character, u->unknown, u->unknown_score));
}

/* Gives the path to this place, which is written from its end to its begin. */
static void give(struct search *s, size_t place)
{
        struct unigram_node *nodes = s->work->nodes, next = { 0 };
        size_t at = place;

        for (;;) { /* each node learns the entry behind it, instead of the one before it */
                struct unigram_node last = nodes[at];

                nodes[at].bytes = next.bytes;
                nodes[at].id = next.id;
                if (!at)
                        break;
                assert(last.bytes && last.bytes <= at);
                next = last;
                at -= last.bytes;
        }
        for (at = 0; at < place; at += nodes[at].bytes)
                s->put(s->arg, nodes[at].id, s->text + at, nodes[at].bytes);
}

/* The paths begin here, with the sum that they have so far. */
static int begin(struct search *s, const char *text, double sum)
{
        int r;

        s->text = text;
        s->reach = 0;
        r = extend(s, 0);
        if (r)
                return error_pass(r);
        s->work->nodes[0] = (struct unigram_node){ .sum = sum };
        return 0;
}

int unigram_run(const struct unigram *u, struct unigram_work *work, const char *text, size_t bytes,
                struct encoding *how, unigram_put_fn put, void *arg)
{
        struct search s = { .u = u, .work = work, .put = put, .arg = arg };
        const char *end = text + bytes;
        size_t at = 0, n;
        int r = begin(&s, text, 0);

        while (!r && s.text + at < end) {
                uint32_t code;

                if (encoding_cancelled(how))
                        return -ECANCELED;
                if (at && at == s.reach) {
                        give(&s, at);
                        r = begin(&s, s.text + at, work->nodes[at].sum);
                        if (r)
                                break;
                        at = 0;
                }
                n = unicode_next(s.text + at, (size_t)(end - s.text) - at, &code);
                r = advance(&s, at, (size_t)(end - s.text), n, &how->steps);
                at += n;
        }
        if (!r)
                give(&s, at);
        return error_pass(r);
}
