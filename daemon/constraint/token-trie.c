#include "daemon/constraint/token-trie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "json/utf8.h"

struct entry {
        const char *bytes;
        uint32_t count, token;
};

static const uint32_t slice_characters[SLICE_COUNT] = {
        [SLICE_SHORT] = 10,
        [SLICE_MIDDLE] = 30,
        [SLICE_LONG] = TOKEN_TRIE_DEPTH,
        [SLICE_SIGNS] = 10,
        [SLICE_LONGER_SIGNS] = TOKEN_TRIE_DEPTH,
};

static bool is_sign(unsigned char byte)
{
        return byte < 0x80 && byte != ' ' && !(byte >= '0' && byte <= '9') &&
               !((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

static enum token_slice slice_of(const char *bytes, uint32_t count)
{
        uint32_t characters = 0;
        bool signs = false;

        if (utf8_valid(bytes, count) != count)
                return SLICE_OTHER;
        for (uint32_t i = 0; i < count; i++) {
                unsigned char byte = bytes[i];

                if (byte < ' ' || byte == 0x7f || byte == '"' || byte == '\\')
                        return SLICE_OTHER;
                characters += (byte & 0xc0) != 0x80;
                signs |= is_sign(byte);
        }
        if (signs)
                return characters <= 10 ? SLICE_SIGNS : SLICE_LONGER_SIGNS;
        return characters <= 10 ? SLICE_SHORT : characters <= 30 ? SLICE_MIDDLE : SLICE_LONG;
}

static int compare(const void *one, const void *other)
{
        const struct entry *a = one, *b = other;
        uint32_t both = a->count < b->count ? a->count : b->count;
        int order = memcmp(a->bytes, b->bytes, both);

        if (order == 0)
                order = (a->count > b->count) - (a->count < b->count);
        return order ? order : (a->token > b->token) - (a->token < b->token);
}

static uint32_t common(const struct entry *one, const struct entry *other)
{
        uint32_t at = 0;

        while (at < one->count && at < other->count && one->bytes[at] == other->bytes[at])
                at++;
        return at;
}

static bool same_text(const struct entry *one, const struct entry *other)
{
        return one->count == other->count && memcmp(one->bytes, other->bytes, one->count) == 0;
}

/* The entries are sorted, so a new text leaves the path at one place and never comes back. */
static void add_nodes(struct token_trie *trie, struct trie_slice *slice,
                      const struct entry *entries, uint32_t count)
{
        uint32_t path[TOKEN_TRIE_DEPTH + 1], depth = 0;

        for (uint32_t i = 0; i < count; i++) {
                const struct entry *entry = &entries[i];
                uint32_t shared = i ? common(&entries[i - 1], entry) : 0;

                slice->bits[entry->token >> 5] |= 1u << (entry->token & 31);
                for (uint32_t j = shared; j < entry->count; j++)
                        byte_set_add(&slice->bytes, entry->bytes[j], entry->bytes[j]);
                if (i && same_text(&entries[i - 1], entry)) {
                        trie->same[entries[i - 1].token] = entry->token;
                        continue;
                }
                for (; depth > shared; depth--)
                        slice->nodes[path[depth]].subtree = slice->count - path[depth];
                while (depth < entry->count) {
                        path[depth + 1] = slice->count;
                        slice->nodes[slice->count++] = (struct trie_node){
                                .token = TOKEN_TRIE_NONE,
                                .byte = (uint8_t)entry->bytes[depth],
                                .depth = depth + 1,
                        };
                        depth++;
                }
                slice->nodes[path[depth]].token = entry->token;
        }
        for (; depth > 0; depth--)
                slice->nodes[path[depth]].subtree = slice->count - path[depth];
}

static bool add_slice(struct token_trie *trie, enum token_slice which, struct entry *entries,
                      uint32_t count)
{
        struct trie_slice *slice = &trie->slices[which];
        uint32_t nodes = 0;

        qsort(entries, count, sizeof(*entries), compare);
        for (uint32_t i = 0; i < count; i++)
                nodes += entries[i].count - (i ? common(&entries[i - 1], &entries[i]) : 0);
        slice->nodes = calloc(nodes + 1, sizeof(*slice->nodes));
        slice->bits = calloc(trie->words + 1, sizeof(*slice->bits));
        if (!slice->nodes || !slice->bits)
                return false;
        slice->characters = slice_characters[which];
        add_nodes(trie, slice, entries, count);
        return true;
}

static bool add_slices(struct token_trie *trie, struct entry *entries)
{
        for (enum token_slice which = 0; which < SLICE_COUNT; which++) {
                uint32_t count = 0;

                for (uint32_t token = 0; token < trie->token_count; token++) {
                        const char *bytes = trie->texts + trie->offsets[token];
                        uint32_t length = trie->offsets[token + 1] - trie->offsets[token];

                        if (length && slice_of(bytes, length) == which)
                                entries[count++] = (struct entry){ bytes, length, token };
                }
                if (!add_slice(trie, which, entries, count))
                        return false;
        }
        return true;
}

static bool is_control(const struct token_trie *trie, uint32_t token)
{
        for (uint32_t i = 0; i < trie->control_count; i++)
                if (trie->controls[i] == token)
                        return true;
        return false;
}

/* Copies the texts that can be legal, one behind the other. */
static bool copy_texts(struct token_trie *trie, const struct token_text *texts)
{
        size_t bytes = 1, at = 0;

        for (uint32_t i = 0; i < trie->token_count; i++)
                bytes += texts[i].count <= TOKEN_TRIE_DEPTH ? texts[i].count : 0;
        trie->texts = malloc(bytes);
        if (!trie->texts)
                return false;
        for (uint32_t i = 0; i < trie->token_count; i++) {
                trie->offsets[i] = at;
                if (texts[i].count == 0 || is_control(trie, i))
                        continue;
                if (texts[i].count > TOKEN_TRIE_DEPTH ||
                    memchr(texts[i].bytes, 0xff, texts[i].count)) {
                        trie->left_out++;
                        continue;
                }
                memcpy(trie->texts + at, texts[i].bytes, texts[i].count);
                at += texts[i].count;
        }
        trie->offsets[trie->token_count] = at;
        return true;
}

struct token_trie *token_trie_new(const struct token_text *texts, uint32_t count,
                                  const uint32_t *controls, uint32_t control_count)
{
        struct token_trie *trie = calloc(1, sizeof(*trie));
        struct entry *entries = NULL;
        bool made = false;

        if (!trie)
                return NULL;
        trie->token_count = count;
        trie->words = (count + 31) / 32;
        trie->offsets = calloc(count + 1, sizeof(*trie->offsets));
        trie->same = malloc((count + 1) * sizeof(*trie->same));
        trie->controls = calloc(control_count + 1, sizeof(*trie->controls));
        entries = calloc(count + 1, sizeof(*entries));
        if (count <= TOKEN_TRIE_MAX && trie->offsets && trie->same && trie->controls && entries) {
                for (uint32_t i = 0; i < count; i++)
                        trie->same[i] = TOKEN_TRIE_NONE;
                for (uint32_t i = 0; i < control_count; i++)
                        if (controls[i] < count)
                                trie->controls[trie->control_count++] = controls[i];
                made = copy_texts(trie, texts) && add_slices(trie, entries);
        }
        free(entries);
        return made ? trie : token_trie_free(trie);
}

struct token_trie *token_trie_free(struct token_trie *trie)
{
        if (!trie)
                return NULL;
        for (enum token_slice which = 0; which < SLICE_COUNT; which++) {
                free(trie->slices[which].nodes);
                free(trie->slices[which].bits);
        }
        free(trie->same);
        free(trie->controls);
        free(trie->texts);
        free(trie->offsets);
        free(trie);
        return NULL;
}
