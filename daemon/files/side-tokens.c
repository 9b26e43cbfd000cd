#include "daemon/files/side-tokens.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/file.h"

#define BYTES_MAX  (64u << 20)
#define NODES_MAX  (1u << 20)
#define PATH_BYTES 4096u

/* 0 without a document: there is no such file. */
static int open_beside(const char *path, const char *name, struct json_document **ret_json,
                       char *why, size_t why_bytes)
{
        const char *slash = strrchr(path, '/');
        char other[PATH_BYTES];
        int n = snprintf(other, sizeof(other), "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
                         name);
        char what[192] = "";
        int r;

        if (n < 0 || (size_t)n >= sizeof(other))
                return error_raise(
                        errtext_set(why, why_bytes, -ENAMETOOLONG, "the path is too long"));
        r = file_read_json(AT_FDCWD, other, BYTES_MAX, NODES_MAX, ret_json, what, sizeof(what));
        if (r == FILE_E_ABSENT)
                return 0;
        if (r)
                errtext_set(why, why_bytes, r, "%s, beside it: %s", name,
                            strrchr(what, '/') ? strrchr(what, '/') + 1 : what);
        return error_pass(r);
}

/* The tokens of tokenizer_config.json: an object of ids and their properties. */
static uint32_t first_listed(const struct side_tokens *side)
{
        if (!side->config)
                return JSON_NONE;
        return json_first(side->config, json_member(side->config, 0, "added_tokens_decoder"));
}

static bool read_listed(const struct json_document *json, uint32_t node, uint64_t *ret_id,
                        const char **ret_name, size_t *ret_bytes)
{
        const char *key = json_key(json, node, NULL);
        char *end;

        *ret_name = json_string(json, json_member(json, node, "content"), ret_bytes);
        *ret_id = key ? strtoull(key, &end, 10) : 0;
        return key && *ret_name && end > key && !*end && *ret_id < VOCABULARY_ENTRIES_MAX;
}

static void measure(struct side_tokens *side, uint64_t id, size_t bytes)
{
        if (id >= side->ids)
                side->ids = id + 1;
        side->bytes += bytes;
        side->count++;
}

static int measure_all(struct side_tokens *side, char *why, size_t why_bytes)
{
        const char *name;
        size_t bytes;
        uint64_t id;

        for (uint32_t n = first_listed(side); n != JSON_NONE; n = json_next(side->config, n)) {
                if (!read_listed(side->config, n, &id, &name, &bytes))
                        return error_raise(errtext_set(
                                why, why_bytes, -EINVAL,
                                "tokenizer_config.json, beside it: 'added_tokens_decoder' has an "
                                "id or a content that cannot be read"));
                measure(side, id, bytes);
        }
        if (!side->added)
                return 0;
        for (uint32_t n = json_first(side->added, 0); n != JSON_NONE;
             n = json_next(side->added, n)) {
                name = json_key(side->added, n, &bytes);
                if (!name || !json_whole(side->added, n, &id) || id >= VOCABULARY_ENTRIES_MAX)
                        return error_raise(errtext_set(
                                why, why_bytes, -EINVAL,
                                "added_tokens.json, beside it: the id of '%s' is not a number "
                                "below %u",
                                shown(name ? name : "").text, VOCABULARY_ENTRIES_MAX));
                measure(side, id, bytes);
        }
        return 0;
}

int side_tokens_open(struct side_tokens *ret_side, const char *path, char *why, size_t why_bytes)
{
        struct side_tokens side = { 0 };
        int r = open_beside(path, "tokenizer_config.json", &side.config, why, why_bytes);

        if (!r)
                r = open_beside(path, "added_tokens.json", &side.added, why, why_bytes);
        if (!r)
                r = measure_all(&side, why, why_bytes);
        if (r) {
                side_tokens_close(&side);
                return error_pass(r);
        }
        *ret_side = side;
        return 0;
}

void side_tokens_close(struct side_tokens *side)
{
        json_free(side->config);
        json_free(side->added);
        *side = (struct side_tokens){ 0 };
}

/* ---- adding ---- */

static bool is_on(const struct json_document *json, uint32_t node, const char *key)
{
        bool on = false;

        json_bool(json, json_member(json, node, key), &on);
        return on;
}

static int add_listed(const struct side_tokens *side, struct vocabulary_builder *m, uint32_t node)
{
        const struct json_document *json = side->config;
        const char *name;
        size_t bytes;
        uint64_t id;
        int r;

        if (!read_listed(json, node, &id, &name, &bytes) || vocabulary_builder_has(m, id))
                return 0;
        r = vocabulary_builder_add_entry(m, id, name, bytes,
                                         is_on(json, node, "special") ? ENTRY_CONTROL : ENTRY_USER,
                                         SPELT_PLAIN, 0);
        if (!r)
                vocabulary_builder_set_matching(
                        m, (uint32_t)id,
                        (is_on(json, node, "lstrip") ? ENTRY_STRIPS_LEFT : 0) |
                                (is_on(json, node, "rstrip") ? ENTRY_STRIPS_RIGHT : 0) |
                                (is_on(json, node, "single_word") ? ENTRY_ALONE : 0));
        return error_pass(r);
}

/* A token of the config is a text, or an object with it. */
static void set_token(const struct side_tokens *side, struct vocabulary_builder *m, const char *key,
                      uint32_t *id)
{
        uint32_t node = json_member(side->config, 0, key), found;
        size_t bytes;
        const char *name = json_string(side->config, node, &bytes);

        if (!name)
                name = json_string(side->config, json_member(side->config, node, "content"),
                                   &bytes);
        found = name ? vocabulary_builder_find(m, name, bytes) : VOCABULARY_NONE;
        if (found != VOCABULARY_NONE)
                *id = found;
}

int side_tokens_add(const struct side_tokens *side, struct vocabulary_builder *m)
{
        int r = 0;

        for (uint32_t n = first_listed(side); !r && n != JSON_NONE; n = json_next(side->config, n))
                r = add_listed(side, m, n);
        for (uint32_t n = side->added ? json_first(side->added, 0) : JSON_NONE;
             !r && n != JSON_NONE; n = json_next(side->added, n)) {
                size_t bytes;
                const char *name = json_key(side->added, n, &bytes);
                uint64_t id = 0;

                json_whole(side->added, n, &id);
                if (!vocabulary_builder_has(m, id))
                        r = vocabulary_builder_add_entry(m, id, name, bytes, ENTRY_USER,
                                                         SPELT_PLAIN, 0);
        }
        if (r || !side->config)
                return error_pass(r);
        set_token(side, m, "bos_token", &m->v.bos);
        set_token(side, m, "eos_token", &m->v.eos);
        json_bool(side->config, json_member(side->config, 0, "add_bos_token"), &m->v.add_bos);
        if (m->v.bos == VOCABULARY_NONE)
                m->v.add_bos = false;
        return 0;
}
