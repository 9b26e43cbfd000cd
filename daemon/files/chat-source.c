#include "daemon/files/chat-source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/checkpoint.h"
#include "daemon/files/file.h"

#define CONFIG           "tokenizer_config.json"
#define CONFIG_BYTES_MAX (16u << 20)
#define CONFIG_NODES_MAX (1u << 20)

struct reader {
        struct chat_source *to;
        char *why;
        size_t why_bytes;
};

#define refuse(rd, ...) error_raise(errtext_set((rd)->why, (rd)->why_bytes, -EINVAL, __VA_ARGS__))

static int keep(struct reader *rd, const char *what, const char *text, char **to)
{
        if (strlen(text) > CHAT_TEMPLATE_BYTES_MAX)
                return refuse(rd, "%s has %zu bytes, the limit is %u", what, strlen(text),
                              CHAT_TEMPLATE_BYTES_MAX);
        if (*to)
                return refuse(rd, "%s occurs twice", what);
        *to = strdup(text);
        return *to ? 0 : error_raise(errtext_set(rd->why, rd->why_bytes, -ENOMEM, "out of memory"));
}

static int read_metadata(struct reader *rd, const struct gguf *gguf, const char *key, char **to)
{
        const char *text = gguf_string(gguf, key);

        if (!gguf_has(gguf, key))
                return 0;
        return text ? keep(rd, key, text, to) : refuse(rd, "metadata '%s' is not a string", key);
}

static int read_gguf(struct reader *rd, const struct gguf *gguf)
{
        int r = read_metadata(rd, gguf, "tokenizer.chat_template", &rd->to->plain);

        if (!r)
                r = read_metadata(rd, gguf, "tokenizer.chat_template.tool_use", &rd->to->tools);
        return error_pass(r);
}

/* Reads a file that is a template, if it exists. */
static int read_template(struct reader *rd, int folder, const char *name, char **to)
{
        size_t bytes;
        char *text;
        int r = file_read_all(folder, name, CHAT_TEMPLATE_BYTES_MAX, &text, &bytes, rd->why,
                              rd->why_bytes);

        if (r == FILE_E_ABSENT)
                return 0;
        if (r)
                return error_pass(errtext_prefix(rd->why, rd->why_bytes, r, name));
        if (memchr(text, '\0', bytes)) {
                free(text);
                return refuse(rd, "%s contains a NUL byte", name);
        }
        *to = text;
        return 0;
}

/* [{name, template}]: templates of other names have other uses and are ignored. */
static int read_list(struct reader *rd, const struct json_document *json, uint32_t list)
{
        int r = 0;

        for (uint32_t node = json_first(json, list); !r && node != JSON_NONE;
             node = json_next(json, node)) {
                const char *name = json_string(json, json_member(json, node, "name"), NULL);
                const char *text = json_string(json, json_member(json, node, "template"), NULL);

                if (!name || !text)
                        return refuse(rd, CONFIG ": a chat_template has no name or no template");
                if (!strcmp(name, "default"))
                        r = keep(rd, CONFIG ": the default chat_template", text, &rd->to->plain);
                else if (!strcmp(name, "tool_use"))
                        r = keep(rd, CONFIG ": the chat_template tool_use", text, &rd->to->tools);
        }
        return error_pass(r);
}

static int read_templates(struct reader *rd, const struct json_document *json)
{
        uint32_t node = json_member(json, 0, "chat_template");
        const char *text = json_string(json, node, NULL);

        if (text)
                return error_pass(keep(rd, CONFIG ": chat_template", text, &rd->to->plain));
        if (json_kind(json, node) == JSON_ARRAY)
                return error_pass(read_list(rd, json, node));
        if (json_kind(json, node) == JSON_ABSENT || json_kind(json, node) == JSON_NULL)
                return 0;
        return refuse(rd, CONFIG ": chat_template is neither a string nor a list");
}

/* A string, or an object whose `content` is a string. */
static int read_token(struct reader *rd, const struct json_document *json, const char *key,
                      char **to)
{
        uint32_t node = json_member(json, 0, key);
        const char *text;

        if (json_kind(json, node) == JSON_ABSENT || json_kind(json, node) == JSON_NULL)
                return 0;
        if (json_kind(json, node) == JSON_OBJECT)
                node = json_member(json, node, "content");
        text = json_string(json, node, NULL);
        return text ? keep(rd, key, text, to) : refuse(rd, CONFIG ": %s is not a string", key);
}

/* Reads tokenizer_config.json; its templates only if there is no template file. */
static int read_config(struct reader *rd, const struct json_document *json, bool templates)
{
        int r = templates ? read_templates(rd, json) : 0;

        if (!r)
                r = read_token(rd, json, "bos_token", &rd->to->bos);
        if (!r)
                r = read_token(rd, json, "eos_token", &rd->to->eos);
        return error_pass(r);
}

static int read_folder(struct reader *rd, int folder)
{
        struct chat_source *to = rd->to;
        struct json_document *json = NULL;
        bool alone;
        int r;

        r = read_template(rd, folder, "chat_template.jinja", &to->plain);
        alone = to->plain;
        if (!r && alone)
                r = read_template(rd, folder, "additional_chat_templates/tool_use.jinja",
                                  &to->tools);
        if (!r)
                r = file_read_json(folder, CONFIG, CONFIG_BYTES_MAX, CONFIG_NODES_MAX, &json,
                                   rd->why, rd->why_bytes);
        if (r)
                return r == FILE_E_ABSENT ? 0 : error_pass(r);
        r = read_config(rd, json, !alone);
        json_free(json);
        return error_pass(r);
}

/* A file that the user named. */
static int read_file(struct reader *rd, const char *path)
{
        size_t name = strlen(path), suffix = strlen(".json"), bytes;
        bool config = name > suffix && !strcmp(path + name - suffix, ".json");
        struct json_document *json;
        char *text;
        int r = file_read_all(AT_FDCWD, path, config ? CONFIG_BYTES_MAX : CHAT_TEMPLATE_BYTES_MAX,
                              &text, &bytes, rd->why, rd->why_bytes);

        if (r)
                return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        if (!config && memchr(text, '\0', bytes)) {
                free(text);
                return refuse(rd,
                              "it contains a NUL byte, so it is neither a template nor a model");
        }
        if (!config) {
                rd->to->plain = text;
                return 0;
        }
        r = error_raise(
                json_parse_python(text, bytes, CONFIG_NODES_MAX, &json, rd->why, rd->why_bytes));
        free(text);
        if (r)
                return error_pass(r);
        r = read_config(rd, json, true);
        json_free(json);
        return error_pass(r);
}

static int finish(struct reader *rd, int r)
{
        if (r)
                chat_source_deinit(rd->to);
        return error_pass(r);
}

int chat_source_read(const struct checkpoint *checkpoint, struct chat_source *ret_source, char *why,
                     size_t why_bytes)
{
        struct reader rd = { ret_source, why, why_bytes };
        const struct gguf *gguf = checkpoint_gguf(checkpoint);

        if (!gguf)
                return error_pass(chat_source_folder(checkpoint_folder(checkpoint), ret_source, why,
                                                     why_bytes));
        *ret_source = (struct chat_source){ 0 };
        return finish(&rd, read_gguf(&rd, gguf));
}

int chat_source_folder(int folder, struct chat_source *ret_source, char *why, size_t why_bytes)
{
        struct reader rd = { ret_source, why, why_bytes };

        *ret_source = (struct chat_source){ 0 };
        return finish(&rd, read_folder(&rd, folder));
}

int chat_source_file(const char *path, struct chat_source *ret_source, char *why, size_t why_bytes)
{
        struct reader rd = { ret_source, why, why_bytes };

        *ret_source = (struct chat_source){ 0 };
        return finish(&rd, read_file(&rd, path));
}

void chat_source_deinit(struct chat_source *source)
{
        free(source->plain);
        free(source->tools);
        free(source->bos);
        free(source->eos);
        *source = (struct chat_source){ 0 };
}
