#include "daemon/files/side-tokens.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct adding {
        const struct side_files *side;
        struct vocabulary_builder *m;
};

static bool is_on(const struct json_document *json, uint32_t node, const char *key)
{
        bool on = false;

        json_bool(json, json_member(json, node, key), &on);
        return on;
}

/* Those of ENTRY_STRIPS_LEFT and so on that an object has. */
static unsigned flags_of(const struct json_document *json, uint32_t node)
{
        return (is_on(json, node, "lstrip") ? ENTRY_STRIPS_LEFT : 0) |
               (is_on(json, node, "rstrip") ? ENTRY_STRIPS_RIGHT : 0) |
               (is_on(json, node, "single_word") ? ENTRY_ALONE : 0);
}

/* SentencePiece's own rules come behind the added tokens, whatever the list says. */
static unsigned where_found(const struct vocabulary_builder *m, enum entry_kind kind,
                            bool normalised)
{
        if (kind != ENTRY_USER)
                return 0;
        if (m->v.original)
                return ENTRY_FIRST;
        return normalised ? ENTRY_NORMALISED : 0;
}

static int add_token(struct vocabulary_builder *m, uint64_t id, const char *name, size_t bytes,
                     enum entry_kind kind, unsigned flags, bool normalised)
{
        uint32_t found = vocabulary_builder_find(m, name, bytes);
        int r;

        if (found != VOCABULARY_NONE && found != id)
                return vocabulary_builder_refuse(
                        m, "the token '%s' has the id %u, but %" PRIu64 " in the files beside it",
                        shown(name).text, found, id);
        if (!vocabulary_builder_has(m, id)) {
                r = vocabulary_builder_add_entry(m, id, name, bytes, kind, SPELT_PLAIN,
                                                 m->v.kind == VOCABULARY_UNIGRAM ? (double)-INFINITY
                                                                                 : 0);
                if (r)
                        return error_pass(r);
        } else if (m->entries[id].kind == ENTRY_BYTE) {
                return vocabulary_builder_refuse(
                        m, "token %" PRIu64 " is a byte, and a whole token in the files beside it",
                        id);
        } else if (kind == ENTRY_USER && m->entries[id].kind == ENTRY_USER && !flags) {
                return 0; /* SentencePiece finds it in its own way */
        } else {
                vocabulary_builder_respell(m, (uint32_t)id, name, bytes, kind);
        }
        vocabulary_builder_set_matching(m, (uint32_t)id, flags | where_found(m, kind, normalised));
        return 0;
}

static int add_listed(const struct side_files *side, struct vocabulary_builder *m, uint32_t node)
{
        const struct json_document *json = side->config;
        bool special = is_on(json, node, "special"), normalised = !special;
        const char *name;
        size_t bytes;
        uint64_t id;

        if (!side_files_listed(json, node, &id, &name, &bytes))
                return 0;
        json_bool(json, json_member(json, node, "normalized"), &normalised);
        return error_pass(add_token(m, id, name, bytes, special ? ENTRY_CONTROL : ENTRY_USER,
                                    flags_of(json, node), normalised));
}

/* Beside a list, only the ids that it leaves out. */
static int add_unlisted(const struct side_files *side, struct vocabulary_builder *m)
{
        int r = 0;

        if (!side->added)
                return 0;
        for (uint32_t n = json_first(side->added, 0); !r && n != JSON_NONE;
             n = json_next(side->added, n)) {
                size_t bytes;
                const char *name = json_key(side->added, n, &bytes);
                uint64_t id = 0;

                json_whole(side->added, n, &id);
                if (!side_files_has_list(side) || !vocabulary_builder_has(m, id))
                        r = add_token(m, id, name, bytes, ENTRY_USER, 0, true);
        }
        return error_pass(r);
}

/* A token of the vocabulary that a file names as special.  A list has its flags. */
static void set_special(void *arg, const struct json_document *json, uint32_t node)
{
        struct adding *adding = arg;
        struct vocabulary_builder *m = adding->m;
        size_t bytes;
        const char *name = side_files_name(json, node, &bytes);
        uint32_t id = name ? vocabulary_builder_find(m, name, bytes) : VOCABULARY_NONE;
        unsigned flags;

        if (id == VOCABULARY_NONE || m->entries[id].kind == ENTRY_BYTE)
                return;
        flags = m->entries[id].matching & (ENTRY_STRIPS_LEFT | ENTRY_STRIPS_RIGHT | ENTRY_ALONE);
        if (!side_files_has_list(adding->side))
                flags |= flags_of(json, node);
        if (m->entries[id].kind != ENTRY_CONTROL)
                vocabulary_builder_respell(m, id, name, bytes, ENTRY_CONTROL);
        vocabulary_builder_set_matching(m, id, flags);
}

int side_tokens_add(const struct side_files *side, struct vocabulary_builder *m)
{
        struct adding adding = { side, m };
        int r = 0;

        if (!side)
                return 0;
        for (uint32_t n = side_files_first(side); !r && n != JSON_NONE;
             n = json_next(side->config, n))
                r = add_listed(side, m, n);
        if (!r)
                r = add_unlisted(side, m);
        if (r)
                return error_pass(r);
        side_files_each_special(side->config, set_special, &adding);
        side_files_each_special(side->map, set_special, &adding);
        return 0;
}

/* ---- what stands around a text ---- */

/* The id of a name: a list may rename a token, which the builder does not know. */
static uint32_t find_token(const struct side_files *side, const struct vocabulary_builder *m,
                           const char *name, size_t bytes)
{
        for (uint32_t n = side_files_first(side); n != JSON_NONE; n = json_next(side->config, n)) {
                const char *listed;
                size_t count;
                uint64_t id;

                if (side_files_listed(side->config, n, &id, &listed, &count) && count == bytes &&
                    !memcmp(listed, name, bytes))
                        return (uint32_t)id;
        }
        return vocabulary_builder_find(m, name, bytes);
}

static void set_token(const struct side_files *side, const struct vocabulary_builder *m,
                      const char *key, uint32_t *id)
{
        const struct json_document *files[] = { side->config, side->map };

        for (unsigned i = 0; i < 2; i++) {
                const struct json_document *json = files[side_files_has_list(side) ? i : 1 - i];
                size_t bytes;
                const char *name =
                        json ? side_files_name(json, json_member(json, 0, key), &bytes) : NULL;
                uint32_t found = name ? find_token(side, m, name, bytes) : VOCABULARY_NONE;

                if (found != VOCABULARY_NONE)
                        *id = found;
                if (name)
                        return;
        }
}

void side_tokens_set_ends(const struct side_files *side, struct vocabulary_builder *m)
{
        if (!side)
                return;
        set_token(side, m, "bos_token", &m->v.bos);
        set_token(side, m, "eos_token", &m->v.eos);
        m->v.add_bos = side_files_is_on(side, "add_bos_token", m->v.add_bos) &&
                       m->v.bos != VOCABULARY_NONE;
        if (side_files_is_on(side, "add_eos_token", false) && m->v.eos != VOCABULARY_NONE)
                m->v.ends[m->v.end_count++] = m->v.eos;
}
