#include "daemon/start/render-template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "daemon/files/chat-source.h"
#include "daemon/files/file.h"
#include "daemon/text/chat.h"
#include "json/reader.h"

#define MESSAGES_BYTES_MAX (8u << 20)
#define NODE_BYTES         256u /* bytes of a value and its key in an arena, without their text */
#define ARENA_SPARE        (1u << 20)

/* ---- the template ---- */

/* Takes the result r and *what of reading the source; frees the source. */
static int take_source(struct model_setup *setup, struct chat_source *source, const char *what,
                       int r)
{
        struct chat_conf conf = { 0 };

        if (r)
                return model_setup_fail(setup, setup->path, what, r);
        conf.plain = source->plain;
        conf.tools = source->tools;
        conf.bos = source->bos;
        conf.eos = source->eos;
        chat_close(setup->served.chat);
        setup->served.chat = NULL;
        r = chat_open(&conf, &setup->served.chat);
        chat_source_deinit(source);
        return error_pass(r);
}

static int open_model(struct model_setup *setup)
{
        int r = model_setup_checkpoint(setup);

        if (!r)
                r = model_setup_traits(setup);
        if (!r)
                r = model_setup_tokenizer(setup);
        return error_pass(r);
}

/* A model that cannot be served may still have a template, and texts of bos and eos. */
static int open_folder(struct model_setup *setup, int folder)
{
        struct chat_source source;
        char what[256];
        int r = open_model(setup), failed;

        if (!r)
                return 0;
        failed = chat_source_folder(folder, &source, what, sizeof(what));
        if (!failed && !source.plain && !source.tools)
                return error_pass(r);
        return error_pass(take_source(setup, &source, what, failed));
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

static int open_chat(struct model_setup *setup)
{
        struct chat_source source;
        char what[256];
        int folder, r = model_setup_path(setup);

        if (r)
                return error_pass(r);
        folder = sys_open_at(AT_FDCWD, setup->path, O_RDONLY | O_DIRECTORY);
        if (folder >= 0) {
                r = open_folder(setup, folder);
                sys_close(folder);
        } else if (is_weights(setup->path) || is_gguf(setup->path)) {
                r = open_model(setup);
        } else {
                r = chat_source_file(setup->path, &source, what, sizeof(what));
                r = take_source(setup, &source, what, r);
        }
        if (!r && chat_refusal(setup->served.chat))
                r = model_setup_fail(setup, setup->path, chat_refusal(setup->served.chat), -EINVAL);
        return error_pass(r);
}

/* ---- the conversation ---- */

struct input {
        struct model_setup *setup;
        const char *name; /* the file's name, for messages */
        struct json_document *json;
        size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct input *input,
                                                        const char *format, ...)
{
        char what[256];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return error_raise(model_setup_fail(input->setup, input->name, what, -EINVAL));
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

static int parse(struct input *input, const char *text)
{
        char what[256];
        int r;

        if (input->bytes > MESSAGES_BYTES_MAX)
                return refuse(input, "it has more than %u bytes", MESSAGES_BYTES_MAX);
        r = json_parse(text, input->bytes, SMV_VALUES_MAX, &input->json, what, sizeof(what));
        return r ? model_setup_fail(input->setup, input->name, what, r) : 0;
}

static int read_input(struct input *input)
{
        const char *path = input->setup->config->messages;
        bool from_stdin = !path || !strcmp(path, "-");
        char *text = malloc(MESSAGES_BYTES_MAX + 1);
        int fd, r;

        if (!text)
                return error_raise(-ENOMEM);
        input->name = from_stdin ? "stdin" : path;
        fd = r = from_stdin ? STDIN_FILENO : sys_open(path, O_RDONLY, 0);
        if (fd >= 0)
                r = read_bytes(fd, text, &input->bytes);
        if (fd > STDIN_FILENO)
                sys_close(fd);
        r = r < 0 ? model_setup_fail(input->setup, input->name, strerror(-r), r)
                  : parse(input, text);
        free(text);
        return error_pass(r);
}

/* Must be an array of objects; each message must also have a role. */
static int check_list(const struct input *input, uint32_t list, const char *name, bool roles)
{
        const struct json_document *json = input->json;
        uint32_t at = 0;

        if (json_kind(json, list) != JSON_ARRAY)
                return refuse(input, "%s is not an array", name);
        if (json_count(json, list) > SMV_MESSAGES_MAX)
                return refuse(input, "%s has more than %u elements", name, SMV_MESSAGES_MAX);
        for (uint32_t node = json_first(json, list); node != JSON_NONE;
             node = json_next(json, node), at++) {
                size_t bytes;

                if (json_kind(json, node) != JSON_OBJECT)
                        return refuse(input, "%s[%u] is not an object", name, at);
                if (roles && !json_string(json, json_member(json, node, "role"), &bytes))
                        return refuse(input, "%s[%u] has no role that is a string", name, at);
        }
        return 0;
}

static int check_vars(const struct input *input, uint32_t vars)
{
        const struct json_document *json = input->json;

        if (json_kind(json, vars) != JSON_OBJECT)
                return refuse(input, "template_vars is not an object");
        if (json_count(json, vars) > SMV_KEYS_MAX)
                return refuse(input, "template_vars sets more than %u names", SMV_KEYS_MAX);
        for (uint32_t node = json_first(json, vars); node != JSON_NONE;
             node = json_next(json, node)) {
                size_t bytes;
                const char *name = json_key(json, node, &bytes);

                if (chat_sets_variable(name, bytes))
                        return refuse(input, "template_vars may not set %s", name);
        }
        return 0;
}

static int take(const struct input *input, struct arena *arena, uint32_t node, struct value *to)
{
        int r = value_from_json(arena, input->json, node, TEXT_GIVEN, to);

        return r == -ERANGE ? refuse(input, "a number in it does not fit 64 bits") : error_pass(r);
}

static int take_bool(const struct input *input, uint32_t node, const char *name, bool *to)
{
        return json_bool(input->json, node, to)
                       ? 0
                       : refuse(input, "%s is neither true nor false", name);
}

static int take_member(const struct input *input, struct arena *arena, uint32_t node,
                       struct conversation *about)
{
        const char *name = json_key(input->json, node, NULL);
        int r;

        if (!strcmp(name, "messages")) {
                r = check_list(input, node, name, true);
                return r ? error_pass(r) : error_pass(take(input, arena, node, &about->messages));
        }
        if (!strcmp(name, "tools")) {
                r = check_list(input, node, name, false);
                return r ? error_pass(r) : error_pass(take(input, arena, node, &about->tools));
        }
        if (!strcmp(name, "template_vars")) {
                r = check_vars(input, node);
                return r ? error_pass(r) : error_pass(take(input, arena, node, &about->vars));
        }
        if (!strcmp(name, "add_generation_prompt"))
                return take_bool(input, node, name, &about->add_generation_prompt);
        if (!strcmp(name, "continue_final_message"))
                return take_bool(input, node, name, &about->continue_final_message);
        return refuse(input,
                      "'%s' is not one of messages, tools, template_vars, add_generation_prompt "
                      "and continue_final_message",
                      shown(name).text);
}

static int make_conversation(const struct input *input, struct arena *arena,
                             struct conversation *ret_about)
{
        enum json_kind kind = json_kind(input->json, 0);
        int r = 0;

        *ret_about = (struct conversation){ .messages = value_none(),
                                            .tools = value_none(),
                                            .vars = value_none(),
                                            .add_generation_prompt = true,
                                            .bytes = input->bytes };
        if (kind == JSON_ARRAY) {
                r = check_list(input, 0, "messages", true);
                if (!r)
                        r = take(input, arena, 0, &ret_about->messages);
        } else if (kind != JSON_OBJECT) {
                return refuse(input, "it is neither an array of messages nor an object");
        }
        for (uint32_t node = kind == JSON_OBJECT ? json_first(input->json, 0) : JSON_NONE;
             !r && node != JSON_NONE; node = json_next(input->json, node))
                r = take_member(input, arena, node, ret_about);
        if (!r && (ret_about->messages.kind != VALUE_LIST || !ret_about->messages.list->count))
                r = refuse(input, "it has no messages");
        return error_pass(r);
}

static int render(const struct input *input, struct rendered *ret_rendered)
{
        struct model_setup *setup = input->setup;
        size_t bytes = 2 * input->bytes + (size_t)NODE_BYTES * SMV_VALUES_MAX + CHAT_CALLS_BYTES +
                       ARENA_SPARE;
        struct conversation about;
        struct arena *arena;
        char why[200] = "";
        struct tm now;
        int r;

        r = arena_new(bytes, &arena);
        if (r)
                return error_pass(r);
        sys_local_time(&now);
        r = make_conversation(input, arena, &about);
        if (!r && about.continue_final_message)
                r = sys_random(&about.nonce, sizeof(about.nonce));
        if (!r) {
                r = chat_render(setup->served.chat, arena, &about, &now, ret_rendered, why,
                                sizeof(why));
                errtext_one_line(why);
                if (r)
                        model_setup_fail(setup, setup->path, why, r);
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

int render_template(struct model_setup *setup, FILE *to)
{
        struct input input = { .setup = setup };
        struct rendered rendered = { 0 };
        int r = open_chat(setup);

        if (!r)
                r = read_input(&input);
        if (!r)
                r = render(&input, &rendered);
        json_free(input.json);
        if (!r && setup->config->json)
                print_json(&rendered, to);
        else if (!r)
                fwrite(rendered.text, 1, rendered.bytes, to);
        if (!r && (fflush(to) || ferror(to)))
                r = model_setup_fail(setup, "stdout", strerror(errno), -EIO);
        rendered_free(&rendered);
        return error_pass(r);
}
