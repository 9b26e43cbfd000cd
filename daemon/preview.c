#include "daemon/preview.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/error.h"
#include "daemon/files/chat-source.h"
#include "daemon/files/file.h"
#include "daemon/json.h"
#include "daemon/sys.h"
#include "daemon/text/chat.h"
#include "daemon/why.h"

#define MESSAGES_BYTES_MAX (8u << 20)
#define NODE_BYTES         256u /* bytes of a value and its key in an arena, without their text */
#define ARENA_SPARE        (1u << 20)

/* ---- the template ---- */

/* Takes the result r and *what of reading the source; frees the source. */
static int take_source(struct opening *o, struct chat_source *source, const char *what, int r)
{
        struct chat_conf conf = { 0 };

        if (r)
                return opening_blame(o, o->path, what, r);
        conf.plain = source->plain;
        conf.tools = source->tools;
        conf.bos = source->bos;
        conf.eos = source->eos;
        chat_close(o->served.chat);
        o->served.chat = NULL;
        r = chat_open(&conf, &o->served.chat);
        chat_source_deinit(source);
        return error_pass(r);
}

static int open_model(struct opening *o)
{
        int r = opening_checkpoint(o);

        if (!r)
                r = opening_traits(o);
        if (!r)
                r = opening_tokenizer(o);
        return error_pass(r);
}

/* A model that cannot be served may still have a template, and texts of bos and eos. */
static int open_folder(struct opening *o, int folder)
{
        struct chat_source source;
        char what[256];
        int r = open_model(o), failed;

        if (!r)
                return 0;
        failed = chat_source_folder(folder, &source, what, sizeof(what));
        if (!failed && !source.plain && !source.tools)
                return error_pass(r);
        return error_pass(take_source(o, &source, what, failed));
}

static bool is_weights(const char *path)
{
        static const char suffix[] = ".safetensors";
        size_t bytes = strlen(path);

        return bytes >= sizeof(suffix) && !strcmp(path + bytes - (sizeof(suffix) - 1), suffix);
}

/* Looks at the first bytes, not at the name; false if the file cannot be read. */
static bool is_gguf(const char *path)
{
        char magic[4] = "", what[256];
        struct sys_mark mark;
        int fd, r;

        if (file_open(AT_FDCWD, path, &fd, &mark, what, sizeof(what)))
                return false;
        r = mark.bytes < sizeof(magic) ||
            file_read(fd, 0, magic, sizeof(magic), what, sizeof(what));
        sys_close(fd);
        return !r && !memcmp(magic, "GGUF", sizeof(magic));
}

static int open_chat(struct opening *o)
{
        struct chat_source source;
        char what[256];
        int folder, r = opening_path(o);

        if (r)
                return error_pass(r);
        folder = sys_open_at(AT_FDCWD, o->path, O_RDONLY | O_DIRECTORY);
        if (folder >= 0) {
                r = open_folder(o, folder);
                sys_close(folder);
        } else if (is_weights(o->path) || is_gguf(o->path)) {
                r = open_model(o);
        } else {
                r = chat_source_file(o->path, &source, what, sizeof(what));
                r = take_source(o, &source, what, r);
        }
        if (!r && chat_missing(o->served.chat))
                r = opening_blame(o, o->path, chat_missing(o->served.chat), -EINVAL);
        return error_pass(r);
}

/* ---- the conversation ---- */

struct said {
        struct opening *o;
        const char *name; /* the file's name, for messages */
        struct json *json;
        size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct said *said, const char *format,
                                                        ...)
{
        char what[256];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return error_raise(opening_blame(said->o, said->name, what, -EINVAL));
}

/* Reads the whole file, or one byte more than is allowed. */
static int read_bytes(int fd, char *text, size_t *ret_bytes)
{
        size_t have = 0;
        ssize_t n = 1;

        while (have <= MESSAGES_BYTES_MAX && n > 0) {
                n = sys_read(fd, text + have, MESSAGES_BYTES_MAX + 1 - have);
                if (n > 0)
                        have += (size_t)n;
        }
        *ret_bytes = have;
        return n < 0 ? error_raise((int)n) : 0;
}

static int parse(struct said *said, const char *text)
{
        char what[256];
        int r;

        if (said->bytes > MESSAGES_BYTES_MAX)
                return refuse(said, "it has more than %u bytes", MESSAGES_BYTES_MAX);
        r = json_parse(text, said->bytes, SMV_VALUES_MAX, &said->json, what, sizeof(what));
        return r ? opening_blame(said->o, said->name, what, r) : 0;
}

static int read_said(struct said *said)
{
        const char *path = said->o->config->messages;
        bool from_stdin = !path || !strcmp(path, "-");
        char *text = malloc(MESSAGES_BYTES_MAX + 1);
        int fd, r;

        if (!text)
                return error_raise(-ENOMEM);
        said->name = from_stdin ? "stdin" : path;
        fd = r = from_stdin ? STDIN_FILENO : sys_open(path, O_RDONLY, 0);
        if (fd >= 0)
                r = read_bytes(fd, text, &said->bytes);
        if (fd > STDIN_FILENO)
                sys_close(fd);
        r = r < 0 ? opening_blame(said->o, said->name, strerror(-r), r) : parse(said, text);
        free(text);
        return error_pass(r);
}

/* Must be an array of objects; each message must also have a role. */
static int check_list(const struct said *said, uint32_t list, const char *name, bool roles)
{
        const struct json *json = said->json;
        uint32_t at = 0;

        if (json_kind(json, list) != JSON_ARRAY)
                return refuse(said, "%s are no array", name);
        if (json_count(json, list) > SMV_MESSAGES_MAX)
                return refuse(said, "%s are more than %u", name, SMV_MESSAGES_MAX);
        for (uint32_t node = json_first(json, list); node != JSON_NONE;
             node = json_next(json, node), at++) {
                size_t bytes;

                if (json_kind(json, node) != JSON_OBJECT)
                        return refuse(said, "%s[%u] is no object", name, at);
                if (roles && !json_string(json, json_member(json, node, "role"), &bytes))
                        return refuse(said, "%s[%u] has no role, which is a text", name, at);
        }
        return 0;
}

static int check_vars(const struct said *said, uint32_t vars)
{
        const struct json *json = said->json;

        if (json_kind(json, vars) != JSON_OBJECT)
                return refuse(said, "template_vars is no object");
        if (json_count(json, vars) > SMV_KEYS_MAX)
                return refuse(said, "template_vars sets more than %u names", SMV_KEYS_MAX);
        for (uint32_t node = json_first(json, vars); node != JSON_NONE;
             node = json_next(json, node)) {
                size_t bytes;
                const char *name = json_key(json, node, &bytes);

                if (chat_sets(name, bytes))
                        return refuse(said, "template_vars may not set %s", name);
        }
        return 0;
}

static int take(const struct said *said, struct arena *arena, uint32_t node, struct value *to)
{
        int r = value_from_json(arena, said->json, node, TEXT_GIVEN, to);

        return r == -ERANGE ? refuse(said, "a number in it does not fit 64 bits") : error_pass(r);
}

static int take_member(const struct said *said, struct arena *arena, uint32_t node,
                       struct conversation *about)
{
        const char *name = json_key(said->json, node, NULL);
        int r;

        if (!strcmp(name, "messages")) {
                r = check_list(said, node, name, true);
                return r ? error_pass(r) : error_pass(take(said, arena, node, &about->messages));
        }
        if (!strcmp(name, "tools")) {
                r = check_list(said, node, name, false);
                return r ? error_pass(r) : error_pass(take(said, arena, node, &about->tools));
        }
        if (!strcmp(name, "template_vars")) {
                r = check_vars(said, node);
                return r ? error_pass(r) : error_pass(take(said, arena, node, &about->vars));
        }
        if (!strcmp(name, "add_generation_prompt"))
                return json_bool(said->json, node, &about->add_generation_prompt)
                               ? 0
                               : refuse(said, "add_generation_prompt is neither true nor false");
        return refuse(said,
                      "'%s' is none of messages, tools, template_vars and "
                      "add_generation_prompt",
                      shown(name).text);
}

static int make_conversation(const struct said *said, struct arena *arena,
                             struct conversation *ret_about)
{
        enum json_kind kind = json_kind(said->json, 0);
        int r = 0;

        *ret_about = (struct conversation){ .messages = value_none(),
                                            .tools = value_none(),
                                            .vars = value_none(),
                                            .add_generation_prompt = true,
                                            .bytes = said->bytes };
        if (kind == JSON_ARRAY) {
                r = check_list(said, 0, "messages", true);
                if (!r)
                        r = take(said, arena, 0, &ret_about->messages);
        } else if (kind != JSON_OBJECT) {
                return refuse(said, "it is neither an array of messages nor an object");
        }
        for (uint32_t node = kind == JSON_OBJECT ? json_first(said->json, 0) : JSON_NONE;
             !r && node != JSON_NONE; node = json_next(said->json, node))
                r = take_member(said, arena, node, ret_about);
        if (!r && (ret_about->messages.kind != VALUE_LIST || !ret_about->messages.list->count))
                r = refuse(said, "it has no messages");
        return error_pass(r);
}

static int render(const struct said *said, struct rendered *ret_rendered)
{
        struct opening *o = said->o;
        size_t bytes = said->bytes + (size_t)NODE_BYTES * SMV_VALUES_MAX + ARENA_SPARE;
        struct conversation about;
        struct arena *arena;
        char why[200] = "";
        struct tm now;
        int r;

        r = arena_new(bytes, &arena);
        if (r)
                return error_pass(r);
        sys_local_time(&now);
        r = make_conversation(said, arena, &about);
        if (!r) {
                r = chat_render(o->served.chat, arena, &about, &now, ret_rendered, why,
                                sizeof(why));
                why_line(why);
                if (r)
                        opening_blame(o, o->path, why, r);
        }
        arena_free(arena);
        return error_pass(r);
}

/* ---- the output ---- */

/*
 * Prints valid UTF-8 as a JSON string.  Control characters are escaped, also C1 (two bytes of
 * UTF-8), because a terminal interprets C1 like C0.
 */
static void print_text(const char *text, size_t bytes, FILE *to)
{
        fputc('"', to);
        for (size_t i = 0; i < bytes; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c == '"' || c == '\\')
                        fprintf(to, "\\%c", c);
                else if (c == '\n')
                        fputs("\\n", to);
                else if (c < ' ' || c == 0x7f)
                        fprintf(to, "\\u%04x", c);
                else if (c == 0xc2 && i + 1 < bytes && (unsigned char)text[i + 1] < 0xa0)
                        fprintf(to, "\\u%04x", (unsigned char)text[++i]);
                else
                        fputc(c, to);
        }
        fputc('"', to);
}

static void print_json(const struct rendered *rendered, FILE *to)
{
        fputs("{\"text\":", to);
        print_text(rendered->text, rendered->bytes, to);
        fputs(",\"spans\":[", to);
        for (size_t i = 0; i < rendered->span_count; i++)
                fprintf(to, "%s[%zu,\"%s\"]", i ? "," : "", rendered->spans[i].bytes,
                        rendered->spans[i].origin == TEXT_OURS ? "template" : "given");
        fputs("]}\n", to);
}

int preview(struct opening *opening, FILE *to)
{
        struct said said = { .o = opening };
        struct rendered rendered = { 0 };
        int r = open_chat(opening);

        if (!r)
                r = read_said(&said);
        if (!r)
                r = render(&said, &rendered);
        json_free(said.json);
        if (!r && opening->config->json)
                print_json(&rendered, to);
        else if (!r)
                fwrite(rendered.text, 1, rendered.bytes, to);
        if (!r && (fflush(to) || ferror(to)))
                r = opening_blame(opening, "stdout", strerror(errno), -EIO);
        rendered_free(&rendered);
        return error_pass(r);
}
