#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/files.h"
#include "json/reader.h"

#define NODES_MAX UINT32_C(50000000)

struct reading {
        struct workload *workload;
        const struct json_document *json;
        uint32_t number; /* of the line or the element, from 1 */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reading *r, const char *format, ...)
{
        va_list values;
        int used = snprintf(r->why, r->why_bytes, "prompt %u: ", r->number);

        va_start(values, format);
        if (used > 0 && (size_t)used < r->why_bytes)
                vsnprintf(r->why + used, r->why_bytes - (size_t)used, format, values);
        va_end(values);
        return -EBADMSG;
}

static int add_text(struct reading *r, const char *text, size_t *ret_at)
{
        return workload_add_text(r->workload, text, strlen(text), ret_at);
}

static int add_message(struct reading *r, struct work *work, const char *role, const char *content)
{
        struct work_message message;
        int e;

        if (!work->message_count)
                work->first_message = r->workload->message_count;
        e = add_text(r, role, &message.role);
        if (!e)
                e = add_text(r, content, &message.content);
        if (!e)
                e = workload_add_message(r->workload, &message);
        work->message_count++;
        return e;
}

/* ShareGPT says who speaks in words of its own. */
static const char *role_of(const char *word)
{
        if (!strcmp(word, "human"))
                return "user";
        if (!strcmp(word, "gpt") || !strcmp(word, "chatgpt") || !strcmp(word, "bing"))
                return "assistant";
        return word;
}

/* The text of a content: a string, or the list of parts that OpenAI has. */
static const char *content_of(struct reading *r, uint32_t node)
{
        uint32_t first = json_first(r->json, node);

        if (json_kind(r->json, node) == JSON_ARRAY && json_count(r->json, node) == 1)
                return json_string(r->json, json_member(r->json, first, "text"), NULL);
        return json_string(r->json, node, NULL);
}

/* Up to the last message before the end, or before the first answer, with `whole` false. */
static int add_messages(struct reading *r, struct work *work, uint32_t list, const char *role_key,
                        const char *content_key, bool whole)
{
        int e = 0;

        for (uint32_t at = json_first(r->json, list); at != JSON_NONE && !e;
             at = json_next(r->json, at)) {
                const char *role = json_string(r->json, json_member(r->json, at, role_key), NULL);
                const char *content = content_of(r, json_member(r->json, at, content_key));

                if (!role || !content)
                        return refuse(r, "a message needs texts \"%s\" and \"%s\"", role_key,
                                      content_key);
                if (!whole && !strcmp(role_of(role), "assistant")) {
                        if (work->message_count)
                                break;
                        continue; /* some conversations of ShareGPT begin with an answer */
                }
                e = add_message(r, work, role_of(role), content);
        }
        if (!e && !work->message_count)
                return refuse(r, "it has no message");
        return e;
}

static void take_length(struct reading *r, struct work *work, uint32_t object)
{
        static const char *const names[] = { "max_completion_tokens", "max_tokens", "output_tokens",
                                             "output_length" };
        uint64_t length;

        for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !work->output; i++)
                if (json_whole(r->json, json_member(r->json, object, names[i]), &length) &&
                    length <= LENGTH_MAX)
                        work->output = (uint32_t)length;
}

static int add_object(struct reading *r, uint32_t object)
{
        uint32_t body = json_member(r->json, object, "body"), list;
        struct work work = { 0 };
        const char *text;
        int e;

        if (body != JSON_NONE)
                object = body;
        take_length(r, &work, object);
        text = json_string(r->json, json_member(r->json, object, "prompt"), NULL);
        if (text)
                e = add_text(r, text, &work.text);
        else if ((list = json_member(r->json, object, "messages")) != JSON_NONE)
                e = add_messages(r, &work, list, "role", "content", true);
        else if ((list = json_member(r->json, object, "conversations")) != JSON_NONE)
                e = add_messages(r, &work, list, "from", "value", false);
        else if ((list = json_member(r->json, object, "turns")) != JSON_NONE &&
                 (text = json_string(r->json, json_first(r->json, list), NULL)))
                e = add_message(r, &work, "user", text);
        else
                e = refuse(r, "it needs a text \"prompt\", or \"messages\", \"conversations\" or "
                              "\"turns\"");
        return e ? e : workload_add(r->workload, &work);
}

static int read_line(struct reading *r, const char *line, size_t bytes, bool is_json)
{
        struct json_document *json;
        struct work work = { 0 };
        char why[160];
        int e;

        if (!is_json) {
                e = workload_add_text(r->workload, line, bytes, &work.text);
                return e ? e : workload_add(r->workload, &work);
        }
        e = json_parse(line, bytes, NODES_MAX, &json, why, sizeof(why));
        if (e)
                return e == -ENOMEM ? e : refuse(r, "%s", why);
        r->json = json;
        e = add_object(r, 0);
        json_free(json);
        return e;
}

static int read_list(struct reading *r, const char *text, size_t bytes)
{
        struct json_document *json;
        int e = json_parse(text, bytes, NODES_MAX, &json, r->why, r->why_bytes);

        if (e)
                return e;
        r->json = json;
        for (uint32_t at = json_first(json, 0); at != JSON_NONE && !e; at = json_next(json, at)) {
                r->number++;
                e = add_object(r, at);
        }
        json_free(json);
        return e;
}

static int read_lines(struct reading *r, const char *text, size_t bytes)
{
        const char *end = text + bytes, *behind;
        bool is_json = text[strspn(text, " \t\r\n")] == '{';
        int e = 0;

        for (; text < end && !e; text = behind + 1) {
                size_t length;

                behind = memchr(text, '\n', (size_t)(end - text));
                if (!behind)
                        behind = end;
                length = (size_t)(behind - text);
                if (length && text[length - 1] == '\r')
                        length--;
                r->number++;
                if (strspn(text, " \t") < length)
                        e = read_line(r, text, length, is_json);
        }
        return e;
}

int prompt_file_read(const char *text, size_t bytes, struct workload *workload, char *why,
                     size_t why_bytes)
{
        struct reading r = { .workload = workload, .why = why, .why_bytes = why_bytes };
        int e;

        *why = '\0';
        e = text[strspn(text, " \t\r\n")] == '[' ? read_list(&r, text, bytes)
                                                 : read_lines(&r, text, bytes);
        if (!e && !workload->count) {
                snprintf(why, why_bytes, "it has no prompt");
                e = -EBADMSG;
        }
        if (e == -ENOMEM)
                snprintf(why, why_bytes, "out of memory");
        return e;
}
