#include "daemon/files/side-files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/file.h"
#include "json/shown.h"

#define BYTES_MAX  (64u << 20)
#define NODES_MAX  (1u << 20)
#define PATH_BYTES 4096u
#define SPARE_IDS  262144u

/* 0 without a document: there is no such file, or it is no JSON. */
static int open_beside(struct side_files *side, const char *path, const char *name,
                       struct json_document **ret_json, char *why, size_t why_bytes)
{
        const char *slash = strrchr(path, '/');
        char other[PATH_BYTES];
        int n = snprintf(other, sizeof(other), "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
                         name);
        char what[192] = "", *text;
        size_t bytes;
        int r;

        if (n < 0 || (size_t)n >= sizeof(other))
                return error_raise(
                        errtext_set(why, why_bytes, -ENAMETOOLONG, "the path is too long"));
        r = file_read_all(AT_FDCWD, other, BYTES_MAX, &text, &bytes, what, sizeof(what));
        if (r == FILE_E_ABSENT)
                return 0;
        if (!r) {
                r = error_raise(
                        json_parse_python(text, bytes, NODES_MAX, ret_json, what, sizeof(what)));
                free(text);
        }
        if (r == -EINVAL)
                return errtext_set(side->fault, sizeof(side->fault), 0, "%s, beside it: %s", name,
                                   what);
        if (r)
                errtext_set(why, why_bytes, r, "%s, beside it: %s", name, what);
        return error_pass(r);
}

uint32_t side_files_first(const struct side_files *side)
{
        if (!side->config)
                return JSON_NONE;
        return json_first(side->config, json_member(side->config, 0, "added_tokens_decoder"));
}

bool side_files_has_list(const struct side_files *side)
{
        return side_files_first(side) != JSON_NONE;
}

bool side_files_listed(const struct json_document *json, uint32_t node, uint64_t *ret_id,
                       const char **ret_name, size_t *ret_bytes)
{
        const char *key = json_key(json, node, NULL);
        char *end;

        *ret_name = json_string(json, json_member(json, node, "content"), ret_bytes);
        *ret_id = key ? strtoull(key, &end, 10) : 0;
        return key && *ret_name && end > key && !*end && *ret_id < VOCABULARY_ENTRIES_MAX &&
               *ret_bytes <= VOCABULARY_ENTRY_BYTES_MAX;
}

static void measure(struct side_files *side, uint64_t id, size_t bytes)
{
        if (id >= side->ids)
                side->ids = id + 1;
        side->bytes += bytes;
        side->count++;
}

static int measure_listed(struct side_files *side, char *why, size_t why_bytes)
{
        const char *name;
        size_t bytes;
        uint64_t id;

        for (uint32_t n = side_files_first(side); n != JSON_NONE; n = json_next(side->config, n)) {
                if (!side_files_listed(side->config, n, &id, &name, &bytes))
                        return error_raise(errtext_set(
                                why, why_bytes, -EINVAL,
                                "tokenizer_config.json, beside it: 'added_tokens_decoder' has an "
                                "id or a content that cannot be read"));
                measure(side, id, bytes);
        }
        return 0;
}

static int measure_added(struct side_files *side, char *why, size_t why_bytes)
{
        if (!side->added)
                return 0;
        for (uint32_t n = json_first(side->added, 0); n != JSON_NONE;
             n = json_next(side->added, n)) {
                size_t bytes = 0;
                const char *name = json_key(side->added, n, &bytes);
                uint64_t id;

                if (!name || !json_whole(side->added, n, &id) || id >= VOCABULARY_ENTRIES_MAX)
                        return error_raise(errtext_set(
                                why, why_bytes, -EINVAL,
                                "added_tokens.json, beside it: the id of '%s' is not a number "
                                "below %u",
                                shown(name ? name : "").text, VOCABULARY_ENTRIES_MAX));
                if (bytes > VOCABULARY_ENTRY_BYTES_MAX)
                        return error_raise(errtext_set(
                                why, why_bytes, -EINVAL,
                                "added_tokens.json, beside it: a token has %zu bytes, the limit is "
                                "%u",
                                bytes, VOCABULARY_ENTRY_BYTES_MAX));
                measure(side, id, bytes);
        }
        return 0;
}

const char *side_files_name(const struct json_document *json, uint32_t node, size_t *ret_bytes)
{
        const char *name = json_string(json, node, ret_bytes);

        if (!name)
                name = json_string(json, json_member(json, node, "content"), ret_bytes);
        return name && *ret_bytes && *ret_bytes <= VOCABULARY_ENTRY_BYTES_MAX ? name : NULL;
}

static bool ends_with(const char *text, size_t bytes, const char *end)
{
        size_t n = strlen(end);

        return text && bytes >= n && !memcmp(text + bytes - n, end, n);
}

void side_files_each_special(const struct json_document *json,
                             void (*fn)(void *arg, const struct json_document *json, uint32_t node),
                             void *arg)
{
        for (uint32_t n = json ? json_first(json, 0) : JSON_NONE; n != JSON_NONE;
             n = json_next(json, n)) {
                size_t bytes;
                const char *key = json_key(json, n, &bytes);

                if (ends_with(key, bytes, "_token"))
                        fn(arg, json, n);
                if (ends_with(key, bytes, "additional_special_tokens") ||
                    ends_with(key, bytes, "extra_special_tokens"))
                        for (uint32_t i = json_first(json, n); i != JSON_NONE;
                             i = json_next(json, i))
                                fn(arg, json, i);
        }
}

static void measure_special(void *arg, const struct json_document *json, uint32_t node)
{
        struct side_files *side = arg;
        size_t bytes;

        if (side_files_name(json, node, &bytes))
                side->bytes += bytes;
}

int side_files_measure(struct side_files *side, char *why, size_t why_bytes)
{
        int r = measure_listed(side, why, why_bytes);

        if (!r)
                r = measure_added(side, why, why_bytes);
        if (r)
                return error_pass(r);
        side_files_each_special(side->config, measure_special, side);
        side_files_each_special(side->map, measure_special, side);
        return 0;
}

int side_files_open(struct side_files *ret_side, const char *path, char *why, size_t why_bytes)
{
        struct side_files side = { 0 };
        int r;

        if ((r = open_beside(&side, path, "tokenizer_config.json", &side.config, why, why_bytes)) ||
            (r = open_beside(&side, path, "added_tokens.json", &side.added, why, why_bytes)) ||
            (r = open_beside(&side, path, "special_tokens_map.json", &side.map, why, why_bytes)) ||
            (r = side_files_measure(&side, why, why_bytes))) {
                side_files_close(&side);
                return error_pass(r);
        }
        *ret_side = side;
        return 0;
}

void side_files_close(struct side_files *side)
{
        json_free(side->config);
        json_free(side->added);
        json_free(side->map);
        *side = (struct side_files){ 0 };
}

int side_files_fit(const struct side_files *side, uint64_t entries, uint64_t *ret_ids, char *why,
                   size_t why_bytes)
{
        *ret_ids = side && side->ids > entries ? side->ids : entries;
        if (side && *ret_ids > 2 * (entries + side->count) + SPARE_IDS)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the largest id beside it is %" PRIu64
                                               ", but it has %" PRIu64 " tokens",
                                               *ret_ids - 1, entries));
        return 0;
}

bool side_files_is_on(const struct side_files *side, const char *key, bool absent)
{
        bool on = absent;

        if (side && side->config)
                json_bool(side->config, json_member(side->config, 0, key), &on);
        return on;
}

bool side_files_has_class(const struct side_files *side, const char *name)
{
        size_t n = strlen(name), bytes = 0;
        const char *found = NULL;

        if (side && side->config)
                found = json_string(side->config, json_member(side->config, 0, "tokenizer_class"),
                                    &bytes);
        return found && !strncmp(found, name, n) && (!found[n] || !strcmp(found + n, "Fast"));
}
